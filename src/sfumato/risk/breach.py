"""Known-record risk of rotated and projected copies: the probability of a privacy breach (giannella2010, section IV-D).

An attacker who knows some records of the original finds their images among the released rows, solves for the secret
linear map on the space that they span, and estimates the other records. The risk is computed before any release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import breached
from sfumato.attacks.known_rows import regressed
from sfumato.errors import ReleaseError
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.hypersphere import best_breach_probability, uniform_breach_probability
from sfumato.models.rotation import Rotation
from sfumato.risk.linear_map_simulation import simulated_rows
from sfumato.tables.sampling import pseudo_random_order

ROWS = 20_000
"""The largest number of records that the risk is computed on."""

EPSILONS = (0.05, 0.15)
"""A record is breached if its estimate is off by at most this share of its norm (giannella2010, Definition 3.1)."""

BREACHED_SHARE = 0.1
"""A table counts as breached if this share of its records is estimated within the larger epsilon."""

_DRAWS = 12
"""Random choices of known records that the risk is averaged over."""

_SCORED = 2000
"""The largest number of records that are estimated from a simulated copy."""

_POINTS = 24
"""The largest number of points on the curve of risk against known records."""


@dataclass(frozen=True)
class BreachRisk:
    """The risk to all other records if an attacker knows a number of them, averaged over which ones it knows."""

    known_records: int
    max_probability: tuple[float, ...]
    """`ρ(x, ε)` of the record most at risk under the paper's random estimate, for each of `EPSILONS`; with noise or in
    fewer dimensions, the probability that any record is breached."""
    breached_share: tuple[float, ...]
    """The expected share of records that the best estimate breaches, for each of `EPSILONS`."""


@dataclass(frozen=True)
class KnownRecordRisk:
    """The risk of releasing a rotated or projected copy of a table, for a growing number of known records."""

    dimensions: int
    baseline: tuple[float, ...]
    """The share of records that the mean of the table breaches without any copy, for each of `EPSILONS`."""
    curve: tuple[BreachRisk, ...]

    def fewest_known(self) -> int | None:
        """The smallest number of known records that breaches the table; nothing if none that was tried does."""
        return next((p.known_records for p in self.curve if is_breached(p.breached_share, self.baseline)), None)

    def require_resistance(self, withstand: int, role: str) -> None:
        """Refuse a copy that fewer known records breach than the policy requires it to withstand."""
        fewest = self.fewest_known()
        if fewest is not None and fewest < withstand:
            raise ReleaseError(
                f"a copy with the role {role} must withstand {withstand} known records, and {enough(fewest)} enough to "
                f"estimate {BREACHED_SHARE:.0%} of the others within {EPSILONS[-1]:.0%} of their norm. Transform more "
                f"columns together, set `noise = true` in [{role}] and release a lower level, or accept the risk with "
                "`accept` and a reason; see `sfumato advise`"
            )


def enough(known: int) -> str:
    """The subject of a sentence that says that so many known records are enough."""
    return "1 known record is" if known == 1 else f"{known} known records are"


def is_breached(share: tuple[float, ...], baseline: tuple[float, ...]) -> bool:
    """Whether an attack breaches enough of the records that the mean alone does not breach."""
    return share[-1] - baseline[-1] >= BREACHED_SHARE * (1 - baseline[-1])


def assess_known_record_risk(records: Floats, model: Rotation, withstand: int = 1) -> KnownRecordRisk:
    """The breach risk of a copy of some records, for a growing number of known ones.

    The attacker is assumed to find the images of its known records among the released rows. With exact distances, a
    handful of records is nearly always enough for that.

    Args:
        records: the inputs of the linear map: centred, scaled and without missing values.
        model: the public model of the copy.
        withstand: the number of known records up to which the risk is assessed at least.

    """
    size = records.shape[1]
    base = baseline_breach(records)
    if len(records) < 3:  # an attacker who knows one of two records knows half of the table
        worst = (1.0,) * len(EPSILONS)
        return KnownRecordRisk(size, (0.0,) * len(EPSILONS), (BreachRisk(1, worst, worst),) if len(records) else ())
    most = min(max(size + model.translated + 2, withstand), len(records) - 1)
    orders = [pseudo_random_order(len(records), i) for i in range(_DRAWS)]
    draws: list[_Draw | _SimulatedCopy]
    if model.is_invertible:
        draws = [_Draw.of(records, order[:most], translated=model.translated) for order in orders]
    else:
        draws = [_SimulatedCopy.of(records, model, order, seed) for seed, order in enumerate(orders)]

    def risk(count: int) -> BreachRisk:
        probability, share = np.mean([draw.risk(count) for draw in draws], axis=0)
        return BreachRisk(count, tuple(map(float, probability)), tuple(map(float, share)))

    curve = {count: risk(count) for count in _counts(most)}
    low, high = _bracket(curve, base)
    while high - low > 1:  # bisect, so that the smallest number that is enough is exact
        middle = (low + high) // 2
        curve[middle] = risk(middle)
        low, high = _bracket(curve, base)
    return KnownRecordRisk(size, base, tuple(curve[count] for count in sorted(curve)))


def baseline_breach(records: Floats) -> tuple[float, ...]:
    """The share of records that the mean of the table breaches without any copy, for each of `EPSILONS`."""
    if not len(records):
        return (0.0,) * len(EPSILONS)
    distance = np.linalg.norm(records - records.mean(axis=0), axis=1)
    return tuple(float((distance <= epsilon * np.linalg.norm(records, axis=1)).mean()) for epsilon in EPSILONS)


def _bracket(curve: dict[int, BreachRisk], base: tuple[float, ...]) -> tuple[int, int]:
    """The largest number of known records on the curve that is not enough, and the next one, which is."""
    breaching = [count for count in sorted(curve) if is_breached(curve[count].breached_share, base)]
    if not breaching:
        return 0, 0
    return max((count for count in curve if count < breaching[0]), default=0), breaching[0]


def _counts(most: int) -> list[int]:
    """The numbers of known records that the curve starts with."""
    if most <= _POINTS:
        return list(range(1, most + 1))
    return sorted({int(x) for x in np.linspace(1, most, _POINTS)})


@dataclass(frozen=True)
class _Draw:
    """One random choice of known records, in the order in which they become known, and the geometry of the others."""

    size: int
    norms: Floats
    """The norms of the other records."""
    along: Floats
    """Their squared coordinates along the direction that each further known record adds to the span."""
    rest: Floats
    """Their distance from the span of all known records."""
    is_new: Mask
    """Whether a known record adds a direction to the span."""
    translated: bool

    @classmethod
    def of(cls, records: Floats, known: Rows, *, translated: bool) -> _Draw:
        others = np.delete(records, known, axis=0)
        base = records[known[0]] if translated else np.zeros(records.shape[1])
        spanning = (records[known[1:]] if translated else records[known]) - base
        axes, sizes = np.linalg.qr(spanning.T)
        is_new = np.abs(np.diag(sizes)) > 1e-9 * max(np.abs(sizes).max(initial=0.0), 1e-300)
        shifted = others - base
        along = (shifted @ axes) * is_new[: axes.shape[1]]
        rest = np.linalg.norm(shifted - along @ axes.T, axis=1)
        rest[rest < 1e-9 * np.linalg.norm(shifted, axis=1).max(initial=0.0)] = 0.0
        return cls(records.shape[1], np.linalg.norm(others, axis=1), along**2, rest, is_new, translated)

    def risk(self, count: int) -> Floats:
        """The largest breach probability and the breached share with `count` known records, for each epsilon."""
        spanned = min(count - self.translated, self.along.shape[1])
        distance = np.sqrt(self.along[:, spanned:].sum(axis=1) + self.rest**2)
        unknown = self.size - int(self.is_new[:spanned].sum())
        out = np.empty((2, len(EPSILONS)))
        for j, epsilon in enumerate(EPSILONS):
            out[0, j] = uniform_breach_probability(unknown, distance, epsilon * self.norms).max(initial=0.0)
            out[1, j] = best_breach_probability(unknown, distance, epsilon * self.norms).mean()
        return out


@dataclass(frozen=True)
class _SimulatedCopy:
    """One simulated copy that does not determine its records, with noise or in fewer dimensions."""

    records: Floats
    rows: Floats
    """The records before and after the linear map, in the order in which they become known."""
    model: Rotation

    @classmethod
    def of(cls, records: Floats, model: Rotation, order: Rows, seed: int) -> _SimulatedCopy:
        return cls(records[order], simulated_rows(records[order], model, seed), model)

    def risk(self, count: int) -> Floats:
        """Whether any record is breached, and the breached share, with `count` known records, for each epsilon.

        Records near the mean of the known ones, which are breached without any copy, count only where they are near the
        mean of the table, as they do in the baseline.
        """
        noisy, translated = self.model.noise > 0, self.model.translated
        known, truth = self.records[:count], self.records[count : count + _SCORED]
        inverse = regressed(known, self.rows[:count], noisy=noisy, translated=translated)
        estimate = inverse(self.rows[count : count + _SCORED])
        constants = [np.broadcast_to(part.mean(axis=0), truth.shape) for part in (known, self.records)]
        out = np.empty((2, len(EPSILONS)))
        for j, epsilon in enumerate(EPSILONS):
            hit, by_known, by_table = (breached(one, truth, epsilon)["euclidean"] for one in (estimate, *constants))
            disclosed = hit & (by_table | ~by_known)
            out[:, j] = disclosed.any(), disclosed.mean()
        return out
