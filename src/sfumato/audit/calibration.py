"""Calibration: the highest fidelity at which no attack, by any coalition, does better than a disclosure-risk target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import PolicyError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.policy.targets import Target
from sfumato.release.evidence import copy_evidence, original_records, pooled_evidence
from sfumato.release.manifest import Manifest
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.risk.thresholds import ROWS, ThresholdResult, evaluate_thresholds
from sfumato.tables.sampling import sampled

MAX_TRIALS = 11
"""The largest number of fidelities that are tried for each target."""

RESOLUTION = 1000
"""Fidelities are found as multiples of one over this number."""

CONFIDENCE = 1 - 1e-9
"""The confidence with which a calibrated level meets its target, so that a release with other noise meets it too."""

TRIAL_KEY = Key.from_bytes(bytes(32))
"""The key of all trials: what they perturb is never released, and the same table gives the same level again."""


@dataclass(frozen=True)
class CalibratedLevel:
    """The highest fidelity that meets a target, and what the best attack achieves there."""

    fidelity: float
    result: ThresholdResult
    sentence: str = ""
    """What an owner can say about the level, where more is known than the target."""


@dataclass(frozen=True)
class TrialRelease:
    """A sample of a table, to be released at any level and attacked."""

    scheme: TableScheme
    row_numbers: Any
    """The numbers of the sampled rows in the table."""
    rows: Any
    key: Key

    def attack(self, target: Target, fidelity: float) -> ThresholdResult:
        """The best attack by a coalition that holds a copy of this fidelity and all declared ones below it."""
        level = Level(fidelity)
        below = [other for other in self.scheme.policy.ladder if other < level]
        copies = perturb_sample(self.scheme, self.row_numbers, self.rows, [level, *below], self.key)
        manifests = [Manifest.of(copy) for copy in copies]
        evidence = pooled_evidence([copy_evidence(c, manifest) for c, manifest in zip(copies, manifests, strict=True)])
        truth = original_records(self.rows, manifests[0].models)
        return evaluate_thresholds([target], evidence, truth, CONFIDENCE)[0]


def calibrate(
    policy: Policy, table: Any, targets: Sequence[Target], *, progress: Callable[[int], None] | None = None
) -> list[CalibratedLevel]:
    """The highest fidelity for each target, by bisection: attacks do better the higher the fidelity."""
    for target in targets:
        policy.check_target(target)
    source = policy.source(table)
    scheme = replace(policy, digits=max(policy.digits, 16), targets=()).fit(source)
    trial = TrialRelease(scheme, *sampled(numbered_rows(scheme, source), ROWS), TRIAL_KEY)
    return [_bisect(trial, target, progress) for target in targets]


def _bisect(trial: TrialRelease, target: Target, progress: Callable[[int], None] | None) -> CalibratedLevel:
    lowest = trial.attack(target, 1 / RESOLUTION)
    if not lowest.met:
        raise PolicyError(
            f"no level meets the target {target}: even at fidelity {1 / RESOLUTION:g}, {lowest}; choose a target that "
            "an attacker without any copy does not beat"
        )
    low, high, best = 1, RESOLUTION, lowest
    while high - low > 1:
        middle = (low + high) // 2
        result = trial.attack(target, middle / RESOLUTION)
        if progress:
            progress(1)
        if result.met:
            low, best = middle, result
        else:
            high = middle
    return CalibratedLevel(low / RESOLUTION, best)
