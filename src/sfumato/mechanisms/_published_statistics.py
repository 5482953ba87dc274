"""Published statistics of a table, rounded once when a scheme is fitted, with digits that depend on the number of rows.

Noise in the shape of the data has the table's covariance, and both the manifest and the copies disclose that shape: the
increments between many levels are many draws from it. So the shape itself is rounded, before any noise is drawn, and
nothing that leaves depends on the unrounded one. Rounding is coarse enough that one record hardly ever changes it: a
record that is `z` standard deviations from the mean moves a variance by `z²/n`, and the grid is at least `16/n` wide
(from 32 rows on), so that a grid point lies between two candidates for the record with probability at most
`|z₁² - z₂²|/16`, over tables.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.kernels import Floats

_MOST_BITS = 24
"""The most digits of any statistic: about those of a number in single precision."""

_LEGACY_BITS = 11
"""About three digits, for schemes that were fitted before their statistics were rounded."""

_NEGLIGIBLE = 1e-13
"""The largest error of eigenvalues, in units of the variances."""

_ROWS_PER_POINT = 4
"""Bits of the number of rows that the grid leaves out: a grid point covers the influence of 16 typical records."""


def bits(rows: int) -> int:
    """How many binary digits of a statistic of a table with so many rows are published."""
    return min(max(rows.bit_length() - 1 - _ROWS_PER_POINT, 1), _MOST_BITS)


def coarse(number: float, digits: int = _LEGACY_BITS) -> float:
    """A published statistic, rounded to so many binary digits."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(round(fraction * 2**digits) / 2**digits, exponent)


def coarse_above(number: float, digits: int) -> float:
    """A published deviation, rounded up to so many binary digits: noise is never less than promised."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(math.ceil(fraction * 2**digits) / 2**digits, exponent)


def coarse_covariance(covariance: Floats, rows: int) -> Floats:
    """A covariance on the grid of a table with so many rows that is at least the given one in every direction.

    Deviations are rounded up and correlations to the nearest; the least multiple of the grid that makes up for the
    correlations' rounding is added to the variances. Noise of this shape protects at least as well as noise of the
    exact one: it is the latter plus independent noise.
    """
    digits = bits(rows)
    own = np.sqrt(np.diag(covariance))
    deviations = np.array([coarse_above(float(sd), digits) if sd else 0.0 for sd in own])
    units = np.where(deviations > 0, deviations, 1.0)
    exact = covariance / np.outer(units, units)
    correlation = np.round(exact * 2**digits) / 2**digits
    np.fill_diagonal(correlation, np.where(deviations > 0, 1.0, 0.0))
    lacking = float(np.linalg.eigvalsh(exact - correlation)[-1])
    varies = np.diag(deviations > 0)
    # however little is lacking: columns that are multiples of each other would show their noise in the difference
    surplus = math.ceil(lacking * 2**digits) / 2**digits if lacking > _NEGLIGIBLE else 0.0
    rounded: Floats = (correlation + surplus * varies) * np.outer(deviations, deviations)
    return rounded


def private_covariance(
    covariance: Floats, means: list[float], limits: Floats, rows: int, epsilon: float, generator: np.random.Generator
) -> Floats:
    """A covariance with ε-differential privacy: Laplace noise on all moments of the values, which have limits.

    With values scaled to [-1, 1], one record changes a mean by at most `2/n`, a mean square by `1/n` and a mean product
    by `2/n`, in all by `p(p+2)/n` for `p` columns. What the noise may have taken away is made up for, but for one fit
    in a thousand: noise of this shape is never less than that of the exact one. Which cells are null is public.

    Args:
        covariance: the sample covariance.
        means: the means of the columns.
        limits: the lowest and highest value of each column.
        rows: the number of rows.
        epsilon: the privacy loss.
        generator: the source of the noise, which nobody can repeat.

    """
    size, count = len(means), max(rows, 1)
    centre, half = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
    mean = (np.array(means) - centre) / half
    products = covariance * max(count - 1, 0) / count / np.outer(half, half) + np.outer(mean, mean)
    scale = size * (size + 2) / (count * epsilon)
    noise = np.tril(generator.laplace(0, scale, (size, size)))
    noisy = products + noise + np.tril(noise, -1).T
    centred = mean + generator.laplace(0, scale, size)
    # at most this, but for one fit in a thousand: the norm of the noise of the products, and that of the means
    of_products, of_means = scale * (2 * math.sqrt(2 * size) + 4), scale * (math.sqrt(2 * size) + 5.5)
    lost = of_products + 2 * float(np.linalg.norm(centred)) * of_means
    private: Floats = (noisy - np.outer(centred, centred) + lost * np.eye(size)) * np.outer(half, half)
    return private
