"""Normal scores of records: drawn by the copula within the intervals of the values, then brought to their margin.

Where the copula does not fit a table exactly, scores that are drawn given each other are not quite normal within the
interval of a value. A piecewise linear map of each score, which moves no score to another value, makes them so; only
then does a copy have the margins of the original at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.kernels import NULL, Floats, Rows, Words, bins
from sfumato.kernels.normal import clamped, lower_tail, quantile, tables
from sfumato.kernels.score_arrays import DRAWS_PER_BLOCK, FURTHEST, NARROW
from sfumato.kernels.scores import conditional, first_scores, redraw_scores
from sfumato.keys.stream import Stream
from sfumato.tables.margin import Cells, Margin

SWEEPS = 1
"""How often each score is drawn anew given all others, after the first draw."""

_CELLS = 8
"""The number of cells into which the interval of a value is divided to find the distribution of scores in it."""

_LONG, _FEW = 0.6, 0.02
"""Scores are drawn anew if a larger share of records than the second has intervals longer than the first."""

_FEWEST = 64
"""The fewest draws in an interval from which a map is made."""

Knots = tuple[tuple[float, ...], tuple[float, ...]]
"""Where the map of a score bends, and what it maps these scores to."""


@dataclass(frozen=True, eq=False)
class ScoreSampler:
    """Draws the scores of records: those of all columns, then those of missing values, where there are any."""

    margins: tuple[Margin, ...]
    correlation: Floats
    maps: tuple[Knots, ...] = field(default=())

    @cached_property
    def with_missing(self) -> list[int]:
        """The columns that have a second score, for missing values."""
        return [i for i, margin in enumerate(self.margins) if margin.missing is not None]

    @property
    def size(self) -> int:
        """The number of scores."""
        return len(self.margins) + len(self.with_missing)

    def addresses(self, cells: Sequence[Cells], rows: Words, stream: Stream) -> Words:
        """The addresses of records: a change in one column redraws all scores, since the others would show it."""
        return stream.addresses(rows, [_word(one) for one in cells])

    def draw(self, cells: Sequence[Cells], addresses: Words, stream: Stream) -> Floats:
        """The scores of some records, one row per score."""
        ends = [(one.lower, one.upper) for one in cells]
        ends += [self.margins[i].missing_interval(cells[i].missing) for i in self.with_missing]
        lower, upper = (np.stack([ends[i][side] for i in self._order]) for side in (0, 1))
        drawn = np.empty_like(lower)
        root, *conditionals = self._conditionals
        first_scores(lower, upper, _blocks(stream, "first", addresses, self.size), root, tables(), drawn)
        wide = self._wide_scores
        for sweep in range(SWEEPS if len(wide) else 0):
            blocks = _blocks(stream, f"sweep/{sweep}", addresses, len(wide))
            redraw_scores(lower, upper, blocks, wide, tuple(conditionals), tables(), drawn)
        out = np.empty_like(drawn)
        for i, score in zip(self._order, drawn, strict=True):
            bends = self._bends[i] if self._bends else None
            if bends is None:
                out[i] = score
            else:
                bins.mapped(score, *bends, out[i])
        return out

    def count(self, score: int, drawn: Floats, often: Rows) -> Rows:
        """How many draws of one score fall into each cell of the wide intervals of its values.

        `often` is how often each draw counts.
        """
        lower, upper, ends = self._wide[score]
        which = np.searchsorted(lower, drawn, side="right") - 1
        inside = (which >= 0) & (drawn <= np.append(upper, FURTHEST)[which])
        cells = np.searchsorted(ends, drawn[inside], side="right") - 1
        return np.bincount(cells, often[inside], minlength=len(ends)).astype(np.int64)

    def mapped(self, score: int, counts: Rows) -> Knots:
        """The map of one score that makes it normal, from the number of draws in each cell."""
        if not len(counts):
            return (), ()
        before, after = [-FURTHEST], [-FURTHEST]
        even = np.arange(1, _CELLS) / _CELLS
        for low, high, held in zip(*self._wide[score][:2], counts.reshape(-1, _CELLS), strict=True):
            total = int(held.sum())
            shares = np.cumsum(held)[:-1] / total if total >= _FEWEST else even
            before += [low, *_at_share(low, high, even), high]
            after += [low, *_at_share(low, high, shares), high]
        rising = [i for i in range(1, len(before)) if before[i - 1] < before[i] < FURTHEST]
        first, last = ((-FURTHEST, *(float(ends[i]) for i in rising), FURTHEST) for ends in (before, after))
        return first, last

    @cached_property
    def _wide(self) -> list[tuple[Floats, Floats, Floats]]:
        """Of each score, the ends of the wide intervals of its values, and the lower ends of the cells in them."""
        made = []
        for score in range(self.size):
            lower, upper = self._wide_intervals(score)
            parts = _at_share(lower[:, None], upper[:, None], np.arange(_CELLS) / _CELLS)
            made.append((lower, upper, parts.reshape(-1)))
        return made

    def _wide_intervals(self, score: int) -> tuple[Floats, Floats]:
        """The wide intervals of the values of a score; they may have gaps between them."""
        if score >= len(self.margins):
            end = self.margins[self.with_missing[score - len(self.margins)]].missing_end
            return np.array([-FURTHEST, end]), np.array([end, FURTHEST])
        margin = self.margins[score]
        few = [range(low, high + 1) for low, high in zip(margin.low, margin.high, strict=True) if high - low < _CELLS]
        points = np.array([point for some in few for point in some], np.int64)
        cells = margin.counted(points, np.zeros(len(points), np.bool_))
        wide = cells.upper - cells.lower > NARROW
        return cells.lower[wide], cells.upper[wide]

    @cached_property
    def _order(self) -> list[int]:
        """Scores that are known best are drawn first, and those that leave most to be drawn last."""
        points = [sum(high - low + 1 for low, high in zip(m.low, m.high, strict=True)) for m in self.margins]
        sizes = np.array([*points, *(1 for _ in self.with_missing)], np.float64)
        order: list[int] = np.lexsort([np.arange(len(sizes)), -np.minimum(sizes, 1024)]).tolist()
        return order

    @cached_property
    def _bends(self) -> list[tuple[Floats, Floats, Any] | None]:
        """The maps as arrays, with guides to where they bend."""
        knots = [(np.array(before), np.array(after)) for before, after in self.maps]
        return [(before, after, bins.guide(before)) if len(before) else None for before, after in knots]

    @cached_property
    def _wide_scores(self) -> Rows:
        """The scores that are drawn more than once, by their number in the order of drawing.

        In shorter intervals than `_LONG`, those drawn after a score have next to no influence on it.
        """
        return np.array([i for i, score in enumerate(self._order) if self._long_share(score) > _FEW], np.int64)

    def _long_share(self, score: int) -> float:
        """The share of records whose value has a long interval of this score."""
        lower, upper, _ = self._wide[score]
        long = upper - lower > _LONG
        return float(sum(lower_tail(upper[long]) - lower_tail(lower[long])))

    @cached_property
    def _conditionals(self) -> tuple[Floats, Floats, Floats]:
        """The root of the correlations in the order of drawing, and the distribution of each score given all others."""
        ordered = self.correlation[np.ix_(self._order, self._order)]
        return np.linalg.cholesky(ordered).astype(np.float64), *conditional(ordered)


def _at_share(low: Any, high: Any, share: Floats) -> Floats:
    """The scores up to which these shares of a normal distribution between two scores lie."""
    first, last = lower_tail(low), lower_tail(high)
    inside = first + share * (last - first)
    known = (inside > 0) & (inside < 1)
    found = clamped(quantile(np.where(known, inside, 0.5)), low, high)
    ends: Floats = np.where(known, found, np.where(inside <= 0, low, high))
    return ends


def _word(cells: Cells) -> Words:
    """The values of a column as words to address them by."""
    words = cells.integers.view(np.uint64)
    return np.where(cells.missing, NULL, words) if cells.missing.any() else words


def _blocks(stream: Stream, lane: str, addresses: Words, draws: int) -> Words:
    """Blocks of random bits for so many draws of each record."""
    count = -(-draws // DRAWS_PER_BLOCK)
    return np.stack([stream.bits(f"{lane}/{block}", addresses) for block in range(count)])
