"""Related records: neighbours in an order, a period apart, or with the same public value.

Their noise is independent of that of the record, so that averages of their noisy values predict its original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks._series import Order, Panel, panels, public_orders, shifted, spectral_prediction
from sfumato.kernels import Floats, Rows
from sfumato.kernels.periods import periods

WIDTHS = (1, 2, 4, 10, 50, 200)
"""How many neighbours on either side are averaged."""

_MOST_GROUPINGS = 12
"""The most public columns by which records are grouped: those with the most groups."""

_LAGGED, _LAGS = 2, 3
"""In so many orders so many records before and after are looked at one by one."""

_LARGE, _PARTS = 20, 5
"""Groups of more records are divided into parts."""


@dataclass(frozen=True)
class Related:
    """The mean over the records that are related to each record, without itself, and how many they are."""

    mean: Callable[[Floats], tuple[Floats, Floats]]
    """From values, one row per record, to their means, and the number of records averaged."""


@dataclass(frozen=True)
class Relations:
    """All ways in which the records of a copy are related."""

    groups: list[Related]
    """By a public value or a period: the finest first."""
    orders: list[Order]
    """In which neighbours are related: those that recipients see, and those that public columns give."""
    panels: list[Panel]

    @classmethod
    def of(cls, positions: Floats | None, public: Floats | None, signal: Floats) -> Relations:
        """Find them.

        Args:
            positions: where each record is in the orders that recipients see.
            public: the public columns, as numbers.
            signal: the noisy values, in which periods and resemblances are looked for.

        """
        groupings = [] if public is None else _groupings(public)
        found = [_group(labels) for labels in groupings]
        orders: list[Order] = []
        for column in [] if positions is None else positions.T.astype(np.int64):
            orders.append(Order.of(column))
            for period in periods(signal, column):
                orders.append(Order.of(column % period * (int(column.max()) + 1) + column))
                found.append(_group(column % period))
        if positions is not None:
            first = positions[:, 0].astype(np.int64)
            orders += [Order.of(labels * (int(first.max()) + 1) + first) for labels in groupings[:2]]
        return cls(found, orders + public_orders(public, signal), panels(public, signal.shape[1]))

    @property
    def ways(self) -> list[Related]:
        """Groups, and neighbours in the orders, the widest windows first."""
        return self.groups + [_window(order.rows, width) for width in WIDTHS[::-1] for order in self.orders]

    def predictions(self, values: Floats, noise: Floats) -> Iterator[Floats]:
        """Predictions of all values from related records, each made without the record's own noise.

        Args:
            values: one row per record and one column per number, none missing.
            noise: the variance of the noise of each column.

        """
        centred = values - values.mean(axis=0)
        yield from (panel.prediction(centred) for panel in self.panels)
        yield from (spectral_prediction(order, values, noise) for order in self.orders)
        yield from (shrunk_mean(one, centred, np.zeros(values.shape[1])) for one in self.groups)
        level = np.zeros(values.shape[1])
        for width in WIDTHS:
            yield from (shrunk_mean(_window(order.rows, width), centred, level) for order in self.orders)
        for lag in range(1, _LAGS + 1):
            for order in self.orders[:_LAGGED]:
                yield from (shifted(order, lag, centred), shifted(order, -lag, centred))


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
