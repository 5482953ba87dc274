"""The standard normal distribution function and its inverse, from additions, multiplications and divisions alone.

The C library's exponential and logarithm differ in their last digits from one machine to the next, and scores
(`kernels.scores`) must not. Relative errors are below `2e-14`, far in the tails too.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.compiled import njit

_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""The logarithm of 2 in two parts, the first with trailing zeros, so that its multiples are exact."""

_SQRT_HALF = 0.7071067811865476
_SQRT_2 = 1.4142135623730951
_INVERSE_SQRT_PI = 0.5641895835477563
_FURTHEST = 26.5
"""`e^(-y²)` of a larger number is no normal double."""

_DENSITY_AT_0 = 0.3989422804014327
_LOWEST, _PER_UNIT = 8, 64
"""The table of `Φ` has cells of 1/64 from -8 to 0."""

_OCTAVES, _PER_OCTAVE, _BITS = 48, 32, 47
"""The table of `Φ⁻¹` has 32 cells between one power of two and the next, from `2^-48` to 1/2; a cell's number is in
the leading bits of a double, and the 47 bits after these are the position in it."""

_FIRST_CELL = (1023 - _OCTAVES) * _PER_OCTAVE
_FAR = -5.0
"""Intervals that end below are beyond the tables."""

_MANTISSA, _ONE = (1 << 52) - 1, 1023 << 52
"""The bits of a double's mantissa, and the double 1.0 as an integer."""

_INVERSE_FACTORIALS = np.array([1.0 / math.factorial(i) for i in range(14, -1, -1)])


_INVERSE_ODDS = np.array([1.0 / odd for odd in range(21, 0, -2)])

_MIDDLE_ABOVE = np.array(
    [
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
    ]
)
_MIDDLE_BELOW = np.array(
    [
        1.0,
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ]
)
_FAR_ABOVE = np.array(
    [
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ]
)
_FAR_BELOW = np.array(
    [
        1.0,
        2.56852019228982242,
        1.87295284992346725,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ]
)
_NEAR_ABOVE = np.array(
    [1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3]
)
_NEAR_BELOW = np.array(
    [1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3]
)
"""The coefficients of Cody (1969) for the error function and its complement, highest power first."""


@njit(cache=True, nogil=True, inline="always")
def _polynomial(coefficients: Floats, x: float) -> Any:  # pragma: no cover - compiled
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@njit(cache=True, nogil=True)
def exponential(x: float) -> Any:  # pragma: no cover - compiled
    """`e^x` for `x` between -708 and 709."""
    halvings = np.rint(x * 1.4426950408889634)
    rest = (x - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    power = np.int64((np.int64(halvings) + 1023) << 52).view(np.float64)
    return _polynomial(_INVERSE_FACTORIALS, rest) * power


@njit(cache=True, nogil=True)
def logarithm(x: float) -> Any:  # pragma: no cover - compiled
    """The natural logarithm of a positive normal number: `2·atanh((m-1)/(m+1))` of its mantissa, and its exponent."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits >> 52) - 1023
    mantissa = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    if mantissa > _SQRT_2:
        mantissa, exponent = 0.5 * mantissa, exponent + 1
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    series = ratio * _polynomial(_INVERSE_ODDS, ratio * ratio)
    return exponent * _LN2_HIGH + (2.0 * series + exponent * _LN2_LOW)


@njit(cache=True, nogil=True)
def lower_tail(x: float) -> Any:  # pragma: no cover - compiled
    """`Φ(x) = erfc(-x/√2)/2`, with the rational approximations of Cody (1969)."""
    y = abs(x) * _SQRT_HALF
    if y <= 0.46875:
        half = 0.5 * y * _polynomial(_NEAR_ABOVE, y * y) / _polynomial(_NEAR_BELOW, y * y)
        return 0.5 - half if x < 0 else 0.5 + half
    if y > _FURTHEST:
        return 0.0 if x < 0 else 1.0
    if y <= 4.0:
        tail = _polynomial(_MIDDLE_ABOVE, y) / _polynomial(_MIDDLE_BELOW, y)
    else:
        r = 1.0 / (y * y)
        tail = (_INVERSE_SQRT_PI - r * _polynomial(_FAR_ABOVE, r) / _polynomial(_FAR_BELOW, r)) / y
    tail *= 0.5 * exponential(-y * y)
    return tail if x < 0 else 1.0 - tail


@njit(cache=True, nogil=True)
def quantile(p: float) -> Any:  # pragma: no cover - compiled
    """`Φ⁻¹(p)` for `0 < p < 1` (Wichura 1988, algorithm AS 241, PPND16)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = ((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
        above = ((above + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
        above = (above * r + 133.14166789178437745) * r + 3.387132872796366608
        below = ((5226.495278852854561 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
        below = ((below + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083
        below = (below * r + 42.313330701600911252) * r + 1.0
        return q * above / below
    r = math.sqrt(-logarithm(p if q < 0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        above = ((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
        above = ((above + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055
        above = (above * r + 4.6303378461565452959) * r + 1.42343711074968357734
        below = ((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r
        below = ((below + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494
        below = (below * r + 2.05319162663775882187) * r + 1.0
    else:
        r -= 5.0
        above = ((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
        above = ((above + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358
        above = (above * r + 5.4637849111641143699) * r + 6.6579046435011037772
        below = ((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r
        below = ((below + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531
        below = (below * r + 0.59983220655588793769) * r + 1.0
    return -above / below if q < 0 else above / below


@cache
def tables() -> tuple[Floats, Floats]:
    """The tables of `truncated`, made when they are first needed: importing this module stays quick."""
    made: tuple[Floats, Floats] = _tables()
    return made


@njit(cache=True, nogil=True)
def _tables() -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    """Values and slopes of `Φ`, per cell, and of `Φ⁻¹`, times its argument."""
    cdf = np.empty((_LOWEST * _PER_UNIT + 1, 2))
    for i in range(cdf.shape[0]):
        x = i / _PER_UNIT - _LOWEST
        cdf[i, 0] = lower_tail(x)
        cdf[i, 1] = _DENSITY_AT_0 * exponential(-0.5 * x * x) / _PER_UNIT
    inverse = np.empty(((_OCTAVES - 1) * _PER_OCTAVE + 2, 2))
    for i in range(inverse.shape[0]):
        octave, cell = divmod(i, _PER_OCTAVE)
        p = (1.0 + cell / _PER_OCTAVE) * 2.0 ** (octave - _OCTAVES)
        x = quantile(p)
        inverse[i, 0] = x
        inverse[i, 1] = p / (_DENSITY_AT_0 * exponential(-0.5 * x * x))
    return cdf, inverse


@njit(cache=True, nogil=True, inline="always")
def _hermite(left: float, right: float, first: float, last: float, part: float) -> Any:  # pragma: no cover - compiled
    """The cubic with these values and slopes at both ends of a cell."""
    rise = right - left
    bend = part * (1.0 - part) * ((1.0 - part) * (first - rise) + part * (rise - last))
    return left + part * rise + bend


@njit(cache=True, nogil=True, inline="always")
def _below(cdf: Floats, x: float) -> Any:  # pragma: no cover - compiled
    """`Φ(x)` for `x ≤ 0`, with a relative error below 1e-6 as far as the table goes."""
    position = max((x + _LOWEST) * _PER_UNIT, 0.0)
    cell = min(int(position), _LOWEST * _PER_UNIT - 1)
    return _hermite(cdf[cell, 0], cdf[cell + 1, 0], cdf[cell, 1], cdf[cell + 1, 1], position - cell)


@njit(cache=True, nogil=True, inline="always")
def _at(inverse: Floats, p: float) -> Any:  # pragma: no cover - compiled
    """`Φ⁻¹(p)` for `2^-48 ≤ p ≤ 1/2`, with an error below 1e-7."""
    bits = np.float64(p).view(np.int64)
    cell = (bits >> _BITS) - _FIRST_CELL
    part = (bits & ((1 << _BITS) - 1)) / (1 << _BITS)
    start = _PER_OCTAVE + (cell & (_PER_OCTAVE - 1))  # the cell begins at so many of its widths
    first, last = inverse[cell, 1] / start, inverse[cell + 1, 1] / (start + 1)
    return _hermite(inverse[cell, 0], inverse[cell + 1, 0], first, last, part)


@njit(cache=True, nogil=True, inline="always")
def truncated(  # pragma: no cover - compiled
    lower: float, upper: float, share: float, known: tuple[Floats, Floats]
) -> Any:
    """The standard normal truncated to `(lower, upper)` at its quantile `share`, which lies between 0 and 1.

    By `tables`, which are good to six digits, but for intervals so far out that they are hardly ever needed. There
    are no branches that a processor could not foresee.
    """
    cdf, inverse = known
    mirrored = lower > 0.0  # in the upper tail, precision is in the mirror image
    low, high = (-upper, -lower) if mirrored else (lower, upper)
    part = 1.0 - share if mirrored else share
    first, other = _below(cdf, low), _below(cdf, -abs(high))
    mass = 1.0 - first - other if high > 0.0 else other - first
    p = first + part * mass
    rest = (other if high > 0.0 else 1.0 - other) + (1.0 - part) * mass
    tail = min(p, rest)
    if high < _FAR or tail < 2.0**-_OCTAVES:
        inside = _truncated_far(low, high, part)
    else:
        found = _at(inverse, min(tail, 0.5))
        inside = min(max(found if p <= rest else -found, low), high)
    return -inside if mirrored else inside


@njit(cache=True, nogil=True)
def _truncated_far(lower: float, upper: float, share: float) -> Any:  # pragma: no cover - compiled
    """The same in full precision, where the lower end is not positive."""
    first, last = lower_tail(lower), lower_tail(upper)
    p = first + share * (last - first)
    if not 1e-300 < p < 1.0:  # so far out that the distribution is all at the end next to the centre
        return upper if upper < 0.0 else lower
    return min(max(quantile(p), lower), upper)
