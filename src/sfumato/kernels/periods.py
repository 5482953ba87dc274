"""Periods of a series: lags after which noisy values resemble each other, such as a day, or the number of shops."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats, Rows

MOST = 6
"""The most periods that are looked for."""

_LONGEST = 3
"""A period must fit into the series at least so often."""

_REPEATS = 8
"""So many multiples of a period are looked at."""

_SIGNIFICANT = 6.0
"""In standard errors of independent values: a resemblance below this tells nothing."""

_BETTER = 1.2
"""By this factor a multiple of a period must resemble more than the period itself."""

_PER_COLUMN = 2
"""The most periods of one column."""

_TREND = 200
"""Half the width of the moving average that is subtracted first: slow changes are no periods."""


def periods(values: Floats, positions: Rows) -> list[int]:
    """The periods of a series of records at whole positions, the most pronounced first; some positions may be missing.

    The autocorrelations of each column are averaged over the multiples of each lag: noise is independent from record to
    record, and adds nothing to them.
    """
    length = int(positions.max()) + 1
    if length < 4 * _LONGEST:
        return []
    signal, present = np.zeros((length, values.shape[1])), np.zeros(length)
    signal[positions], present[positions] = values, 1.0
    signal -= _moving_average(signal, present) * present[:, None]
    scale = np.sqrt((signal**2).sum(axis=0) / present.sum())
    signal = signal[:, scale > 0] / scale[scale > 0]
    if not signal.shape[1]:
        return []
    size = 1 << (2 * length - 1).bit_length()
    pairs = np.fft.irfft(np.abs(np.fft.rfft(present, size)) ** 2, size)[:length].round()
    found: dict[int, float] = {}
    for column in signal.T:
        products = np.fft.irfft(np.abs(np.fft.rfft(column, size)) ** 2, size)[:length]
        for lag, score in _pronounced(products, pairs, length // _LONGEST).items():
            found[lag] = max(score, found.get(lag, 0.0))
    return sorted(found, key=lambda lag: -found[lag])[:MOST]


def _moving_average(signal: Floats, present: Floats) -> Floats:
    """The average of the values near each position."""
    sums, counts = (np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)]) for x in (signal, present))
    at = np.arange(len(signal))
    first, last = np.maximum(at - _TREND, 0), np.minimum(at + _TREND + 1, len(signal))
    average: Floats = (sums[last] - sums[first]) / np.maximum(counts[last] - counts[first], 1)[:, None]
    return average


def _pronounced(products: Floats, pairs: Floats, longest: int) -> dict[int, float]:
    """The lags whose multiples resemble most, with that in standard errors; no multiple of one, unless better."""
    lags = np.arange(2, longest + 1)
    multiples = np.outer(lags, np.arange(1, _REPEATS + 1))
    inside = multiples < len(products)
    at = np.where(inside, multiples, 0)
    sums, counts = ((some[at] * inside).sum(axis=1) for some in (products, pairs))
    scores, means = sums / np.sqrt(np.maximum(counts, 1)), sums / np.maximum(counts, 1)
    found: dict[int, float] = {}
    for index in np.argsort(-scores)[: 4 * _PER_COLUMN].tolist():
        lag = int(lags[index])
        divisors = [one for one in range(2, lag) if lag % one == 0 and means[one - 2] * _BETTER > means[index]]
        lag = min(divisors, default=lag)  # the period itself rather than its multiple
        if scores[lag - 2] < _SIGNIFICANT or len(found) == _PER_COLUMN:
            break
        found[lag] = float(scores[lag - 2])
    return found
