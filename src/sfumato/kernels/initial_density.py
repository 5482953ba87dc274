"""The initial density of a deconvolution, towards which it is smoothed: the simplest density that the counts allow."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.mixture_density import MixtureDensity, fit_mixture, log_likelihood
from sfumato.kernels.reconstruction import SMOOTHING, Grid
from sfumato.kernels.uniform_density import UniformDensity, fit_uniform

_SMOOTHING = 0.02
"""The smoothing for 100,000 values: more than `SMOOTHING`, since the initial density is already near."""
_LEAST_WIDTH = 0.4
"""The least width of a mixture component, in noise deviations."""
_MARGIN = 0.5
"""The share of the penalty of two parameters by which a uniform density must be better than a mixture.

To mistake a mixture component for a uniform density is the worse error.
"""


class InitialDensity:
    """The initial density of a reconstruction.

    For one column it is a Gaussian mixture, or a uniform density between two ends where that is clearly simpler; for
    several columns it is uniform over all bins.
    """

    def __init__(self, grid: Grid, counts: Floats) -> None:
        self._density: MixtureDensity | UniformDensity | None = None
        self.smoothing = SMOOTHING
        if len(grid.bins) == 1 and grid.bins[0] > 1 and counts.sum():
            self._channel = grid.channel_matrix(0)
            self._density = self._simplest(grid, counts)
            self.smoothing = _SMOOTHING * float(np.clip((1e5 / counts.sum()) ** 0.2, 0.25, 2.5))

    def densities(self, stack: Floats) -> Floats | None:
        """The density refitted to each of a stack of resampled counts; none if it is uniform over all bins."""
        if (density := self._density) is None:
            return None
        return np.stack([density.refitted(self._channel, counts).probabilities() for counts in stack])

    def _simplest(self, grid: Grid, counts: Floats) -> MixtureDensity | UniformDensity:
        """The density that Schwarz's criterion (BIC) prefers.

        A uniform density has two parameters, its ends; a mixture has two per component, its weight and its mean.
        """
        least_width = max(_LEAST_WIDTH * float(np.sqrt(grid.noise[0, 0])), float(grid.bin_widths[0]) / 2)
        mixture = fit_mixture(self._channel, counts, grid.centres(0), grid.centres(0, padded=True), least_width)
        uniform, penalty = fit_uniform(self._channel, counts), float(np.log(counts.sum()))
        gain = uniform.log_likelihood(self._channel, counts) - log_likelihood(
            self._channel, counts, mixture.probabilities()
        )
        return uniform if gain - (1 - mixture.count) * penalty > _MARGIN * penalty else mixture
