"""Related records: neighbours in an order, a period apart, or with the same public value.

Their noise is independent of that of the record, so that averages of their noisy values predict its original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.periods import periods

WIDTHS = (2, 10, 50, 200)
"""How many neighbours on either side are averaged."""

_MOST_GROUPINGS = 12
"""The most public columns by which records are grouped: those with the most groups."""

_LARGE, _PARTS = 20, 5
"""Groups of more records are divided into parts."""


@dataclass(frozen=True)
class Related:
    """The mean over the records that are related to each record, without itself, and how many they are."""

    mean: Callable[[Floats], tuple[Floats, Floats]]
    """From values, one row per record, to their means, and the number of records averaged."""


def related(positions: Floats | None, public: Floats | None, signal: Floats) -> list[Related]:
    """All ways in which the records of a copy are related: by groups first, then by orders, widest first.

    Args:
        positions: where each record is in the orders that recipients see.
        public: the public columns, as numbers.
        signal: the noisy values, in which periods are looked for.

    """
    groupings = [] if public is None else _groupings(public)
    found = [_group(labels) for labels in groupings]
    if positions is None:
        return found
    orders: list[Rows] = []
    for column in positions.T.astype(np.int64):
        orders.append(np.argsort(column, kind="stable"))
        for period in periods(signal, column):
            orders.append(np.lexsort((column, column % period)))
            found.append(_group(column % period))
    orders += [np.lexsort((positions[:, 0], labels)) for labels in groupings[:2]]
    return found + [_window(order, width) for width in WIDTHS[::-1] for order in orders]


def _groupings(public: Floats) -> list[Rows]:
    """The groups of records with the same value in a public column, or in all; the finest first."""
    columns = [public[:, [i]] for i in range(public.shape[1])] + ([public] if public.shape[1] > 1 else [])
    labels = [np.unique(column, axis=0, return_inverse=True)[1].ravel() for column in columns]
    useful = [one for one in labels if 1 < one.max() + 1 <= len(one) / 2]
    return sorted(useful, key=lambda one: -int(one.max()))[:_MOST_GROUPINGS]


def _group(labels: Rows) -> Related:
    """The means of groups without the record itself; of large groups, without the part that it belongs to.

    The mean of all others is a linear function of the record's own value, the same for a whole group, from which a
    regression would read that value.
    """
    size, rows = int(labels.max()) + 1, np.arange(len(labels))
    large = np.bincount(labels, minlength=size)[labels] > _LARGE
    parts = labels * _PARTS + (rows * 2654435761 >> 7) % _PARTS
    own = np.unique(np.where(large, parts, _PARTS * size + rows), return_inverse=True)[1].ravel()
    counts = (np.bincount(labels, minlength=size)[labels] - np.bincount(own)[own]).astype(np.float64)

    def mean(values: Floats) -> tuple[Floats, Floats]:
        sums = np.column_stack([np.bincount(labels, column, size)[labels] for column in values.T])
        without = np.column_stack([np.bincount(own, column)[own] for column in values.T])
        return (sums - without) / np.maximum(counts, 1)[:, None], counts

    return Related(mean)


def _window(order: Rows, width: int) -> Related:
    rows = np.arange(len(order))
    first, last = np.maximum(rows - width, 0), np.minimum(rows + width + 1, len(order))

    def mean(values: Floats) -> tuple[Floats, Floats]:
        ordered = values[order]
        sums = np.vstack([np.zeros(values.shape[1]), np.cumsum(ordered, axis=0)])
        out, counts = np.empty_like(ordered), np.empty(len(order))
        counts[order] = last - first - 1
        out[order] = (sums[last] - sums[first] - ordered) / np.maximum(last - first - 1, 1)[:, None]
        return out, counts

    return Related(mean)


def shrunk_mean(one: Related, values: Floats, centre: Floats) -> Floats:
    """The mean of related records, drawn to the overall one where few records or little resemblance speak for it.

    The covariance of a record with the mean of its relatives is the variance between groups (a random-effects model).
    """
    mean, counts = one.mean(values)
    known = counts > 0
    around, own = mean - centre, values - centre
    between = np.maximum((around * own)[known].mean(axis=0), 0.0) if known.any() else np.zeros(values.shape[1])
    within = np.maximum((own**2).mean(axis=0) - between, 1e-300)
    weight = counts[:, None] * between / (counts[:, None] * between + within)
    shrunk: Floats = centre + weight * np.where(known[:, None], around, 0.0)
    return shrunk


def one_hot(codes: Sequence[Rows], most: int) -> Floats:
    """The most frequent categories of some attributes as columns of zeros and ones."""
    columns = []
    for one in codes:
        shown = np.bincount(one[one >= 0]) if (one >= 0).any() else np.zeros(0)
        columns += [(one == code).astype(np.float64) for code in np.argsort(-shown)[:most]]
    return np.column_stack(columns) if columns else np.empty((len(codes[0]) if codes else 0, 0))
