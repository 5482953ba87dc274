"""Checks of additive noise: its distribution, and that a less faithful copy only adds independent noise.

The copies of one path are `x + Z(t₁)`, `x + Z(t₂)`, ... with `t₁ < t₂ < ...`. Each noise must be normal, have the
published covariance, and be independent of the original; and the increment from a copy to a less faithful one must be
independent of the noise of the first: `Cov(Z(s), Z(t)) = min(s, t)·K` (li2012, eq. 15). The guarantee rests on no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import stats
from scipy.special import erf, gammainc

from sfumato.attacks import Numbers
from sfumato.audit.checks import Check
from sfumato.audit.independence_tests import (
    canonical_correlation_p,
    common_correlation_p,
    monotone_trend_p,
    orthonormal_basis,
)
from sfumato.kernels import Floats

RELATIVE_ROUNDING = 2.0**-11
"""Published covariances are rounded to this share of themselves."""

MIN_STEPS = 4.0
"""Noise with a standard deviation of fewer lattice steps is not tested, since rounding is too large a part of it."""

MIN_ROWS = 50
"""The number of records per column that a test needs."""

_GAIN = "the noise that the second adds to the first is not independent of it, so that together they disclose more"


@dataclass(frozen=True)
class NoisyCopy:
    """The noise of one copy, found with the original."""

    name: str
    columns: tuple[str, ...]
    time: float
    """The variance of the noise in units of the path's shape."""
    original: Floats
    """The values that the noise was added to, one row per record; NaN where missing."""
    noise: Floats
    shape: Floats
    """The published covariance of the noise at time 1."""
    step: Floats
    """The lattice step of each column."""

    @classmethod
    def of(cls, name: str, part: Numbers, original: Floats) -> NoisyCopy:
        """The noise of a copy, from the original after clipping and rounding to the lattice."""
        model = part.model
        shape, step = part.covariance / model.noise, np.array(model.step)
        return cls(name, part.columns, model.noise, original, part.values - original, shape, step)

    def take(self, columns: Sequence[str]) -> NoisyCopy:
        """The noise of some of the columns."""
        kept = [self.columns.index(column) for column in columns]
        original, noise = self.original[:, kept], self.noise[:, kept]
        return NoisyCopy(
            self.name, tuple(columns), self.time, original, noise, self.shape[np.ix_(kept, kept)], self.step[kept]
        )


def noise_checks(copies: Sequence[NoisyCopy]) -> Iterator[Check]:
    """All checks on the copies of one path."""
    ordered = sorted(copies, key=lambda copy: copy.time)
    for copy in ordered:
        yield from (replace(check, copies=(copy.name,)) for check in _single_copy_checks(copy))
    for first, second in combinations(ordered, 2):
        yield from (replace(check, copies=(first.name, second.name)) for check in _pair_checks(first, second))


def _single_copy_checks(copy: NoisyCopy) -> Iterator[Check]:
    """One copy: missing values, variance, distribution and repetitions of its noise per column, then all columns."""
    for i, column in enumerate(copy.columns):
        there = ~np.isnan(copy.original[:, i])
        subject = f"{copy.name}, {column}"
        if not (there == ~np.isnan(copy.noise[:, i])).all():
            yield Check(subject, "values are missing where the original has some", 0.0)
        noise, original = copy.noise[there, i], copy.original[there, i]
        if len(noise) < MIN_ROWS or np.isnan(noise).any():
            continue
        deviation = float(np.sqrt(copy.shape[i, i] * copy.time))
        white, step = noise / deviation, copy.step[i] / deviation
        yield Check(
            subject, "its noise is not as large as stated", variance_p(float(np.square(white).sum()), len(white), step)
        )
        yield Check(subject, "its noise is not normal", _normality_p(white, step))
        yield Check(subject, "the same noise was used for several records", _repetition_p(white, step))
        yield Check(subject, "the variance of its noise depends on the value", _homoscedasticity_p(white, original))
    yield from _correlation_checks(copy)
    complete = _complete_records(copy)
    if complete is not None:
        known = np.column_stack([complete.original, np.ones(len(complete.original))])
        p = canonical_correlation_p(orthonormal_basis(known), orthonormal_basis(complete.noise / complete.step), 0.0)
        yield Check(f"{copy.name}, all columns", "its noise depends on the original", p)


def variance_p(total: float, freedom: int, step: float) -> float:
    """The sum of squares is χ², up to the digits of the published variance and the rounding to the lattice.

    Args:
        total: the sum of squares, in units of the stated variance.
        freedom: its degrees of freedom.
        step: the lattice step, in units of the stated deviation.

    """
    lower = stats.chi2.cdf(total / (1 - RELATIVE_ROUNDING), freedom)
    upper = stats.chi2.sf(total / (1 + RELATIVE_ROUNDING + step**2 / 6), freedom)
    return float(min(1.0, 2 * min(lower, upper)))


def _normality_p(white: Floats, step: float) -> float:
    """Kolmogorov and Smirnov's distance, less the effect of rounding, by Dvoretzky, Kiefer, Wolfowitz and Massart."""
    distance = float(stats.ks_1samp(white, stats.norm.cdf, method="asymp").statistic) - RELATIVE_ROUNDING - step
    return float(min(1.0, 2 * np.exp(-2 * len(white) * distance**2))) if distance > 0 else 1.0


def _repetition_p(white: Floats, step: float) -> float:
    """The number of pairs of equal size: two agree with probability `step/(√π·σ)`; triples add to the variance."""
    _, counts = np.unique(np.rint(np.abs(white) / step), return_counts=True)
    pairs, rows = float((counts * (counts - 1.0) / 2).sum()), len(white)
    probability = min(step / np.sqrt(np.pi), 1.0)
    expected = rows * (rows - 1) / 2 * probability * (1 + RELATIVE_ROUNDING)
    triples = rows**3 * probability**2 * (2 / np.sqrt(3) - 1)
    if expected < 1000:
        return float(stats.poisson.sf(pairs - 1, 2 * expected + 1e-9))
    return float(stats.norm.sf((pairs - expected * 1.01) / np.sqrt(expected + triples)))


def _homoscedasticity_p(white: Floats, original: Floats) -> float:
    """Tests the size of the noise against the value, and against its distance from the median."""
    size = erf(np.abs(white) / np.sqrt(2))
    low, median, high = np.quantile(original, [0.005, 0.5, 0.995])
    value = np.clip(original, low, high)  # so that no outlier decides
    return min(1.0, 2 * min(monotone_trend_p(size, value), monotone_trend_p(size, np.abs(value - median))))


def _correlation_checks(copy: NoisyCopy) -> Iterator[Check]:
    """The noise correlation of each pair of columns, against the published one to its published digits."""
    sizes = np.sqrt(np.diag(copy.shape))
    stated = copy.shape / np.outer(sizes, sizes)
    for i, j in combinations(range(len(copy.columns)), 2):
        there = ~np.isnan(copy.noise[:, [i, j]]).any(axis=1)
        noise = copy.noise[there][:, [i, j]]
        if len(noise) < MIN_ROWS or not noise.std(axis=0).all():
            continue
        rounding = float((copy.step[[i, j]] ** 2 / (np.diag(copy.shape)[[i, j]] * copy.time)).max())
        slack = 2 * RELATIVE_ROUNDING + rounding
        p = _correlation_p(float(np.corrcoef(*noise.T)[0, 1]), float(stated[i, j]), slack, len(noise))
        subject = f"{copy.name}, {copy.columns[i]} and {copy.columns[j]}"
        yield Check(subject, "the noise of two columns is not correlated as stated", p)


def _correlation_p(found: float, stated: float, slack: float, rows: int) -> float:
    """Fisher's transform of a correlation; in the far tail it is too small by a factor of less than `1 + 200/n`."""
    with np.errstate(invalid="ignore", divide="ignore"):  # columns that are functions of each other
        low, high = (np.arctanh(np.clip(stated + end, -1, 1)) for end in (-slack, slack))
        transformed = np.arctanh(np.clip(found, -1, 1))
        excess = float(np.nan_to_num(max(transformed - high, low - transformed, 0.0)) * np.sqrt(rows - 3))
    return min(1.0, 2 * float(stats.norm.sf(excess)) * (1 + 200 / rows)) if excess else 1.0


def _pair_checks(first: NoisyCopy, second: NoisyCopy) -> Iterator[Check]:
    """A copy and a less faithful one, in the columns that both have."""
    shared = [column for column in first.columns if column in second.columns]
    if not shared:
        return
    subject = f"{first.name} and {second.name}"
    better, worse = first.take(shared), second.take(shared)
    steps = np.sqrt(np.diag(better.shape) * max(second.time - first.time, 0.0)) / better.step
    if (steps < MIN_STEPS).all():
        difference = np.nan_to_num(worse.noise - better.noise).std(axis=0) / better.step
        yield Check(subject, "copies of the same level differ", float((difference <= 4 * MIN_STEPS).all()))
        return
    tested = [column for column, count in zip(shared, steps, strict=True) if count >= MIN_STEPS]
    for columns in _testable_groups(better, tested):
        before, after = _complete_records(better.take(columns)), _complete_records(worse.take(columns))
        if before is not None and after is not None and len(before.noise) == len(after.noise):
            yield from _increment_checks(subject, before, after)


def _testable_groups(copy: NoisyCopy, columns: list[str]) -> list[list[str]]:
    """All columns as one group if enough records have them all, else each column by itself."""
    return [columns] if _complete_records(copy.take(columns)) is not None else [[column] for column in columns]


def _increment_checks(subject: str, first: NoisyCopy, second: NoisyCopy) -> Iterator[Check]:
    """Tests that the increment from one copy to the next is independent of the noise of the first."""
    axes, slack = _principal_axes(first.noise / first.step, (second.noise - first.noise) / first.step)
    if not axes.shape[1]:
        return  # copies without noise fail the check of the variance
    before, increment = (part / first.step @ axes for part in (first.noise, second.noise - first.noise))
    p = canonical_correlation_p(orthonormal_basis(before), orthonormal_basis(increment), slack)
    yield Check(subject, _GAIN, p)
    yield Check(subject, _GAIN, common_correlation_p(before, increment, slack))
    yield Check(subject, _GAIN, monotone_trend_p(_size(before), _size(increment)))


def _size(values: Floats) -> Floats:
    """The size of each record's noise, as a number that is uniform for normal noise."""
    total = np.square(values).sum(axis=1)
    uniform: Floats = gammainc(values.shape[1] / 2, total * (values.shape[1] / 2 / total.mean()))
    return uniform


def _complete_records(copy: NoisyCopy) -> NoisyCopy | None:
    """The records without missing values; nothing if they are too few to test."""
    complete = ~(np.isnan(copy.noise) | np.isnan(copy.original)).any(axis=1)
    if not copy.columns or complete.sum() < MIN_ROWS * len(copy.columns):
        return None
    return replace(copy, original=copy.original[complete], noise=copy.noise[complete])


def _principal_axes(noise: Floats, increment: Floats) -> tuple[Floats, float]:
    """Directions in which the noise of a copy has variance 1, and the correlation that rounding can cause there.

    Both arguments are in lattice steps. Directions in which either varies by only a few steps are left out, as where
    columns are functions of each other: there, all of it is rounding. In the others, rounding causes a correlation of
    at most one twelfth of a squared step over their variances.
    """
    values, vectors = np.linalg.eigh(noise.T @ noise / len(noise))
    added = np.square(increment @ vectors).mean(axis=0)
    least = np.minimum(values, added)
    kept = least > MIN_STEPS**2
    slack = 1 / (12 * float(least[kept].min())) if kept.any() else 0.0
    axes: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return axes, slack
