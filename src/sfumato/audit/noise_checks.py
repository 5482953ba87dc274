"""Whether the noise of copies is what their manifests say, and whether each adds to the one before it and no more.

The copies of one path, from the best on, are `x + D₁`, `x + D₁ + D₂`, ...: sound increments are normal, as large and as
correlated as stated, and independent of the original and of each other. That is all that the guarantee rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy import stats

from sfumato.attacks import Numbers
from sfumato.audit.checks import Check
from sfumato.kernels import Floats

DIGITS = 2.0**-11
"""Published covariances are rounded to this share of themselves."""

FEWEST_STEPS = 4.0
"""An increment of fewer lattice steps is not looked at: rounding is too much of it."""

FEWEST_ROWS = 50

_GAIN = "what the second adds to the first is not independent of it: together they tell more than the first"


@dataclass(frozen=True)
class Copy:
    """The noise of one copy on a path."""

    name: str
    time: float
    """Its variance in units of the path's shape."""
    noise: Floats
    """A record a row; no missing values."""


@dataclass(frozen=True)
class Path:
    """The copies of one path, the best first, and what their manifests say."""

    columns: tuple[str, ...]
    original: Floats
    copies: tuple[Copy, ...]
    shape: Floats
    """The covariance of the noise at time 1."""
    step: Floats

    def increments(self) -> tuple[list[Copy], list[int]]:
        """What each copy adds to the one before, where that is more than rounding, and the columns where it is."""
        sizes = np.sqrt(np.diag(self.shape)) / self.step
        found: list[Copy] = []
        last = Copy("", 0.0, np.zeros_like(self.original))
        for copy in self.copies:
            gap = copy.time - last.time
            if (sizes * np.sqrt(max(gap, 0.0)) >= FEWEST_STEPS).any():
                found.append(Copy(copy.name, gap, copy.noise - last.noise))
                last = copy
        least = min((part.time for part in found), default=0.0)
        return found, [i for i, size in enumerate(sizes) if size * np.sqrt(least) >= FEWEST_STEPS]


def path_of(named: Sequence[tuple[str, Numbers]], placed: Floats) -> Path | None:
    """The noise of the copies of one path, in the columns that all of them show; none if too few records are whole.

    Args:
        placed: the original as noise is added to it, in the columns of the first copy.

    """
    ordered = sorted(named, key=lambda item: item[1].model.noise)
    first = ordered[0][1]
    columns = tuple(name for name in first.columns if all(name in part.columns for _, part in ordered))
    values = [part.values[:, [part.columns.index(name) for name in columns]] for _, part in ordered]
    places = [named[0][1].columns.index(name) for name in columns]
    original = placed[:, places]
    whole = ~np.isnan(original).any(axis=1)
    if not columns or whole.sum() < FEWEST_ROWS * len(columns):
        return None
    kept = [first.columns.index(name) for name in columns]
    return Path(
        columns,
        original[whole],
        tuple(
            Copy(name, part.model.noise, seen[whole] - original[whole])
            for (name, part), seen in zip(ordered, values, strict=True)
        ),
        first.covariance[np.ix_(kept, kept)] / first.model.noise,
        np.array(first.model.step)[kept],
    )


def noise_checks(path: Path) -> Iterator[Check]:
    """All checks on one path."""
    for copy in path.copies:
        yield from _sizes(path, copy)
        yield from _correlations(path, copy)
    yield from _repeats(path)
    yield from _twins(path)
    increments, columns = path.increments()
    if not columns:
        return
    original = _basis(np.column_stack([path.original, np.ones(len(path.original))]))
    white, slack = _whitening(path, increments, columns)
    earlier: list[tuple[str, Floats, Floats]] = []
    total = np.zeros((len(path.original), white.shape[1]))
    for part in increments:
        flat = part.noise[:, columns] @ white
        basis = _basis(flat)
        yield Check(f"{part.name}, all columns", "its noise depends on the original", _unrelated(original, basis, 0.0))
        for name, span, before in earlier:
            subject = f"{name} and {part.name}"
            yield Check(subject, _GAIN, _unrelated(span, basis, slack))
            yield Check(subject, _GAIN, _uncorrelated(before, flat, slack))
        total = total + flat
        earlier.append((part.name, _basis(total), total))


def _twins(path: Path) -> Iterator[Check]:
    """Copies of one level, but for rounding, are the same copy."""
    for before, copy in pairwise(path.copies):
        steps = np.sqrt(np.diag(path.shape) * (copy.time - before.time)) / path.step
        if (steps < FEWEST_STEPS).all():
            apart = (copy.noise - before.noise).std(axis=0) / path.step
            same = bool((apart <= 4 * FEWEST_STEPS).all())
            yield Check(f"{before.name} and {copy.name}", "copies of the same level differ", 1.0 if same else 0.0)


def _sizes(path: Path, part: Copy) -> Iterator[Check]:
    """The variance and the law of each column of a copy's noise."""
    for i, column in enumerate(path.columns):
        stated = path.shape[i, i] * part.time
        rounding = path.step[i] ** 2 / 6 / stated
        total, rows = float(np.square(part.noise[:, i]).sum() / stated), len(part.noise)
        lower = stats.chi2.cdf(total / (1 - DIGITS), rows)
        upper = stats.chi2.sf(total / (1 + DIGITS + rounding), rows)
        yield Check(
            f"{part.name}, {column}", "its noise is not as large as stated", float(min(1.0, 2 * min(lower, upper)))
        )
        white = part.noise[:, i] / np.sqrt(stated)
        distance = float(stats.ks_1samp(white, stats.norm.cdf, method="asymp").statistic)
        # Dvoretzky, Kiefer, Wolfowitz and Massart, less what the rounding of variance and lattice can do
        distance -= DIGITS + path.step[i] / np.sqrt(stated)
        law = 2 * np.exp(-2 * rows * distance**2) if distance > 0 else 1.0
        yield Check(f"{part.name}, {column}", "its noise is not normal", float(min(1.0, law)))


def _correlations(path: Path, part: Copy) -> Iterator[Check]:
    """Fisher's transform of each pair of columns, against the stated correlation to its published digits."""
    sizes = np.sqrt(np.diag(path.shape))
    stated = path.shape / np.outer(sizes, sizes)
    found = np.corrcoef(part.noise.T).reshape(stated.shape)
    for i, j in combinations(range(len(path.columns)), 2):
        slack = 2 * DIGITS + float((path.step[[i, j]] ** 2 / (path.shape[[i, j], [i, j]] * part.time)).max())
        with np.errstate(invalid="ignore", divide="ignore"):  # columns that follow from each other
            low, high = (np.arctanh(np.clip(stated[i, j] + end, -1, 1)) for end in (-slack, slack))
            seen = np.arctanh(np.clip(found[i, j], -1, 1))
            apart = np.nan_to_num(max(seen - high, low - seen, 0.0)) * np.sqrt(len(part.noise) - 3)
        yield Check(
            f"{part.name}, {path.columns[i]} and {path.columns[j]}",
            "the noise of two columns hangs together otherwise than stated",
            2 * float(stats.norm.sf(apart)) if apart else 1.0,
        )


def _basis(values: Floats) -> Floats:
    """Orthonormal columns that span what a matrix varies in."""
    sizes = np.linalg.norm(values, axis=0)
    scaled = values / np.where(sizes > 0, sizes, 1.0)
    found, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = found > 1e-9 * found[-1]
    basis: Floats = scaled @ (vectors[:, kept] / np.sqrt(found[kept]))
    return basis


def _whitening(path: Path, increments: Sequence[Copy], columns: list[int]) -> tuple[Floats, float]:
    """What turns the noise of the best copy into columns of variance 1 without correlation, and a slack.

    Directions in which the noise is but a few lattice steps are left out, as where columns follow from each other:
    rounding is all there is. In the others it leaves a correlation between increments of at most the slack, one
    twelfth of a squared step over their variance.
    """
    step = path.step[columns]
    steps = increments[0].noise[:, columns] / step
    found, vectors = np.linalg.eigh(steps.T @ steps / len(steps))
    ratio = min(part.time for part in increments) / increments[0].time
    kept = found * ratio > FEWEST_STEPS**2
    kept[-1] = True
    white: Floats = (vectors[:, kept] / np.sqrt(found[kept])) / step[:, None]
    return white, 1 / (12 * float(found[kept].min()) * ratio)


def _unrelated(first: Floats, second: Floats, slack: float) -> float:
    """Whether two subspaces are as unrelated as random ones: `n` times the squared cosines between them is χ².

    Args:
        slack: the largest correlation that the rounding of the lattice leaves.

    """
    rows, freedom = len(first), first.shape[1] * second.shape[1]
    total = rows * float(np.square(first.T @ second).sum())
    allowed = rows * slack**2 * min(first.shape[1], second.shape[1])
    law = stats.ncx2(freedom, allowed) if allowed > 1e-6 else stats.chi2(freedom)
    return float(law.sf(total))


def _uncorrelated(first: Floats, second: Floats, slack: float) -> float:
    """The same for a share of the first in the second, the same in all columns: one correlation over all cells."""
    product = float(np.vdot(first, second) / np.sqrt(np.vdot(first, first) * np.vdot(second, second)))
    product = float(np.clip(product, -1 + 1e-12, 1 - 1e-12))
    apart = max(abs(np.arctanh(product)) - np.arctanh(slack), 0.0) * np.sqrt(first.size - 3)
    return 2 * float(stats.norm.sf(apart)) if apart else 1.0


def _repeats(path: Path) -> Iterator[Check]:
    """Records with the same noise: two agree in all cells of a copy with probability at most `Π step/(2√π·σ)/√|R|`."""
    sizes = np.sqrt(np.diag(path.shape))
    determinant = float(np.linalg.det(path.shape / np.outer(sizes, sizes)))
    if determinant < 1e-6:  # columns that follow from each other repeat together
        return
    rows, copy = len(path.original), path.copies[-1]
    marks = np.zeros(rows, np.uint64)
    for cells in np.rint(copy.noise / path.step).T:
        marks = (marks ^ cells.astype(np.int64).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        marks ^= marks >> np.uint64(29)
    _, counts = np.unique(marks, return_counts=True)
    pairs = float((counts * (counts - 1.0) / 2).sum())
    chances = path.step / (2 * np.sqrt(np.pi * copy.time) * sizes)
    expected = rows * (rows - 1) / 2 * min(float(np.prod(chances)) / np.sqrt(determinant), 1.0)
    # Poisson's law is that of rare coincidences; where they are not rare, a large excess is asked for
    p = 1.0 if pairs <= 2 * expected + 20 else float(stats.poisson.sf(pairs - 1, max(expected, 1e-9)))
    yield Check(copy.name, "the same noise was used for several records", p)
