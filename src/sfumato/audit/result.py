"""What an audit found, as a record that can be printed, drawn and kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.attacks import Score
from sfumato.audit.checks import Soundness
from sfumato.audit.outliers import Exposure
from sfumato.risk.thresholds import Reached


@dataclass(frozen=True)
class Held:
    """Who holds a copy, and how faithful it is."""

    name: str
    fidelity: float


@dataclass(frozen=True)
class AttackRun:
    """All attacks on what somebody holds."""

    holder: str
    scores: tuple[Score, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """Attacks that could not be tried, and why."""

    def errors(self, column: str) -> list[tuple[float, str]]:
        """What each attack left of a column's variance, with its name."""
        found = [(one.number(column).error.attack.value, one.attack) for one in self.scores if one.has(column)]
        return [(value, name) for value, name in found if not math.isnan(value)]

    def successes(self, columns: tuple[str, ...]) -> list[tuple[float, str]]:
        """How often each attack guessed a category, with its name."""
        found = [
            (c.success.attack.value, one.attack) for one in self.scores for c in one.categories if c.columns == columns
        ]
        return [(value, name) for value, name in found if not math.isnan(value)]


@dataclass(frozen=True)
class Worth:
    """What a column is worth to an attacker: how much of it the best attack recovers."""

    column: str
    measure: str
    """`error`, the share of variance that is left, or `success`, how often a category is guessed."""
    baseline: float
    """Without any copy."""
    alone: float
    """With one copy, the best of them; NaN where no attack on it speaks of the column, and so below."""
    pooled: float
    """With all of them."""
    independent: float
    """With as many copies whose noise is independent."""
    attack: str
    """The best one on all copies."""

    @property
    def recovered(self) -> float:
        """The share of what is unknown without a copy that the best attack finds out."""
        if self.measure == "error":
            return 1 - self.pooled
        return (self.pooled - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0


@dataclass(frozen=True)
class Growth:
    """What is reached with the first copy, the first two, and so on (li2012, Figure 2; xiao2009, Figure 7)."""

    measure: str
    ours: tuple[float, ...]
    independent: tuple[float, ...]


@dataclass(frozen=True)
class Spread:
    """How errors are distributed over records (li2012, Figure 3)."""

    edges: tuple[float, ...]
    ours: tuple[float, ...]
    independent: tuple[float, ...]


@dataclass(frozen=True)
class Audit:
    """What was found."""

    dataset: str
    rows: int
    """Of the table."""
    audited: int
    """Records that were looked at."""
    paths: int
    """On how many paths the copies lie; copies of one scheme and key lie on one."""
    copies: tuple[Held, ...]
    alone: tuple[AttackRun, ...]
    pooled: AttackRun
    """All copies together."""
    independent: AttackRun
    """As many copies of the same levels, had their noise been independent."""
    soundness: Soundness
    worth: tuple[Worth, ...]
    growth: tuple[Growth, ...]
    spread: Spread | None
    exposure: Exposure | None
    targets: tuple[Reached, ...]
    software: str
    partial: bool = False
    """Only some attacks were tried."""

    @property
    def gained(self) -> bool:
        """Whether those who pool these copies learn more than from the best of them."""
        return self.paths > 1 or bool(self.soundness.alarms)

    @property
    def passed(self) -> bool:
        """Whether the copies are sound, of one path, and within the policy's thresholds by all attacks."""
        within = all(reached.met for reached in self.targets) and not (self.targets and self.partial)
        return self.soundness.sound and self.paths == 1 and within

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        said = asdict(self)
        said["soundness"] = {
            "sound": self.soundness.sound,
            "checks": len(self.soundness.checks),
            "rate": self.soundness.rate,
            "alarms": [asdict(check) for check in self.soundness.alarms],
            "unchecked": self.soundness.unchecked,
        }
        for worth, found in zip(said["worth"], self.worth, strict=True):
            worth["recovered"] = found.recovered
        for target, found_target in zip(said["targets"], self.targets, strict=True):
            target |= {"target": str(found_target.target), "met": found_target.met}
        return {**said, "gained": self.gained, "passed": self.passed}
