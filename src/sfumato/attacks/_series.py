"""Series in a copy: what records before and after a record, cycles, and the other records of a person or a day tell.

Public columns order records in time although the rows are shuffled. All predictions of a record are made from the
others, whose noise is independent of its own, so that a regression on them does not read that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from sfumato.kernels import Floats, Rows
from sfumato.kernels.evenly_spaced import evenly_spaced

_MOST_COLUMNS = 6
"""The most public columns by which records are ordered: those with the most values."""

_FEWEST = 4
"""The fewest values of a column that orders records."""

_MOST_ORDERS = 6
"""The most orders, those in which neighbours resemble each other the most."""

_TIES = 20
"""With more records of one moment than so many, they are grouped rather than ordered."""

_LAGS, _PAIRS = 3, 20_000
"""Neighbours up to so far apart are compared, so many pairs of them."""

_SPARSE = 3
"""A series has at most so many moments for each record."""

_FILLINGS = 5
"""Moments without a record are filled in so often."""

_SIGNIFICANT = 4.0
"""In standard errors of independent values: neighbours with a lesser resemblance tell nothing."""

_LEAST_BLOCK, _BLOCKS = 8, 64
"""The spectrum is a median over blocks: of so many frequencies at least, and about so many blocks at most."""

_LINE = 4.0
"""A frequency is a line if its power exceeds the level `ln n` and so many times: of noisy series, one in `e^4` has one.
"""

_CYCLES, _FINER, _LONGEST = 12, 4, 50_000
"""So many cycles are looked for, at frequencies so much finer than those of the series, in series of this length."""

_MARGIN = 2.0
"""So many standard errors of a block are not taken for a signal: the filter must not follow the noise."""

_WIDEST, _FEWEST_UNITS, _FILLED = 120, 20, 0.5
"""A table of units by occasions has at most so many columns, at least so many rows, and so large a share of cells."""

_FOLDS = 5
"""A unit is predicted by the covariance of the others."""

_SHRINKAGE = (0.02, 0.1, 0.3, 0.6, 0.9)
"""Shares of the diagonal in the covariance of occasions, to choose from."""


@dataclass(frozen=True)
class Order:
    """Records in an order, with the moment of each: some moments may have none."""

    rows: Rows
    moments: Rows
    """Whole numbers, rising."""

    @classmethod
    def of(cls, moments: Rows) -> Order:
        """Records in the order of their moments; those of the same one follow each other."""
        rows = np.argsort(moments, kind="stable")
        ordered = moments[rows] - moments[rows[0]]
        is_series = (np.diff(ordered) > 0).all() and ordered[-1] < _SPARSE * len(rows)
        return cls(rows, ordered if is_series else np.arange(len(rows)))


def public_orders(public: Floats | None, signal: Floats) -> list[Order]:
    """Orders of records by public columns, and by one within each value of another, whose neighbours resemble."""
    if public is None or not signal.shape[1] or len(signal) <= _LAGS:
        return []
    scaled = (signal - signal.mean(axis=0)) / np.maximum(signal.std(axis=0), 1e-300)
    starts = evenly_spaced(len(signal) - _LAGS, _PAIRS)
    found = [(_resemblance(scaled, order.rows, starts), order) for order in _candidates(public)]
    useful = [one for one in found if one[0] > _SIGNIFICANT / np.sqrt(len(starts))]
    return [order for _, order in sorted(useful, key=lambda one: -one[0])[:_MOST_ORDERS]]


def _candidates(public: Floats) -> Iterator[Order]:
    columns, least = _ranked(public), len(public) / _TIES
    for codes, moments in columns:
        if codes.max() + 1 > least:
            yield Order.of(moments)
    for (groups, _), (codes, moments) in permutations(columns, 2):
        parts, values = int(groups.max()) + 1, int(codes.max()) + 1
        if parts <= len(groups) / 3 and values >= _FEWEST and parts * values > least:
            yield Order.of(groups * (moments.max() + 1) + moments)


def _ranked(public: Floats) -> list[tuple[Rows, Rows]]:
    """The public columns of the most values, as ranks of these and as moments."""
    found = [(np.unique(column, return_inverse=True)[1].ravel(), _moments(column)) for column in public.T]
    useful = [one for one in found if one[0].max() > 0]
    return sorted(useful, key=lambda one: -int(one[0].max()))[:_MOST_COLUMNS]


def _moments(column: Floats) -> Rows:
    """Values as multiples of their least distance where they are, such as hours, and else as ranks."""
    values, ranks = np.unique(column, return_inverse=True)
    steps = np.diff(values)
    if not len(steps) or np.isnan(values).any() or values[-1] - values[0] > _SPARSE * len(values) * steps.min():
        return ranks.ravel()
    slots = np.rint((values - values[0]) / steps.min()).astype(np.int64)
    is_even = np.abs(slots * steps.min() + values[0] - values).max() < 0.01 * steps.min()
    return (slots if is_even else np.arange(len(values)))[ranks.ravel()]


def _resemblance(scaled: Floats, order: Rows, starts: Rows) -> float:
    """The largest autocorrelation of any column in an order, at short lags."""
    first = scaled[order[starts]]
    products = [(first * scaled[order[starts + lag]]).mean(axis=0) for lag in range(1, _LAGS + 1)]
    return float(np.abs(products).max())


def shifted(order: Order, lag: int, values: Floats) -> Floats:
    """The values of the record that is so many later in an order; at its end, zero."""
    out, rows = np.zeros_like(values), order.rows
    if lag > 0:
        out[rows[:-lag]] = values[rows[lag:]]
    else:
        out[rows[-lag:]] = values[rows[:lag]]
    return out


def spectral_prediction(order: Order, values: Floats, noise: Floats) -> Floats:
    """Each value from all others in an order, by its cycles, and by the Wiener filter of what these leave.

    Both are linear smoothers, with `h` on the diagonal of their matrix `H`, so that `(Hy - hy)/(1 - h)` does without
    the value itself. Moments without a record are filled in with what the filter finds.
    """
    ordered = values[order.rows] - values.mean(axis=0)
    length = next_fast_len(int(order.moments[-1]) + 1, real=True)
    cycles = np.column_stack([_cycles(order.moments, y, s, length) for y, s in zip(ordered.T, noise, strict=True)])
    series, rest = np.zeros((length, values.shape[1])), ordered - cycles
    series[order.moments] = rest
    missing = np.ones(length, np.bool_)
    missing[order.moments] = False
    missing[order.moments[-1] + 1 :] = False  # what is added for a fast transform stays zero
    for _ in range(_FILLINGS if missing.any() else 1):
        gain = _gain(series, noise)
        smooth = irfft(rfft(series, axis=0) * gain, length, axis=0)
        series[missing] = smooth[missing]
    own = irfft(gain, length, axis=0)[0]
    out = np.empty_like(values)
    out[order.rows] = cycles + (smooth[order.moments] - own * rest) / np.maximum(1 - own, 1e-6)
    return out


def _cycles(moments: Rows, values: Floats, noise: float, length: int) -> Floats:
    """The sum of the sharp lines of a spectrum, found one by one (matching pursuit), each moment without its value."""
    found, left = np.zeros_like(values), values
    if length > _LONGEST:
        return found
    waves = np.empty((len(values), 0))
    for _ in range(_CYCLES):
        series = np.zeros(length)
        series[moments] = left
        power = np.abs(rfft(series, _FINER * length)) ** 2 / len(values)
        best = int(power.argmax())
        if power[best] <= max(noise, float(np.median(power)) / np.log(2)) * (np.log(length) + _LINE):
            break
        angle = 2 * np.pi * best / (_FINER * length) * moments
        waves = np.column_stack([waves, np.cos(angle), np.sin(angle)])
        base, _ = np.linalg.qr(waves)
        fitted = base @ (base.T @ values)
        left, leverage = values - fitted, np.minimum((base**2).sum(axis=1), 0.9)
        found = (fitted - leverage * values) / (1 - leverage)
    return found


def _gain(series: Floats, noise: Floats) -> Floats:
    """The share of each frequency that passes the filter: what is clearly above the noise, smoothed but for lines."""
    power = np.abs(rfft(series, axis=0)) ** 2 / len(series)
    block = max(_LEAST_BLOCK, len(power) // _BLOCKS)
    floor = np.maximum(_smooth_spectrum(power, block), 1e-300)
    is_line = power > np.maximum(floor, noise) * (np.log(len(series)) + _LINE)
    shape = np.where(is_line, power, floor * (1 - _MARGIN / np.sqrt(block))) - noise
    shape = np.maximum(shape, 0.0)
    gain: Floats = shape / (shape + noise)
    return gain


def _smooth_spectrum(power: Floats, most: int) -> Floats:
    """The level of a periodogram without lines: medians over blocks, which are short at low frequencies."""
    edges = [0]
    while edges[-1] < len(power):
        edges.append(edges[-1] + min(most, max(_LEAST_BLOCK, edges[-1])))
    edges[-1] = len(power)
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    medians = np.array([np.median(power[a:b], axis=0) for a, b in pairwise(edges)])
    at = np.arange(len(power))
    levels: Floats = np.column_stack([np.interp(at, middles, column) for column in medians.T])
    levels /= np.log(2)  # the median of an exponential distribution of mean 1
    return levels


@dataclass(frozen=True)
class Panel:
    """Units, such as persons, on occasions, such as years: one record for each pair, and few pairs without one."""

    units: Rows
    occasions: Rows

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of units and occasions."""
        return int(self.units.max()) + 1, int(self.occasions.max()) + 1

    def prediction(self, values: Floats) -> Floats:
        """Each value from the others of its unit, by the covariance of occasions and columns over the other units."""
        rows, width = self.shape
        columns = values.shape[1]
        table, shown = np.zeros((rows, width, columns)), np.zeros((rows, width, 1))
        np.add.at(table, (self.units, self.occasions), values)
        np.add.at(shown, (self.units, self.occasions), 1.0)
        known = np.repeat(shown, columns, axis=2).reshape(rows, -1)
        flat = table.reshape(rows, -1) / np.maximum(known, 1.0)
        level = flat.sum(axis=0) / np.maximum((known > 0).sum(axis=0), 1)
        flat = (flat - level) * (known > 0)
        fold = np.arange(rows) % _FOLDS
        found = []
        for share in _SHRINKAGE:
            predicted = np.zeros_like(flat)
            for i in range(_FOLDS):
                predicted[fold == i] = _from_others(flat[fold == i], flat[fold != i], share, columns)
            found.append(predicted)
        best = level + min(found, key=lambda one: float((((flat - one) * (known > 0)) ** 2).sum()))
        out: Floats = best.reshape(rows, width, columns)[self.units, self.occasions]
        return out


def _from_others(some: Floats, learned: Floats, share: float, columns: int) -> Floats:
    """The best linear prediction of each occasion of a unit from its other occasions, by the inverse covariance.

    Other columns of the same record are not used, since their noise resembles its own.
    """
    covariance = learned.T @ learned / len(learned)
    diagonal = np.diag(np.maximum(np.diag(covariance), 1e-12))
    inverse = np.linalg.inv((1 - share) * covariance + (share + 1e-9) * diagonal)
    rest, out = some @ inverse, np.empty_like(some)
    for start in range(0, len(inverse), columns):
        own = slice(start, start + columns)
        out[:, own] = some[:, own] - rest[:, own] @ np.linalg.inv(inverse[own, own])
    return out


def panels(public: Floats | None, columns: int) -> list[Panel]:
    """The pairs of public columns that nearly every record has of its own, as units and occasions."""
    if public is None or not columns:
        return []
    found = []
    for (units, _), (occasions, _) in permutations(_ranked(public), 2):
        rows, width = int(units.max()) + 1, int(occasions.max()) + 1
        if rows < _FEWEST_UNITS or width * columns > _WIDEST or len(units) < _FILLED * rows * width:
            continue
        if len(np.unique(units * width + occasions)) > 0.95 * len(units):
            found.append(Panel(units, occasions))
    return found
