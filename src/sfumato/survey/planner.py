"""Planning of a survey: how accurate shares will be, for a number of people or the other way round."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import NORMAL
from sfumato.survey.guidance_settings import require
from sfumato.survey.questions import Item

_MOST_PEOPLE = 10**9


@dataclass(frozen=True)
class LevelPlan:
    """What a survey can say if all its respondents choose one level."""

    level: str
    epsilon: float
    protection: str
    truth: float
    """The least probability, over the questions, with which a true answer is sent."""
    margin: float
    """Half of the width of the widest 95 % confidence interval of a share that lies near a half."""
    widest: str
    """The item with the widest interval."""
    people: int
    """The respondents by whom all intervals are at most as wide as asked for."""


@dataclass(frozen=True)
class Plan:
    """The accuracy of a survey, level by level."""

    people: int
    points: float
    levels: tuple[LevelPlan, ...]

    def as_dict(self) -> dict[str, Any]:
        """The plan as it is written to JSON."""
        return {"people": self.people, "points": self.points, "levels": [asdict(one) for one in self.levels]}

    def sentences(self) -> list[str]:
        """The plan in words, a line for each level."""
        return [
            f"{one.level}: {self.people:,} people give ± {_points(one.margin)} points at worst ({one.widest}); "
            f"± {self.points:g} points need {one.people:,} people"
            for one in self.levels
        ]


def plan(survey: Survey, people: int = 400, points: float = 5.0) -> Plan:
    """How accurate a randomised survey of so many people is, and how many people some accuracy takes."""
    require(survey.mode == "randomised", "the survey that is planned must be randomised", survey.mode)
    require(1 <= people <= _MOST_PEOPLE, f"the number of people must lie between 1 and {_MOST_PEOPLE:,}", people)
    require(0.01 <= points <= 50, "the accuracy must lie between 0.01 and 50 points", points)
    levels = []
    for (name, epsilon), retention, protection in zip(survey.levels, survey.retention, survey.protections, strict=True):
        spread = {item: _deviation(item, kept) for item, kept in zip(survey.items, retention, strict=True)}
        widest = max(spread, key=lambda item: spread[item])
        deviation = NORMAL * spread[widest]
        levels.append(
            LevelPlan(
                name,
                epsilon,
                protection,
                min(kept + (1 - kept) / item.size for item, kept in zip(survey.items, retention, strict=True)),
                min(deviation / math.sqrt(people), 1.0),
                widest.name,
                math.ceil((deviation / (points / 100)) ** 2),
            )
        )
    return Plan(people, points, tuple(levels))


def _deviation(item: Item, kept: float) -> float:
    """The largest standard deviation of one respondent's unbiased indicator, whatever people answer."""
    worst = 0.0
    for _, codes in item.outcomes:
        low = (1 - kept) * len(codes) / item.size
        rate = min(max(0.5, low), low + kept)  # of reports; a half is the worst, where it can be
        worst = max(worst, math.sqrt(rate * (1 - rate)) / kept)
    return worst


def _points(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.1 else f"{100 * share:.0f}"
