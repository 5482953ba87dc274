"""Which columns tell classes apart in the original, as far as a copy shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.mining.features.features import TrainingSet
from sfumato.mining.trees.hyperplanes import PRICES, Sight
from sfumato.mining.trees.joint_density import Plan, cut

_BINS = (64, 48, 24)
_COARSE = 5
_GROUPS, _ROUGH = 5, 12
"""How many groups, with all groups within them, are reconstructed to choose among them, and in how many bins."""
_LIKELY, _DEALS = 4, 5
"""How many of these are judged again, by how many deals of the records into halves: one deal may favour any."""
_FINER, _FEW_DEALS = 18, 2
"""Bins, and deals, by which the price is chosen."""
_WORTH = 0.05
"""What one more column must tell, of all that the largest class leaves to tell: chance adds to it."""
_APART = 0.125
"""The same for columns that are wholly correlated."""
_CELLS = 1 << 17
"""What columns may be cut into together; more would take long, and have too few records each."""
_ENOUGH = 300_000
"""Records to choose by."""
_FEW = 12
"""Columns of which every group is looked at; of more, the best are widened by one."""


@dataclass(frozen=True)
class Choice:
    """Columns, and how much is asked of a change along them."""

    plan: Plan
    price: float


def choose(lesson: TrainingSet, most: int, seed: int | None) -> Choice:
    """The few columns that tell the classes apart best in the original, as far as the copy shows it.

    Some groups look best in the copy. Of these and of what is within them, the one is taken whose classes,
    reconstructed, are purest, unless fewer columns, or such as hang together less, do nearly as well: behind noise it
    is hardly told how those lie that do. The price is the one at which half of the records make the others likeliest.
    """
    lesson.features.check_apart()
    every = -(-len(lesson.labels) // _ENOUGH)
    some = replace(lesson, values=lesson.values[::every], labels=lesson.labels[::every])
    widest, alike = _telling(some, most), _alike(some)
    parts = {part for group in widest for size in range(1, len(group) + 1) for part in combinations(group, size)}
    groups = [part for part in parts if len(part) == 1 or _cells(lesson, part) <= _CELLS]
    seen = {group: Sight.of(some, cut(some, group, _ROUGH)) for group in sorted(groups)}

    left = 1 - float(np.bincount(some.labels).max()) / len(some.labels)
    seed = int(np.random.default_rng(seed).integers(1 << 32))

    def worth(group: tuple[int, ...], deals: int) -> float:
        price = _WORTH * len(group) + _APART * float(alike[np.ix_(group, group)].max())
        return _told(seen[group], seed, deals) - price * left

    likely = sorted(seen, key=lambda group: worth(group, 1), reverse=True)[:_LIKELY]
    best = max(likely, key=lambda group: worth(group, _DEALS))
    finer = Sight.of(some, cut(some, best, _FINER))
    price = max(PRICES, key=lambda price: _foretold(finer, price, seed))
    return Choice(cut(lesson, best, _BINS[len(best) - 1]), price)


def _cells(lesson: TrainingSet, group: tuple[int, ...]) -> int:
    """How many cells some columns are cut into."""
    sizes = [lesson.features.columns[i].size or _BINS[len(group) - 1] for i in group]
    return int(np.prod(sizes, dtype=np.float64))


def _alike(lesson: TrainingSet) -> Floats:
    """How strongly columns of numbers are correlated in the original; 0 for a column with itself."""
    covariance = np.atleast_2d(np.cov(lesson.values.T)) - lesson.features.noise
    told = np.diag(covariance) > 0
    spread = np.sqrt(np.where(told, np.diag(covariance), 1.0))
    found = np.clip(np.abs(covariance / np.outer(spread, spread)), 0, 1)
    known = told & np.array([column.size == 0 for column in lesson.features.columns])
    apart: Floats = np.where(np.outer(known, known) & ~np.eye(len(known), dtype=np.bool_), found, 0.0)
    return apart


def _told(sight: Sight, seed: int, deals: int) -> float:
    """The share of records that would be put in their own class by whoever knew the columns.

    Too much by what chance adds if the same records say which class is likeliest where and how likely it is, and too
    little if either half says one and the other half the other: half way between.
    """
    rng, every = np.random.default_rng(seed), sight.rough_chances()
    apart = 0.0
    for _ in range(deals):
        one, other = (half.rough_chances() for half in sight.halves(rng))
        apart += (_agreed(sight, one, other) + _agreed(sight, other, one)) / 2
    return (_agreed(sight, every, every) + apart / deals) / 2


def _agreed(sight: Sight, said: Floats, scorer: Floats) -> float:
    """The share of records that are, by the one, in the class that is likeliest by the other."""
    return float((sight.density * np.take_along_axis(scorer, said.argmax(axis=0)[None], axis=0)[0]).sum())


def _foretold(sight: Sight, price: float, seed: int) -> float:
    """How likely each half of the records makes the other, over some deals."""
    rng, total = np.random.default_rng(seed), 0.0
    for _ in range(_FEW_DEALS):
        one, other = sight.halves(rng)
        total += one.likelihood(other.chances(price)) + other.likelihood(one.chances(price))
    return total


def _telling(lesson: TrainingSet, most: int) -> list[tuple[int, ...]]:
    """Groups of columns in which classes differ most, beyond chance: by likelihood ratio less degrees of freedom."""
    places = [_coarse(column.size, lesson.values[:, i]) for i, column in enumerate(lesson.features.columns)]
    every, best = range(len(places)), -np.inf
    found: list[tuple[int, ...]] = []
    for size in range(1, min(most, len(places)) + 1):
        wider = combinations(every, size)
        if len(places) > _FEW and found:
            wider = {tuple(sorted((*group, i))) for group in found for i in every if i not in group}  # type: ignore[assignment]
        scored = sorted(((_differ(lesson, [places[i] for i in group]), tuple(group)) for group in wider), reverse=True)
        if scored[0][0] <= best:
            break
        best, found = scored[0][0], [group for _, group in scored[:_GROUPS]]
    return found


def _differ(lesson: TrainingSet, places: list[Rows]) -> float:
    shape = (len(lesson.classes), *(int(p.max()) + 1 for p in places))
    seen = np.bincount(np.ravel_multi_index((lesson.labels, *places), shape), minlength=int(np.prod(shape)))
    counts = seen.reshape(shape[0], -1).astype(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    ratio = counts[counts > 0] * np.log(counts[counts > 0] / expected[counts > 0])
    return float(2 * ratio.sum() - (shape[0] - 1) * ((counts.sum(axis=0) > 0).sum() - 1))


def _coarse(size: int, values: Floats) -> Rows:
    if size:
        return values.astype(np.int64)
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, _COARSE + 1)[1:-1]))
    return np.searchsorted(cuts, values)
