"""The standard normal distribution function and its inverse, from additions, multiplications and divisions alone.

The C library's exponential and logarithm differ in their last digits from one machine to the next, and scores
(`kernels.scores`) must not. Relative errors are below `2e-14`, far in the tails too. All functions are of numbers in
compiled loops, and of arrays elsewhere; so they choose between values instead of branching.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.compiled import choose, elementwise

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
_LAST_CELL = _LOWEST * _PER_UNIT - 1.0

_FAR, _LEAST_TAIL = -5.0, 2.0**-_OCTAVES
"""Intervals that end below, and smaller probabilities, are beyond the tables."""

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


@elementwise(inline="always")
def _polynomial(coefficients: Floats, x: Any) -> Any:
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@elementwise(inline="always")
def clamped(x: Any, low: Any, high: Any) -> Any:
    """The number between two others that is nearest to `x`."""
    raised = choose(x > low, x, low)
    return choose(raised < high, raised, high)


@elementwise()
def exponential(x: Any) -> Any:
    """`e^x` for `x` between -708 and 709."""
    halvings = np.rint(x * 1.4426950408889634)
    rest = (x - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    power = np.int64((np.int64(halvings) + 1023) << 52).view(np.float64)
    return _polynomial(_INVERSE_FACTORIALS, rest) * power


@elementwise()
def logarithm(x: Any) -> Any:
    """The natural logarithm of a positive normal number: `2·atanh((m-1)/(m+1))` of its mantissa, and its exponent."""
    bits = np.float64(x).view(np.int64)
    whole = np.int64((bits & _MANTISSA) | _ONE).view(np.float64)
    large = whole > _SQRT_2
    mantissa = choose(large, 0.5 * whole, whole)
    exponent = choose(large, 1.0, 0.0) + ((bits >> 52) - 1023)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    series = ratio * _polynomial(_INVERSE_ODDS, ratio * ratio)
    return exponent * _LN2_HIGH + (2.0 * series + exponent * _LN2_LOW)


@elementwise()
def lower_tail(x: Any) -> Any:
    """`Φ(x) = erfc(-x/√2)/2`, with the rational approximations of Cody (1969)."""
    distance = abs(x) * _SQRT_HALF
    y = choose(distance < _FURTHEST, distance, _FURTHEST)
    half = 0.5 * y * _polynomial(_NEAR_ABOVE, y * y) / _polynomial(_NEAR_BELOW, y * y)
    outer = choose(y > 4.0, y, 4.0)
    r = 1.0 / (outer * outer)
    far = (_INVERSE_SQRT_PI - r * _polynomial(_FAR_ABOVE, r) / _polynomial(_FAR_BELOW, r)) / outer
    middle = _polynomial(_MIDDLE_ABOVE, y) / _polynomial(_MIDDLE_BELOW, y)
    tail = choose(y <= 4.0, middle, far) * (0.5 * exponential(-y * y))
    below = choose(distance > _FURTHEST, 0.0, tail)
    return choose(y <= 0.46875, choose(x < 0, 0.5 - half, 0.5 + half), choose(x < 0, below, 1.0 - below))


@elementwise()
def quantile(p: Any) -> Any:
    """`Φ⁻¹(p)` for `0 < p < 1` (Wichura 1988, algorithm AS 241, PPND16)."""
    q = p - 0.5
    r = 0.180625 - q * q
    above = ((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
    above = ((above + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427
    above = (above * r + 133.14166789178437745) * r + 3.387132872796366608
    below = ((5226.495278852854561 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
    below = ((below + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083
    below = (below * r + 42.313330701600911252) * r + 1.0
    central = q * above / below
    root = np.sqrt(-logarithm(choose(q < 0, p, 1.0 - p)))
    outer = choose(root <= 5.0, _outer_quantile(root - 1.6), _far_quantile(root - 5.0))
    return choose(abs(q) <= 0.425, central, choose(q < 0, -outer, outer))


@elementwise(inline="always")
def _outer_quantile(r: Any) -> Any:
    above = ((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
    above = ((above + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055
    above = (above * r + 4.6303378461565452959) * r + 1.42343711074968357734
    below = ((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r
    below = ((below + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494
    below = (below * r + 2.05319162663775882187) * r + 1.0
    return above / below


@elementwise(inline="always")
def _far_quantile(r: Any) -> Any:
    above = ((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
    above = ((above + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358
    above = (above * r + 5.4637849111641143699) * r + 6.6579046435011037772
    below = ((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r
    below = ((below + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531
    below = (below * r + 0.59983220655588793769) * r + 1.0
    return above / below


@cache
def tables() -> tuple[Floats, Floats]:
    """The tables of `truncated`: values and slopes of `Φ`, per cell, and of `Φ⁻¹`, times its argument.

    They are made when they are first needed: importing this module stays quick.
    """
    x = np.arange(_LOWEST * _PER_UNIT + 1) / _PER_UNIT - _LOWEST
    cdf = np.column_stack([lower_tail(x), _DENSITY_AT_0 * exponential(-0.5 * x * x) / _PER_UNIT])
    octave, cell = np.divmod(np.arange((_OCTAVES - 1) * _PER_OCTAVE + 2), _PER_OCTAVE)
    p = np.ldexp(1.0 + cell / _PER_OCTAVE, octave - _OCTAVES)
    x = quantile(p)
    return cdf, np.column_stack([x, p / (_DENSITY_AT_0 * exponential(-0.5 * x * x))])


@elementwise(inline="always")
def _hermite(left: Any, right: Any, first: Any, last: Any, part: Any) -> Any:
    """The cubic with these values and slopes at both ends of a cell."""
    rise = right - left
    bend = part * (1.0 - part) * ((1.0 - part) * (first - rise) + part * (rise - last))
    return left + part * rise + bend


@elementwise(inline="always")
def _below(cdf: Floats, x: Any) -> Any:
    """`Φ(x)` for `x ≤ 0`, with a relative error below 1e-6 as far as the table goes."""
    position = (x + _LOWEST) * _PER_UNIT
    position = choose(position > 0.0, position, 0.0)
    cell = np.int64(choose(position < _LAST_CELL, position, _LAST_CELL))
    return _hermite(cdf[cell, 0], cdf[cell + 1, 0], cdf[cell, 1], cdf[cell + 1, 1], position - cell)


@elementwise(inline="always")
def _at(inverse: Floats, p: Any) -> Any:
    """`Φ⁻¹(p)` for `2^-48 ≤ p ≤ 1/2`, with an error below 1e-7."""
    bits = np.float64(p).view(np.int64)
    cell = (bits >> _BITS) - _FIRST_CELL
    part = (bits & ((1 << _BITS) - 1)) / (1 << _BITS)
    start = _PER_OCTAVE + (cell & (_PER_OCTAVE - 1))  # the cell begins at so many of its widths
    first, last = inverse[cell, 1] / start, inverse[cell + 1, 1] / (start + 1)
    return _hermite(inverse[cell, 0], inverse[cell + 1, 0], first, last, part)


@elementwise(inline="always")
def truncated(lower: Any, upper: Any, share: Any, known: tuple[Floats, Floats]) -> Any:
    """The standard normal truncated to `(lower, upper)` at its quantile `share`, which lies between 0 and 1.

    By `tables`, which are good to six digits. The second result says where the interval is so far out that they do not
    serve, which is hardly ever: see `truncated_far`.
    """
    cdf, inverse = known
    mirrored = lower > 0.0  # in the upper tail, precision is in the mirror image
    low, high = choose(mirrored, -upper, lower), choose(mirrored, -lower, upper)
    part = choose(mirrored, 1.0 - share, share)
    first, other = _below(cdf, low), _below(cdf, -abs(high))
    across = high > 0.0
    mass = choose(across, 1.0 - first - other, other - first)
    p = first + part * mass
    rest = choose(across, other, 1.0 - other) + (1.0 - part) * mass
    tail = choose(p <= rest, p, rest)
    found = _at(inverse, clamped(tail, _LEAST_TAIL, 0.5))
    inside = clamped(choose(p <= rest, found, -found), low, high)
    return choose(mirrored, -inside, inside), (high < _FAR) | (tail < _LEAST_TAIL)


@elementwise()
def truncated_far(lower: Any, upper: Any, share: Any) -> Any:
    """The same in full precision."""
    mirrored = lower > 0.0
    low, high = choose(mirrored, -upper, lower), choose(mirrored, -lower, upper)
    first, last = lower_tail(low), lower_tail(high)
    p = first + choose(mirrored, 1.0 - share, share) * (last - first)
    known = (p > 1e-300) & (p < 1.0)  # else so far out that the distribution is all at the end next to the centre
    found = clamped(quantile(choose(known, p, 0.5)), low, high)
    inside = choose(known, found, choose(high < 0.0, high, low))
    return choose(mirrored, -inside, inside)
