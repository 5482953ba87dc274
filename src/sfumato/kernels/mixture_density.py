"""The simplest distribution that noisy counts allow: a few normal humps of one width, on a grid of bins.

What is much finer than the noise is hardly seen in the counts, so there a reconstruction finds what it assumes. It
assumes least when it starts from something simple that the counts do not contradict (Hjort and Glad 1995 call it a
parametric start). How many humps there are is told by Schwarz's criterion; of the widths that are as likely as not,
the greatest within one standard error is taken, since noise makes up humps that are too narrow as often as too wide,
and the narrow ones are the worse error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from sfumato.kernels import Floats

_MOST = 6
_PATIENCE = 2
"""How many more humps may fail to help before no more are tried."""
FLAT = 0.02
"""The share that is spread over all bins, so that nothing is impossible."""
_FAR = 3.0
"""How many lengths of the grid beyond its ends a hump may have its top: its slope is then all there is of it."""


@dataclass(frozen=True)
class MixtureDensity:
    """A mixture over the bins at `places`: weights, tops and the logarithm of the width; no numbers if it is flat."""

    places: Floats
    numbers: Floats
    narrowest: float
    """The least width: humps much narrower than the noise, and the gaps between them, would not be seen."""

    @property
    def count(self) -> int:
        """How many humps there are."""
        return len(self.numbers) // 2

    def chances(self) -> Floats:
        """Of every bin."""
        if not self.count:
            return np.full(len(self.places), 1 / len(self.places))
        shapes, weights, _ = self._shapes()
        found: Floats = shapes @ weights
        return (1 - FLAT) * found + FLAT / len(found)

    def slopes(self) -> tuple[Floats, Floats]:
        """The chances without the flat share, and how they change with each number, a column each."""
        shapes, weights, away = self._shapes()
        found = shapes @ weights
        heavier = (shapes - found[:, None]) * weights
        weighed = shapes * weights
        further = weighed * (away - (shapes * away).sum(axis=0)) / np.exp(self.numbers[-1])
        wider = (weighed * (away**2 - (shapes * away**2).sum(axis=0))).sum(axis=1, keepdims=True)
        return found, np.concatenate([heavier[:, 1:], further, wider], axis=1)

    def _shapes(self) -> tuple[Floats, Floats, Floats]:
        raised = np.append(0.0, self.numbers[: self.count - 1])
        weights = np.exp(raised - raised.max())
        away = (self.places[:, None] - self.numbers[self.count - 1 : -1]) / np.exp(self.numbers[-1])
        shapes = np.exp(-0.5 * (away**2 - (away**2).min(axis=0)))
        return shapes / shapes.sum(axis=0), weights / weights.sum(), away


def simplest(channel: Floats, counts: Floats, places: Floats, seen: Floats, narrowest: float) -> MixtureDensity:
    """The humps that Schwarz's criterion prefers, widened by a standard error.

    Args:
        channel: the chance of each bin of the counts, a row, for a value of each bin of `places`, a column.
        counts: of noisy values.
        places: the middles of the bins of the original.
        seen: the middles of the bins of the counts.
        narrowest: the least width of a hump.

    """
    best, failed = MixtureDensity(places, np.zeros(0), narrowest), 0
    highest = likelihood(channel, counts, best.chances())
    price = np.log(counts.sum())  # half a logarithm for each number: a hump has a weight and a top
    for count in range(1, _MOST + 1):
        humps = _likeliest(channel, counts, best, _starts(counts, places, seen, count))
        score = likelihood(channel, counts, humps.slopes()[0]) - price * count
        if score > highest:
            best, highest, failed = humps, score, 0
        elif (failed := failed + 1) == _PATIENCE:
            break
    return widened(channel, counts, best)


def again(channel: Floats, counts: Floats, humps: MixtureDensity) -> MixtureDensity:
    """As many humps for other counts, from where they were."""
    if not humps.count:
        return humps
    return widened(channel, counts, _likeliest(channel, counts, humps, [humps.numbers]))


def widened(channel: Floats, counts: Floats, humps: MixtureDensity) -> MixtureDensity:
    """The humps with a width greater by its standard error, and the rest as that width makes it likeliest.

    That costs half of one in the logarithm of the likelihood, unless the numbers hardly tell the humps: then they stay.
    """
    if not humps.count:
        return humps
    found, slopes = humps.slopes()
    seen = channel @ slopes
    weights = counts / np.maximum(channel @ found, 1e-100) ** 2
    errors = np.linalg.pinv(seen.T @ (weights[:, None] * seen), hermitian=True)[-1]
    if not 0 < errors[-1] < 1:  # hardly told at all
        return humps
    wider = replace(humps, numbers=humps.numbers + errors / np.sqrt(errors[-1]))
    lost = likelihood(channel, counts, found) - likelihood(channel, counts, wider.slopes()[0])
    return wider if 0 <= lost < 1 else humps


def _likeliest(channel: Floats, counts: Floats, like: MixtureDensity, starts: list[Floats]) -> MixtureDensity:
    """The best that some starts lead to, over the same bins as others, and as wide at least."""
    places = like.places
    low, high, rows = places[0], places[-1], counts.sum()
    count, span = len(starts[0]) // 2, high - low
    bounds = [(-12.0, 12.0)] * (count - 1) + [(low - _FAR * span, high + _FAR * span)] * count
    bounds += [(np.log(like.narrowest), np.log(max(_FAR * span, 2 * like.narrowest)))]

    def unlikely(numbers: Floats) -> tuple[float, Floats]:
        found, slopes = replace(like, numbers=numbers).slopes()
        expected = np.maximum(channel @ found, 1e-300)
        return -float(counts @ np.log(expected)) / rows, -(slopes.T @ (channel.T @ (counts / expected))) / rows

    found = [
        minimize(unlikely, np.clip(start, *np.array(bounds).T), jac=True, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    return replace(like, numbers=min(found, key=lambda end: float(end.fun)).x)


def _starts(counts: Floats, places: Floats, seen: Floats, count: int) -> list[Floats]:
    """Tops where equal shares of the counts lie, and at equal distances."""
    share = (np.arange(count) + 0.5) / count
    below = np.cumsum(counts) / counts.sum()
    mean = counts @ seen / counts.sum()
    spread = np.sqrt(counts @ (seen - mean) ** 2 / counts.sum())
    span = places[-1] - places[0]
    tops = np.clip(np.interp(share, below, seen), places[0], places[-1])
    flat = np.zeros(count - 1)
    return [
        np.concatenate([flat, tops, [np.log(max(0.5 * spread / count, 1e-300))]]),
        np.concatenate([flat, places[0] + span * share, [np.log(0.3 * span / count)]]),
    ]


def likelihood(channel: Floats, counts: Floats, chances: Floats) -> float:
    """The logarithm of that of noisy counts, but for what all chances have in common."""
    return float(counts @ np.log(np.maximum(channel @ chances, 1e-300)))
