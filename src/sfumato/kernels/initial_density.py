"""Where a reconstruction begins, and what it is smoothed towards: the simplest that the counts allow."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.mixture_density import MixtureDensity, again, likelihood, simplest
from sfumato.kernels.reconstruction import MIXING, Grid
from sfumato.kernels.uniform_density import UniformDensity, flattest, moved

_MIXING = 0.02
"""As in any reconstruction, but for 100,000 values that start near: it may be more."""
_NARROWEST = 0.4
"""Of a hump, in deviations of the noise."""
_CLEAR = 0.5
"""By how much a plateau must be the better start, of the price of two numbers: to take a hump for one is worse."""


class InitialDensity:
    """For one column a few humps, or a plateau where it is clearly the simpler; for more columns all bins alike."""

    def __init__(self, grid: Grid, counts: Floats) -> None:
        self._shape: MixtureDensity | UniformDensity | None = None
        self.mixing = MIXING
        if len(grid.bins) == 1 and grid.bins[0] > 1 and counts.sum():
            self._channel = grid.column(0)
            self._shape = self._simplest(grid, counts)
            self.mixing = _MIXING * float(np.clip((1e5 / counts.sum()) ** 0.2, 0.25, 2.5))

    def of(self, stack: Floats) -> Floats | None:
        """For each of a stack of counts that differ by chance; none if all bins are alike."""
        if (shape := self._shape) is None:
            return None
        if isinstance(shape, UniformDensity):
            return np.stack([moved(self._channel, counts, shape).chances() for counts in stack])
        return np.stack([again(self._channel, counts, shape).chances() for counts in stack])

    def _simplest(self, grid: Grid, counts: Floats) -> MixtureDensity | UniformDensity:
        """By Schwarz's criterion: the ends of a plateau are two numbers, as are the weight and the top of a hump."""
        middles, seen = ((ends[1:] + ends[:-1]) / 2 for ends in (grid.edges(0), grid.edges(0, wide=True)))
        narrowest = max(_NARROWEST * float(np.sqrt(grid.noise[0, 0])), float(grid.steps[0]) / 2)
        humps = simplest(self._channel, counts, middles, seen, narrowest)
        plateau, price = flattest(self._channel, counts), float(np.log(counts.sum()))
        ahead = plateau.likelihood(self._channel, counts) - likelihood(self._channel, counts, humps.chances())
        return plateau if ahead - (1 - humps.count) * price > _CLEAR * price else humps
