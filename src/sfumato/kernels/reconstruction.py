"""Deconvolution on a grid: the density of numbers behind Gaussian noise, by expectation maximisation (EM).

The iteration `g ← g·Kᵀ(c/(K·g))/n`, for counts `c` of `n` noisy values and a channel matrix `K`, is the Bayesian
iteration of Agrawal and Srikant (2000, section 3) where `K` holds the density of the noise between the centres of bins,
and the EM algorithm of Agrawal and Aggarwal (2001) where it holds the mean of that density over the bins. Iterated for
long it fits the sampling error too. Each iteration therefore ends with a smoothing step between neighbouring bins (EMS:
Silverman, Jones, Wilson and Nychka 1990), which keeps what the data determine and damps what they do not: the iteration
converges, and its limit does not overfit. Smoothing acts on the ratio to the initial density, which is uniform or a
simple density that already fits (`initial_density`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft
from scipy.special import ndtr

from sfumato.kernels import Floats

_UNCORRELATED = 0.02
"""The largest noise correlation at which columns are treated as independent, which is much faster."""
ITERATIONS = 2000
SMOOTHING = 0.01
"""The distance over which one iteration smooths, in standard deviations of the original."""
_LARGEST_SHARE, _MOST_PASSES = 0.25, 40
"""The largest share of a bin that one smoothing pass moves to each neighbour, and the most passes per iteration."""


@dataclass(frozen=True)
class Grid:
    """Bins of equal width over a box, and the covariance of the noise that moves values between bins."""

    low: Floats
    high: Floats
    bins: tuple[int, ...]
    noise: Floats
    """The covariance of the noise."""
    deviations: Floats
    """Approximate standard deviations of the original columns."""
    uniform_within_bins: bool = True
    """Whether an original value lies anywhere in its bin with equal probability, rather than at its centre."""
    reach: float = 5.0
    """The margin of bins beyond the box, in noise deviations; values further out are counted in the last bin."""

    @property
    def bin_widths(self) -> Floats:
        """The width of a bin along each axis."""
        widths: Floats = (self.high - self.low) / np.array(self.bins)
        return widths

    @property
    def margin(self) -> tuple[int, ...]:
        """The number of bins beyond each end of each axis."""
        return tuple(int(n) for n in np.ceil(self.reach * np.sqrt(np.diag(self.noise)) / self.bin_widths) + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a histogram of noisy values: the bins, with the margin at either end."""
        return tuple(n + 2 * m for n, m in zip(self.bins, self.margin, strict=True))

    def edges(self, axis: int, *, padded: bool = False) -> Floats:
        """The bin edges along an axis, with the margin if `padded`."""
        beyond = self.margin[axis] if padded else 0
        edges: Floats = self.low[axis] + self.bin_widths[axis] * np.arange(-beyond, self.bins[axis] + beyond + 1)
        return edges

    def centres(self, axis: int, *, padded: bool = False) -> Floats:
        """The bin centres along an axis, with the margin if `padded`."""
        edges = self.edges(axis, padded=padded)
        centres: Floats = (edges[1:] + edges[:-1]) / 2
        return centres

    def kernel(self) -> Floats:
        """The convolution kernel: the probability of a displacement by each number of bins.

        Two values anywhere in their bins differ by the distance of the bins and a remainder of variance `h²/6`.
        """
        offsets = np.meshgrid(*(np.arange(-m, m + 1) for m in self.margin), indexing="ij")
        distances = np.stack(offsets, axis=-1) * self.bin_widths
        covariance = self.noise + (np.diag(self.bin_widths**2) / 6 if self.uniform_within_bins else 0.0)
        sizes = np.sqrt(np.diag(covariance))
        scaled = distances / sizes
        precision = np.linalg.pinv(covariance / np.outer(sizes, sizes), hermitian=True)
        density = np.exp(-0.5 * np.einsum("...i,ij,...j->...", scaled, precision, scaled))
        kernel: Floats = density / density.sum()
        return kernel

    def channel_matrix(self, axis: int) -> Floats:
        """The probability of each observed bin (row, with the margin) given each bin of the original (column)."""
        centres = self.edges(axis)[:-1] + self.bin_widths[axis] / 2
        variance = self.noise[axis, axis] + (self.bin_widths[axis] ** 2 / 12 if self.uniform_within_bins else 0.0)
        edges = self.edges(axis, padded=True)
        edges[0], edges[-1] = -np.inf, np.inf
        probabilities: Floats = np.diff(ndtr((edges[:, None] - centres) / np.sqrt(variance)), axis=0)
        return probabilities

    @property
    def is_separable(self) -> bool:
        """Whether the noise of the columns is so little correlated that the channel is a product over the columns."""
        sizes = np.sqrt(np.diag(self.noise))
        return bool(np.abs(self.noise / np.outer(sizes, sizes) - np.eye(len(sizes))).max() < _UNCORRELATED)

    def histogram(self, values: Floats) -> Floats:
        """The number of noisy values in each bin; values beyond the margin are counted in the last bin."""
        indices = np.floor((values - self.low) / self.bin_widths).astype(np.int64) + np.array(self.margin)
        indices = np.clip(indices, 0, np.array(self.shape) - 1)
        flat = np.ravel_multi_index(tuple(indices.T), self.shape)
        return np.bincount(flat, minlength=int(np.prod(self.shape))).reshape(self.shape).astype(np.float64)


class NoiseChannel:
    """The channel `K` of a grid and its adjoint, applied to one density or to a stack of densities."""

    def __init__(self, grid: Grid, smoothing: float = SMOOTHING) -> None:
        self._bins, self._shape = grid.bins, grid.shape
        self._axes = tuple(range(-len(grid.bins), 0))
        if grid.is_separable:
            self._matrices = [grid.channel_matrix(axis) for axis in range(len(grid.bins))]
        else:
            self._matrices, self._spectrum = [], fft.rfftn(grid.kernel(), self._shape)
        self._smoothing = (smoothing * grid.deviations / grid.bin_widths) ** 2 / 2

    def forward(self, probabilities: Floats) -> Floats:
        """The probabilities of the observed bins, given those of the bins of the original."""
        if self._matrices:
            return np.maximum(_along(self._matrices, probabilities), 1e-300)
        spectrum = fft.rfftn(probabilities, self._shape, self._axes) * self._spectrum
        observed: Floats = np.maximum(fft.irfftn(spectrum, self._shape, self._axes), 1e-300)
        return observed

    def adjoint(self, ratios: Floats) -> Floats:
        """The expectation of `ratios` over the observed bin, given each bin of the original."""
        if self._matrices:
            return _along([matrix.T for matrix in self._matrices], ratios)
        spectrum = fft.rfftn(ratios, self._shape, self._axes) * self._spectrum.conj()
        padded = fft.irfftn(spectrum, self._shape, self._axes)
        expected: Floats = padded[(..., *(slice(0, n) for n in self._bins))]
        return expected

    def step(self, probabilities: Floats, counts: Floats, initial: Floats) -> Floats:
        """One EM iteration, smoothed towards the initial density; a stack of counts has a stack of densities."""
        total = counts.sum(axis=self._axes, keepdims=True)
        factors = np.maximum(self.adjoint(counts / self.forward(probabilities)), 0.0)
        updated = probabilities * factors / np.maximum(total, 1e-300)
        for axis, share in zip(self._axes, self._smoothing, strict=True):
            passes = min(int(np.ceil(share / _LARGEST_SHARE)), _MOST_PASSES)
            for _ in range(passes):
                updated = _smoothed(updated, initial, axis, min(float(share) / passes, _LARGEST_SHARE))
        smoothed: Floats = updated
        return smoothed

    def uniform(self, counts: Floats) -> Floats:
        """The uniform density over the bins, once for each histogram of a stack."""
        stack = counts.shape[: counts.ndim - len(self._bins)]
        density: Floats = np.full((*stack, *self._bins), 1 / float(np.prod(self._bins)))
        return density


def _along(matrices: list[Floats], values: Floats) -> Floats:
    """The product of one matrix with each of the last axes."""
    for axis, matrix in zip(range(-len(matrices), 0), matrices, strict=True):
        values = np.moveaxis(np.moveaxis(values, axis, -1) @ matrix.T, -1, axis)
    return values


def _smoothed(probabilities: Floats, initial: Floats, axis: int, share: float) -> Floats:
    """One diffusion pass along an axis, which evens out the ratio to the initial density and conserves mass."""
    before, after = (np.take(initial, np.arange(i, i + initial.shape[axis] - 1), axis=axis) for i in (0, 1))
    flow = share * np.minimum(before, after) * np.diff(probabilities / initial, axis=axis)
    none = np.zeros_like(np.take(probabilities, [0], axis=axis))
    inflow, outflow = np.concatenate([flow, none], axis=axis), np.concatenate([none, flow], axis=axis)
    smoothed: Floats = probabilities + inflow - outflow
    return smoothed


def reconstruct(
    channel: NoiseChannel,
    counts: Floats,
    iterations: int = ITERATIONS,
    tolerance: float = 0.0,
    initial: Floats | None = None,
) -> tuple[Floats, int]:
    """The deconvolved density, and the number of EM iterations that were made.

    Args:
        channel: the noise channel of the grid.
        counts: the histogram of noisy values, or a stack of histograms that are deconvolved together.
        iterations: the most iterations.
        tolerance: iteration stops when the total absolute change of one iteration is smaller.
        initial: the initial density, which smoothing also acts towards; uniform if not given.

    """
    density = initial = channel.uniform(counts) if initial is None else initial
    for iteration in range(1, iterations + 1):
        last, density = density, channel.step(density, counts, initial)
        if tolerance and np.abs(density - last).sum() < tolerance:
            return density, iteration
    return density, iterations
