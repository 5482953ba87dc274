"""Covariances of an original that was seen through noise, and how far off they may be.

The table is held fixed: all that varies is the noise, of known covariance `N`. Then `Σ(y-ȳ)(y-ȳ)ᵀ/(n-1) - N` has mean
`S`, the table's own covariance, and every linear function `tr(A·)` of it the variance

    (4·tr(A·S·A·N) + 2·tr(A·N·A·N)) / (n-1)

for symmetric `A`: the first term is noise against data, the second noise against itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats


@dataclass(frozen=True)
class Sums:
    """Of a table with gaps: how many rows show both columns, and the sums of one and of both over those rows."""

    rows: Floats
    ones: Floats
    """`ones[i, j]`: of column `i`, over the rows that show `j` too."""
    products: Floats
    squares: Floats
    """`squares[i, j]`: of column `i`, over the rows that show `j` too."""

    @classmethod
    def of(cls, values: Floats) -> Sums:
        """Of some rows; NaN where missing."""
        there = ~np.isnan(values)
        if there.all():
            total = values.sum(axis=0)
            count = np.full((values.shape[1],) * 2, float(len(values)))
            products = values.T @ values
            own = np.repeat(np.diag(products)[:, None], len(total), axis=1)
            return cls(count, np.repeat(total[:, None], len(total), axis=1), products, own)
        shown, filled = there.astype(np.float64), np.where(there, values, 0.0)
        return cls(shown.T @ shown, filled.T @ shown, filled.T @ filled, (filled**2).T @ shown)

    def __add__(self, other: Sums) -> Sums:
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sums(*(one + two for one, two in parts))

    def means(self) -> Floats:
        """Of the columns."""
        found: Floats = np.diag(self.ones) / np.maximum(np.diag(self.rows), 1)
        return found

    def covariance(self) -> Floats:
        """Over the rows that show both."""
        rows = np.maximum(self.rows, 2)
        found: Floats = (self.products - self.ones * self.ones.T / rows) / (rows - 1)
        return found

    def pair(self, i: int, j: int) -> Floats:
        """The covariance of two columns, all of it over the rows that show both."""
        rows = max(float(self.rows[i, j]), 2.0)
        ones = np.array([self.ones[i, j], self.ones[j, i]])
        square = np.array([[self.squares[i, j], self.products[i, j]], [self.products[i, j], self.squares[j, i]]])
        found: Floats = (square - np.outer(ones, ones) / rows) / (rows - 1)
        return found


def positive(matrix: Floats, units: Floats, least: float = 0.0) -> Floats:
    """The nearest covariance, with at least so much in every direction, in units that put all columns on one scale."""
    values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    nearest: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return nearest * np.outer(units, units)


def linear_variance(weights: Floats, original: Floats, noise: Floats, rows: float) -> float:
    """Of `tr(weights·covariance)`, as above."""
    of_noise = weights @ noise
    return float((4 * np.sum((weights @ original) * of_noise.T) + 2 * np.sum(of_noise * of_noise.T)) / (rows - 1))


def entry_errors(original: Floats, noise: Floats, rows: Floats) -> Floats:
    """The standard error of every entry of the covariance."""
    s, k = np.diag(original), np.diag(noise)
    crossed = np.outer(s, k) + np.outer(k, s) + 2 * original * noise
    variance: Floats = (crossed + np.outer(k, k) + noise**2) / np.maximum(rows - 1, 1)
    return np.sqrt(np.maximum(variance, 0))


def variance_interval(found: Floats, noise: Floats, rows: Floats, width: float) -> tuple[Floats, Floats]:
    """All variances `s ≥ 0` that lie within `width` of their own standard errors of what was found.

    `(found - s)² = width²·(4·noise·s + 2·noise²)/(n-1)` is a quadratic in `s`, whose roots are the ends: unlike
    `found ± width·error`, they are right for few rows, too.
    """
    slope = 2 * width**2 * noise / np.maximum(rows - 1, 1)
    root = np.sqrt(np.maximum((found + slope) ** 2 - found**2 + slope * noise, 0))
    return np.maximum(found + slope - root, 0), np.maximum(found + slope + root, 0)


def correlation(original: Floats, noise: Floats, rows: float) -> tuple[float, float]:
    """Of two columns, and its standard error, by the gradient of `s_ij/√(s_ii·s_jj)`."""
    sizes = np.sqrt(np.maximum(np.diag(original), 1e-12 * np.diag(original + noise)) + 1e-100)
    scale = float(sizes.prod())
    r = float(np.clip(original[0, 1] / scale, -1, 1))
    weights = np.array([[-r / (2 * sizes[0] ** 2), 0.5 / scale], [0.5 / scale, -r / (2 * sizes[1] ** 2)]])
    return r, float(np.sqrt(max(linear_variance(weights, original, noise, max(rows, 2.0)), 0.0)))
