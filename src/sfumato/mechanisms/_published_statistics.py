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
