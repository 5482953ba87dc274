"""Calibration: the highest level at which no attack, by any coalition, does better than a target allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import PolicyError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.policy.document import Policy
from sfumato.policy.targets import Target
from sfumato.release.evidence import copy_evidence, records, together
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme
from sfumato.risk.thresholds import ROWS, Reached, best_reached
from sfumato.tables.sampling import sampled
from sfumato.tables.source import Source

TURNS = 11
"""Levels that are tried for each target, at most."""

STEPS = 1000
"""Fidelities are found to one part in so many."""

CONFIDENCE = 1 - 1e-9
"""A calibrated level keeps its target by a margin, so that the test before each release finds so with other noise."""


@dataclass(frozen=True)
class Calibrated:
    """The highest fidelity at which a target holds, and what the best attack reaches there."""

    fidelity: float
    reached: Reached


@dataclass(frozen=True)
class Bench:
    """Some records of a table, to be released at any level and attacked."""

    scheme: TableScheme
    places: Any
    rows: Any
    key: Key

    def reach(self, target: Target, fidelity: float) -> Reached:
        """What the best attack reaches, by who holds a copy at this level and all declared ones below it."""
        level = Level(fidelity)
        below = [other for other in self.scheme.policy.ladder if other < level]
        copies = self.scheme.copies(self.places, self.rows, [level, *below], self.key)
        manifests = [Manifest.of(copy) for copy in copies]
        evidence = together([copy_evidence(copy, manifest) for copy, manifest in zip(copies, manifests, strict=True)])
        return best_reached([target], evidence, records(self.rows, manifests[0].models), CONFIDENCE)[0]


def calibrate(
    policy: Policy, table: Any, targets: Sequence[Target], *, progress: Callable[[int], None] | None = None
) -> list[Calibrated]:
    """The highest fidelity for each target, by bisection; attacks do better the higher it is."""
    for target in targets:
        policy.check_target(target)
    source = Source.of(table)
    scheme = replace(policy, digits=max(policy.digits, 16), targets=()).fit(source)
    bench = Bench(scheme, *sampled(scheme.numbered(source), ROWS), Key.generate())
    return [_bisect(bench, target, progress) for target in targets]


def _bisect(bench: Bench, target: Target, progress: Callable[[int], None] | None) -> Calibrated:
    least = bench.reach(target, 1 / STEPS)
    if not least.met:
        raise PolicyError(
            f"no level keeps {target}: at fidelity {1 / STEPS:g}, where hardly anything is shown, {least}; choose a "
            "target that a guess without any copy does not beat"
        )
    low, high, best = 1, STEPS, least
    while high - low > 1:
        middle = (low + high) // 2
        found = bench.reach(target, middle / STEPS)
        if progress:
            progress(1)
        if found.met:
            low, best = middle, found
        else:
            high = middle
    return Calibrated(low / STEPS, best)
