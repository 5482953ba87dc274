"""Whether the noise of copies is what their manifests say, and whether each adds to a better one and no more.

The copies of one path are `x + Z(t₁)`, `x + Z(t₂)`, ... with `t₁ < t₂ < ...`. Each noise must be normal, as large and
as correlated as stated, and have nothing to do with the original; and what any copy adds to a better one must have
nothing to do with that one's noise: `Cov(Z(s), Z(t)) = min(s, t)·K` (li2012, eq. 15). The guarantee rests on no more.
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
from sfumato.audit.independence_tests import basis, uncorrelated, unmoved, unrelated
from sfumato.kernels import Floats

DIGITS = 2.0**-11
"""Published covariances are rounded to this share of themselves."""

FEWEST_STEPS = 4.0
"""Noise of fewer lattice steps is not looked at: rounding is too much of it."""

FEWEST_ROWS = 50
"""Records a column that a test needs."""

_GAIN = "what the second adds to the first is not independent of it: together they tell more than the first"


@dataclass(frozen=True)
class Copy:
    """The noise of one copy."""

    name: str
    columns: tuple[str, ...]
    time: float
    """Its variance in units of the path's shape."""
    original: Floats
    """What the noise was added to, a record a row; NaN where missing."""
    noise: Floats
    shape: Floats
    """The stated covariance of the noise at time 1."""
    step: Floats

    @classmethod
    def of(cls, name: str, part: Numbers, placed: Floats) -> Copy:
        """From a copy and the original as noise is added to it."""
        model = part.model
        shape, step = part.covariance / model.noise, np.array(model.step)
        return cls(name, part.columns, model.noise, placed, part.values - placed, shape, step)

    def take(self, columns: Sequence[str]) -> Copy:
        """Some of the columns, and the records that have them all."""
        kept = [self.columns.index(column) for column in columns]
        original, noise = self.original[:, kept], self.noise[:, kept]
        return Copy(
            self.name, tuple(columns), self.time, original, noise, self.shape[np.ix_(kept, kept)], self.step[kept]
        )


def noise_checks(copies: Sequence[Copy]) -> Iterator[Check]:
    """All checks on the copies of one path."""
    ordered = sorted(copies, key=lambda copy: copy.time)
    for copy in ordered:
        yield from (replace(check, copies=(copy.name,)) for check in _alone(copy))
    for first, second in combinations(ordered, 2):
        yield from (replace(check, copies=(first.name, second.name)) for check in _pair(first, second))


def _alone(copy: Copy) -> Iterator[Check]:
    """One copy: its missing values, and the size, law and repetitions of its noise, column by column; then together."""
    for i, column in enumerate(copy.columns):
        there = ~np.isnan(copy.original[:, i])
        subject = f"{copy.name}, {column}"
        if not (there == ~np.isnan(copy.noise[:, i])).all():
            yield Check(subject, "values are missing where the original has some", 0.0)
        noise, original = copy.noise[there, i], copy.original[there, i]
        if len(noise) < FEWEST_ROWS or np.isnan(noise).any():
            continue
        deviation = float(np.sqrt(copy.shape[i, i] * copy.time))
        white, step = noise / deviation, copy.step[i] / deviation
        yield Check(subject, "its noise is not as large as stated", _size_p(white, step))
        yield Check(subject, "its noise is not normal", _law_p(white, step))
        yield Check(subject, "the same noise was used for several records", _repeats_p(white, step))
        yield Check(subject, "its noise is smaller or larger for some values", _steadiness_p(white, original))
    yield from _correlations(copy)
    whole = _whole(copy)
    if whole is not None:
        seen = np.column_stack([whole.original, np.ones(len(whole.original))])
        p = unrelated(basis(seen), basis(whole.noise / whole.step), 0.0)
        yield Check(f"{copy.name}, all columns", "its noise depends on the original", p)


def _size_p(white: Floats, step: float) -> float:
    """The sum of squares is χ², to the digits of the stated variance and the lattice's rounding."""
    total, rows = float(np.square(white).sum()), len(white)
    lower = stats.chi2.cdf(total / (1 - DIGITS), rows)
    upper = stats.chi2.sf(total / (1 + DIGITS + step**2 / 6), rows)
    return float(min(1.0, 2 * min(lower, upper)))


def _law_p(white: Floats, step: float) -> float:
    """The bound of Dvoretzky, Kiefer, Wolfowitz and Massart, less what rounding can do."""
    distance = float(stats.ks_1samp(white, stats.norm.cdf, method="asymp").statistic) - DIGITS - step
    return float(min(1.0, 2 * np.exp(-2 * len(white) * distance**2))) if distance > 0 else 1.0


def _repeats_p(white: Floats, step: float) -> float:
    """Coincidences of size: two of `n` agree with probability `step/(√π·σ)`, and three may agree as well."""
    _, counts = np.unique(np.rint(np.abs(white) / step), return_counts=True)
    pairs, rows = float((counts * (counts - 1.0) / 2).sum()), len(white)
    chance = min(step / np.sqrt(np.pi), 1.0)
    expected = rows * (rows - 1) / 2 * chance * (1 + DIGITS)
    threes = rows**3 * chance**2 * (2 / np.sqrt(3) - 1)
    if expected < 1000:
        return float(stats.poisson.sf(pairs - 1, 2 * expected + 1e-9))
    return float(stats.norm.sf((pairs - expected * 1.01) / np.sqrt(expected + threes)))


def _steadiness_p(white: Floats, original: Floats) -> float:
    """The size of the noise against the value, and against its distance from the middle."""
    size = erf(np.abs(white) / np.sqrt(2))
    low, middle, high = np.quantile(original, [0.005, 0.5, 0.995])
    value = np.clip(original, low, high)  # so that no outlier decides
    return min(1.0, 2 * min(unmoved(size, value), unmoved(size, np.abs(value - middle))))


def _correlations(copy: Copy) -> Iterator[Check]:
    """Fisher's transform of each pair of columns, against the stated correlation to its published digits."""
    sizes = np.sqrt(np.diag(copy.shape))
    stated = copy.shape / np.outer(sizes, sizes)
    for i, j in combinations(range(len(copy.columns)), 2):
        there = ~np.isnan(copy.noise[:, [i, j]]).any(axis=1)
        noise = copy.noise[there][:, [i, j]]
        if len(noise) < FEWEST_ROWS or not noise.std(axis=0).all():
            continue
        coarse = float((copy.step[[i, j]] ** 2 / (np.diag(copy.shape)[[i, j]] * copy.time)).max())
        p = _fisher_p(float(np.corrcoef(*noise.T)[0, 1]), float(stated[i, j]), 2 * DIGITS + coarse, len(noise))
        subject = f"{copy.name}, {copy.columns[i]} and {copy.columns[j]}"
        yield Check(subject, "the noise of two columns hangs together otherwise than stated", p)


def _fisher_p(found: float, stated: float, slack: float, rows: int) -> float:
    """Of a correlation; far out the transform is too sure of itself by a factor of less than `1 + 200/n`."""
    with np.errstate(invalid="ignore", divide="ignore"):  # columns that follow from each other
        low, high = (np.arctanh(np.clip(stated + end, -1, 1)) for end in (-slack, slack))
        seen = np.arctanh(np.clip(found, -1, 1))
        apart = float(np.nan_to_num(max(seen - high, low - seen, 0.0)) * np.sqrt(rows - 3))
    return min(1.0, 2 * float(stats.norm.sf(apart)) * (1 + 200 / rows)) if apart else 1.0


def _pair(first: Copy, second: Copy) -> Iterator[Check]:
    """A copy and a less faithful one, in the columns that both show."""
    shared = [column for column in first.columns if column in second.columns]
    if not shared:
        return
    subject = f"{first.name} and {second.name}"
    ours, theirs = first.take(shared), second.take(shared)
    steps = np.sqrt(np.diag(ours.shape) * max(second.time - first.time, 0.0)) / ours.step
    if (steps < FEWEST_STEPS).all():
        apart = np.nan_to_num(theirs.noise - ours.noise).std(axis=0) / ours.step
        yield Check(subject, "copies of the same level differ", float((apart <= 4 * FEWEST_STEPS).all()))
        return
    fine = [column for column, count in zip(shared, steps, strict=True) if count >= FEWEST_STEPS]
    groups = [fine] if _whole(ours.take(fine)) is not None else [[column] for column in fine]
    for columns in groups:
        before, after = _whole(ours.take(columns)), _whole(theirs.take(columns))
        if before is not None and after is not None and len(before.noise) == len(after.noise):
            yield from _independence(subject, before, after)


def _independence(subject: str, first: Copy, second: Copy) -> Iterator[Check]:
    """Whether the increment from one copy to the next has anything to do with the noise of the first."""
    axes, slack = _axes(first.noise / first.step, (second.noise - first.noise) / first.step)
    before, increment = (part / first.step @ axes for part in (first.noise, second.noise - first.noise))
    if not axes.shape[1]:
        return  # without noise, which is told elsewhere
    yield Check(subject, _GAIN, unrelated(basis(before), basis(increment), slack))
    yield Check(subject, _GAIN, uncorrelated(before, increment, slack))
    yield Check(subject, _GAIN, unmoved(_size(before), _size(increment)))


def _size(values: Floats) -> Floats:
    """How large each record's noise is, as a number that is uniform for normal noise."""
    total = np.square(values).sum(axis=1)
    uniform: Floats = gammainc(values.shape[1] / 2, total * (values.shape[1] / 2 / total.mean()))
    return uniform


def _whole(copy: Copy) -> Copy | None:
    """The records that lack nothing; none if they are too few."""
    whole = ~(np.isnan(copy.noise) | np.isnan(copy.original)).any(axis=1)
    if not copy.columns or whole.sum() < FEWEST_ROWS * len(copy.columns):
        return None
    return Copy(copy.name, copy.columns, copy.time, copy.original[whole], copy.noise[whole], copy.shape, copy.step)


def _axes(noise: Floats, increment: Floats) -> tuple[Floats, float]:
    """Directions, of one size each, in which the noise of a copy varies, and a slack; both are in lattice steps.

    Directions in which either is but a few steps are left out, as where columns follow from each other: rounding is
    all there is. In the others it leaves a correlation of at most the slack, one twelfth of a squared step over their
    variances.
    """
    values, vectors = np.linalg.eigh(noise.T @ noise / len(noise))
    added = np.square(increment @ vectors).mean(axis=0)
    least = np.minimum(values, added)
    kept = least > FEWEST_STEPS**2
    slack = 1 / (12 * float(least[kept].min())) if kept.any() else 0.0
    axes: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return axes, slack
