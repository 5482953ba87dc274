"""Covariances of an original that was observed with additive noise, and their standard errors.

The table is fixed: only the noise varies, with known covariance `N`. Then `Σ(y-ȳ)(y-ȳ)ᵀ/(n-1) - N` has mean `S`, the
table's own covariance, and every linear function `tr(A·)` of it, for symmetric `A`, has the variance

    (4·tr(A·S·A·N) + 2·tr(A·N·A·N)) / (n-1)

whose first term is noise against data, and whose second is noise against noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats


def symmetric(triangle: Sequence[Sequence[float]]) -> Floats:
    """The matrix with this lower triangle, row by row."""
    lower = np.zeros((len(triangle), len(triangle)))
    for i, line in enumerate(triangle):
        lower[i, : i + 1] = line
    whole: Floats = lower + np.tril(lower, -1).T
    return whole


@dataclass(frozen=True)
class PairwiseSums:
    """Sums over pairs of columns with missing values, each over the rows in which both columns are present."""

    rows: Floats
    """`rows[i, j]`: the number of rows in which columns `i` and `j` are both present."""
    totals: Floats
    """`totals[i, j]`: the sum of column `i`, over the rows in which `j` is present too."""
    products: Floats
    """`products[i, j]`: the sum of the products of columns `i` and `j`."""
    squares: Floats
    """`squares[i, j]`: the sum of squares of column `i`, over the rows in which `j` is present too."""

    @classmethod
    def of(cls, values: Floats) -> PairwiseSums:
        """The sums over the rows of a matrix, in which NaN is a missing value."""
        is_present = ~np.isnan(values)
        if is_present.all():
            total = values.sum(axis=0)
            count = np.full((values.shape[1],) * 2, float(len(values)))
            products = values.T @ values
            squares = np.repeat(np.diag(products)[:, None], len(total), axis=1)
            return cls(count, np.repeat(total[:, None], len(total), axis=1), products, squares)
        present, filled = is_present.astype(np.float64), np.where(is_present, values, 0.0)
        return cls(present.T @ present, filled.T @ present, filled.T @ filled, (filled**2).T @ present)

    def __add__(self, other: PairwiseSums) -> PairwiseSums:
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return PairwiseSums(*(one + two for one, two in parts))

    def means(self) -> Floats:
        """The mean of each column."""
        means: Floats = np.diag(self.totals) / np.maximum(np.diag(self.rows), 1)
        return means

    def covariance(self) -> Floats:
        """The covariance matrix, each entry over the rows in which both columns are present."""
        rows = np.maximum(self.rows, 2)
        covariance: Floats = (self.products - self.totals * self.totals.T / rows) / (rows - 1)
        return covariance

    def pair(self, i: int, j: int) -> Floats:
        """The 2 x 2 covariance matrix of two columns, with all entries over the rows in which both are present."""
        rows = max(float(self.rows[i, j]), 2.0)
        totals = np.array([self.totals[i, j], self.totals[j, i]])
        products = np.array([[self.squares[i, j], self.products[i, j]], [self.products[i, j], self.squares[j, i]]])
        covariance: Floats = (products - np.outer(totals, totals) / rows) / (rows - 1)
        return covariance


def nearest_covariance(matrix: Floats, units: Floats, least: float = 0.0) -> Floats:
    """The nearest symmetric matrix with eigenvalues of at least `least`, after division of the columns by `units`."""
    values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    nearest: Floats = (vectors * np.maximum(values, least)) @ vectors.T
    return nearest * np.outer(units, units)


def linear_variance(weights: Floats, original: Floats, noise: Floats, rows: float) -> float:
    """The variance of `tr(weights·covariance)`, by the formula of this module's docstring."""
    weighted_noise = weights @ noise
    against_data = 4 * np.sum((weights @ original) * weighted_noise.T)
    against_noise = 2 * np.sum(weighted_noise * weighted_noise.T)
    return float((against_data + against_noise) / (rows - 1))


def entry_standard_errors(original: Floats, noise: Floats, rows: Floats) -> Floats:
    """The standard error of every entry of the covariance."""
    s, k = np.diag(original), np.diag(noise)
    crossed = np.outer(s, k) + np.outer(k, s) + 2 * original * noise
    variance: Floats = (crossed + np.outer(k, k) + noise**2) / np.maximum(rows - 1, 1)
    return np.sqrt(np.maximum(variance, 0))


def variance_interval(estimate: Floats, noise: Floats, rows: Floats, width: float) -> tuple[Floats, Floats]:
    """The ends of the interval of variances `s ≥ 0` within `width` of their own standard errors of the estimate.

    `(estimate - s)² = width²·(4·noise·s + 2·noise²)/(n-1)` is a quadratic in `s`, whose roots are the ends: unlike
    `estimate ± width·error`, they have the right coverage for few rows, too.
    """
    slope = 2 * width**2 * noise / np.maximum(rows - 1, 1)
    root = np.sqrt(np.maximum((estimate + slope) ** 2 - estimate**2 + slope * noise, 0))
    return np.maximum(estimate + slope - root, 0), np.maximum(estimate + slope + root, 0)


def correlation(original: Floats, noise: Floats, rows: float) -> tuple[float, float]:
    """The correlation of two columns and its standard error, by the delta method for `s_ij/√(s_ii·s_jj)`."""
    sizes = np.sqrt(np.maximum(np.diag(original), 1e-12 * np.diag(original + noise)) + 1e-100)
    scale = float(sizes.prod())
    r = float(np.clip(original[0, 1] / scale, -1, 1))
    weights = np.array([[-r / (2 * sizes[0] ** 2), 0.5 / scale], [0.5 / scale, -r / (2 * sizes[1] ** 2)]])
    return r, float(np.sqrt(max(linear_variance(weights, original, noise, max(rows, 2.0)), 0.0)))


def noise_dissimilarity(records: Floats, noise: Floats) -> float:
    """How unlike some records their noise is, by the records without missing numbers and the columns that vary."""
    complete = records[~np.isnan(records).any(axis=1)]
    varies = np.flatnonzero(complete.std(axis=0) > 0) if len(complete) > 2 else np.empty(0, np.int64)
    if len(varies) < 2:
        return 0.0
    return correlation_dissimilarity(np.cov(complete[:, varies].T), noise[np.ix_(varies, varies)])


def correlation_dissimilarity(data: Floats, noise: Floats) -> float:
    """How unlike the correlations of data and noise are, from their covariances (huang2005, Definition 8.1 as printed).

    It is 0 for noise of the data's shape, which no attack by principal components can filter out.
    """
    first, second = (c / np.outer(np.sqrt(np.diag(c)), np.sqrt(np.diag(c))) for c in (data, noise))
    size = len(data)
    return float(np.sqrt(((first - second) ** 2).sum()) / (size**2 - size)) if size > 1 else 0.0
