"""Values of margin-preserving columns by known records that look alike: their values, weighted by how likely a copy is.

A mean of scores, read off the margin, is not the best guess of a category: the votes of known records are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.audit.known_scores import KnownScores
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.centres import Centres
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.threads import in_threads

_WIDTHS = (0.05, 0.15, 0.3, 0.5)
"""How far records are from a known one, in deviations; the likeliest is taken."""

_CHOSEN_BY = 600
"""The most records by which the width is chosen."""

_BLOCK = 400
"""The number of records that are compared with all known ones at once."""

_FEWEST = 50
"""The fewest known records whose values say something."""


@dataclass(frozen=True)
class KnownColumn:
    """The integers of a margin that known records have in one column, where they are present."""

    integers: Floats
    present: Mask
    is_category: bool


def kernel_values(
    shown: Floats, known: KnownScores, columns: Mapping[str, KnownColumn], rows: Rows
) -> dict[str, list[Floats]]:
    """The values that known records suggest for some records of a copy, of which the scores are shown."""
    if len(known.drawn) // known.times < _FEWEST:
        return {name: [] for name in columns}
    observed = np.nan_to_num(shown)
    coarse = np.maximum(1 + known.model.noise - (observed**2).mean(axis=0), 0)  # what a value leaves open of its score
    noise, correlation = known.noise + np.diag(coarse + 1e-3), known.noise / known.model.noise
    even = np.full(len(known.drawn), 1 / len(known.drawn))
    tried = [Centres(known.drawn, correlation, noise, width, 0.0, even) for width in _WIDTHS]
    some = observed[rows[evenly_spaced(len(rows), _CHOSEN_BY)]]
    best = max(tried, key=lambda centres: float(centres.responsibilities(some, [])[1].mean()))
    votes = {name: _votes(column, known.times) for name, column in columns.items()}
    stacked = np.hstack([*votes.values()])
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
    sums = np.vstack(in_threads(lambda block: best.responsibilities(observed[block], [])[0] @ stacked, blocks))
    ends = np.cumsum([vote.shape[1] for vote in votes.values()])[:-1]
    parts = zip(columns, np.split(sums, ends, axis=1), strict=True)
    return {name: [_value(columns[name], part)] for name, part in parts}


def _votes(column: KnownColumn, times: int) -> Floats:
    """What a known record adds to the sums: a vote for its category, or its number, and that it has one."""
    present = column.present.astype(np.float64)
    if column.is_category:
        votes = (column.integers[:, None] == np.arange(column.integers.max() + 1)) * present[:, None]
    else:
        votes = np.column_stack([np.where(column.present, column.integers, 0.0), present])
    tiled: Floats = np.tile(votes, (times, 1))
    return tiled


def _value(column: KnownColumn, sums: Floats) -> Floats:
    """The category with most votes, or the mean number."""
    if column.is_category:
        likeliest: Floats = sums.argmax(axis=1).astype(np.float64)
        return likeliest
    mean: Floats = sums[:, 0] / np.maximum(sums[:, 1], 1e-300)
    return mean
