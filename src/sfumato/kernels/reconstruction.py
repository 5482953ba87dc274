"""Distributions behind noise, on a grid of bins, by expectation maximisation.

The step `g ← g·Kᵀ(c/(K·g))/n` is the Bayesian iteration of Agrawal and Srikant (2000, section 3) where `K` holds the
density of the noise between the middles of bins, and the EM of Agrawal and Aggarwal (2001) where it holds its mean
over them. Iterated for long it fits the noise as well. So each step ends by mixing every bin a little with its
neighbours (EMS: Silverman, Jones, Wilson and Nychka 1990), which keeps what the data say and forgets what they do not:
it converges, and what it converges to does not overfit. Mixing forgets everything but where the iteration started: a
flat distribution, or one that is simple and fits already (`humps`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft
from scipy.special import ndtr

from sfumato.kernels import Floats

_APART = 0.02
"""Correlations of the noise up to which its columns are taken one by one, which is much faster."""
STEPS = 2000
MIXING = 0.01
"""How far a step lets values wander, in standard deviations of the original."""
_SHARE, _ROUNDS = 0.25, 40
"""The most of a bin that goes to each neighbour at once, and how often it may."""


@dataclass(frozen=True)
class Grid:
    """Bins of equal width over a box, and the noise that takes values from one to another."""

    low: Floats
    high: Floats
    bins: tuple[int, ...]
    noise: Floats
    """Its covariance."""
    spread: Floats
    """The standard deviations of the original, more or less."""
    spread_over_bins: bool = True
    """Whether a value may lie anywhere in its bin, else in its middle."""
    reach: float = 5.0
    """Deviations of noise beyond the grid that have bins of their own; what lies further out is in the last one."""

    @property
    def steps(self) -> Floats:
        """The widths of the bins."""
        widths: Floats = (self.high - self.low) / np.array(self.bins)
        return widths

    @property
    def margin(self) -> tuple[int, ...]:
        """How many bins lie beyond each end."""
        return tuple(int(n) for n in np.ceil(self.reach * np.sqrt(np.diag(self.noise)) / self.steps) + 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the counts of noisy values: the bins, with the margin at either end."""
        return tuple(n + 2 * m for n, m in zip(self.bins, self.margin, strict=True))

    def edges(self, axis: int, *, wide: bool = False) -> Floats:
        """Of the bins along an axis, or with the margin."""
        beyond = self.margin[axis] if wide else 0
        ends: Floats = self.low[axis] + self.steps[axis] * np.arange(-beyond, self.bins[axis] + beyond + 1)
        return ends

    def kernel(self) -> Floats:
        """The chance to come from one bin into another so many bins away.

        Two values anywhere in their bins lie apart by the distance of the bins and a little more, of variance `h²/6`.
        """
        apart = np.meshgrid(*(np.arange(-m, m + 1) for m in self.margin), indexing="ij")
        gaps = np.stack(apart, axis=-1) * self.steps
        covariance = self.noise + (np.diag(self.steps**2) / 6 if self.spread_over_bins else 0.0)
        sizes = np.sqrt(np.diag(covariance))
        scaled = gaps / sizes
        precision = np.linalg.pinv(covariance / np.outer(sizes, sizes), hermitian=True)
        chance = np.exp(-0.5 * np.einsum("...i,ij,...j->...", scaled, precision, scaled))
        kernel: Floats = chance / chance.sum()
        return kernel

    def column(self, axis: int) -> Floats:
        """The chance of each bin, a row, for a value of each bin without the margin, a column."""
        low = self.edges(axis)[:-1]
        middle = low + self.steps[axis] / 2
        variance = self.noise[axis, axis] + (self.steps[axis] ** 2 / 12 if self.spread_over_bins else 0.0)
        ends = self.edges(axis, wide=True)
        ends[0], ends[-1] = -np.inf, np.inf
        chances: Floats = np.diff(ndtr((ends[:, None] - middle) / np.sqrt(variance)), axis=0)
        return chances

    @property
    def is_separable(self) -> bool:
        """Whether the noise of each column can be taken by itself."""
        sizes = np.sqrt(np.diag(self.noise))
        return bool(np.abs(self.noise / np.outer(sizes, sizes) - np.eye(len(sizes))).max() < _APART)

    def count(self, values: Floats) -> Floats:
        """How many noisy values lie in each bin; what lies further out is counted at the end."""
        places = np.floor((values - self.low) / self.steps).astype(np.int64) + np.array(self.margin)
        places = np.clip(places, 0, np.array(self.shape) - 1)
        keys = np.ravel_multi_index(tuple(places.T), self.shape)
        return np.bincount(keys, minlength=int(np.prod(self.shape))).reshape(self.shape).astype(np.float64)


class NoiseChannel:
    """`K` and its transpose, of one distribution or of a stack of them."""

    def __init__(self, grid: Grid, mixing: float = MIXING) -> None:
        self._bins, self._shape = grid.bins, grid.shape
        self._axes = tuple(range(-len(grid.bins), 0))
        if grid.is_separable:
            self._columns = [grid.column(axis) for axis in range(len(grid.bins))]
        else:
            self._columns, self._spectrum = [], fft.rfftn(grid.kernel(), self._shape)
        self._mixing = (mixing * grid.spread / grid.steps) ** 2 / 2

    def forward(self, chances: Floats) -> Floats:
        """Where values are seen that lie where `chances` says."""
        if self._columns:
            return np.maximum(_along(self._columns, chances), 1e-300)
        seen = fft.irfftn(fft.rfftn(chances, self._shape, self._axes) * self._spectrum, self._shape, self._axes)
        there: Floats = np.maximum(seen, 1e-300)
        return there

    def backward(self, ratios: Floats) -> Floats:
        """The mean of `ratios` over where a value of each bin is seen."""
        if self._columns:
            return _along([column.T for column in self._columns], ratios)
        whole = fft.irfftn(fft.rfftn(ratios, self._shape, self._axes) * self._spectrum.conj(), self._shape, self._axes)
        means: Floats = whole[(..., *(slice(0, n) for n in self._bins))]
        return means

    def step(self, chances: Floats, counts: Floats, start: Floats) -> Floats:
        """One iteration, mixed towards the start; a stack of counts has one of chances."""
        total = counts.sum(axis=self._axes, keepdims=True)
        shares = np.maximum(self.backward(counts / self.forward(chances)), 0.0)
        found = chances * shares / np.maximum(total, 1e-300)
        for axis, share in zip(self._axes, self._mixing, strict=True):
            rounds = min(int(np.ceil(share / _SHARE)), _ROUNDS)
            for _ in range(rounds):
                found = _mixed(found, start, axis, min(float(share) / rounds, _SHARE))
        mixed: Floats = found
        return mixed

    def start(self, counts: Floats) -> Floats:
        """All bins equally likely, for each of a stack of counts."""
        stack = counts.shape[: counts.ndim - len(self._bins)]
        even: Floats = np.full((*stack, *self._bins), 1 / float(np.prod(self._bins)))
        return even


def _along(matrices: list[Floats], values: Floats) -> Floats:
    """One matrix along each of the last axes."""
    for axis, matrix in zip(range(-len(matrices), 0), matrices, strict=True):
        values = np.moveaxis(np.moveaxis(values, axis, -1) @ matrix.T, -1, axis)
    return values


def _mixed(chances: Floats, start: Floats, axis: int, share: float) -> Floats:
    """Every bin with a share of its two neighbours, as far as they differ from the start by unlike factors."""
    before, after = (np.take(start, np.arange(i, i + start.shape[axis] - 1), axis=axis) for i in (0, 1))
    flow = share * np.minimum(before, after) * np.diff(chances / start, axis=axis)
    none = np.zeros_like(np.take(chances, [0], axis=axis))
    inward, outward = np.concatenate([flow, none], axis=axis), np.concatenate([none, flow], axis=axis)
    mixed: Floats = chances + inward - outward
    return mixed


def reconstruct(
    blur: NoiseChannel, counts: Floats, steps: int = STEPS, change: float = 0.0, start: Floats | None = None
) -> tuple[Floats, int]:
    """The distribution after that many steps, or when one step moves less than `change` of it; and how many there were.

    A stack of counts is reconstructed together. Where no start is given, it is flat.
    """
    found = start = blur.start(counts) if start is None else start
    for step in range(1, steps + 1):
        last, found = found, blur.step(found, counts, start)
        if change and np.abs(found - last).sum() < change:
            return found, step
    return found, steps
