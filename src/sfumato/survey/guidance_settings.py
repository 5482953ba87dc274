"""What a guided survey fixes before anybody answers."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import SurveyError


@dataclass(frozen=True)
class GuidanceSettings:
    """What a guided survey fixes before anybody answers; respondents' devices hold the collector to it."""

    error: float = 0.15
    """μ of zhang2005, eq. 6: directions weaker than this share of the strongest are not asked for."""
    refresh: int = 100
    """Rows between two guidances; never after each one, whose difference would tell that row."""
    floor: float = 0.1
    """Every bit is flipped with at least this probability, whatever the guidance."""
    bootstrap: int = 64
    """Unblurred rows of people who consent to give them, before there is any guidance."""
    exposure: float = 0.6
    """No single answer may be told more clearly than this, as a share of its own bits; devices take no more."""
    capacity: float = 3.0
    """Bits that an answer may tell for each disclosure level that a respondent allows; devices take no more."""

    def __post_init__(self) -> None:
        hold(0 < self.error < 1, "guided.error must lie between 0 and 1", self.error)
        hold(5 <= self.refresh <= 1_000_000, "guided.refresh must be at least 5 rows", self.refresh)
        hold(0 <= self.floor <= 0.45, "guided.floor must lie between 0 and 0.45", self.floor)
        hold(16 <= self.bootstrap <= 100_000, "guided.bootstrap must be at least 16 rows", self.bootstrap)
        hold(0 < self.exposure <= 0.6, "guided.exposure must lie between 0 and 0.6", self.exposure)
        hold(0 < self.capacity <= 3, "guided.capacity must lie between 0 and 3 bits", self.capacity)


def hold(holds: bool, must: str, got: object) -> None:
    """Refuse what must not be."""
    if not holds:
        raise SurveyError(f"{must}, got {str(got)[:200]!r}")
