"""Frequencies behind randomised response: matrix inversion, maximum likelihood and EM for contingency tables.

Uniform replacement (xiao2009, eq. 1) over `s` values has the symmetric channel matrix `M = p·I + (1-p)/s·11ᵀ`, and
`M⁻¹ = (I - (1-p)/s·11ᵀ)/p`. A contingency table of several attributes is inverted along each of its dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels import Floats

_ITERATIONS = 20_000
_TOLERANCE = 1e-7


def perturbed_counts(table: Floats, retentions: Sequence[float]) -> Floats:
    """The product `M·table` along every dimension: the expected counts in a copy."""
    for axis, p in enumerate(retentions):
        if p < 1:
            table = p * table + (1 - p) * table.mean(axis=axis, keepdims=True)
    return table


def inverted_counts(table: Floats, retentions: Sequence[float]) -> Floats:
    """The product `M⁻¹·table` along every dimension: unbiased estimates of the counts, which may be negative."""
    for axis, p in enumerate(retentions):
        if p < 1:
            table = (table - (1 - p) * table.mean(axis=axis, keepdims=True)) / p
    return table


def inversion_variance(counts: Floats, retentions: Sequence[float]) -> Floats:
    """An unbiased estimate of the variance of each entry of `inverted_counts(counts)`, given the original table.

    An entry is a sum over rows of weights `h(y)` with `E[h | x] = 1[x is this entry]`, whose square is itself. So
    `Σ h(y)² - Σ h(y)` estimates the sum of the weights' variances.
    """
    squares = counts
    for axis, p in enumerate(retentions):
        if p < 1:
            size = counts.shape[axis]
            off_diagonal = -(1 - p) / (size * p)
            diagonal = off_diagonal + 1 / p
            squares = (diagonal**2 - off_diagonal**2) * squares + off_diagonal**2 * squares.sum(
                axis=axis, keepdims=True
            )
    return np.maximum(squares - inverted_counts(counts, retentions), 0.0)


def em_frequencies(
    counts: Floats, retentions: Sequence[float], iterations: int = _ITERATIONS, tolerance: float = _TOLERANCE
) -> Floats:
    """Maximum-likelihood frequencies by expectation maximisation (Agrawal and Aggarwal 2001, for categories).

    The iteration stops when no frequency can raise the mean log-likelihood by more than `tolerance` (the conditions of
    Karush, Kuhn and Tucker): the result is then the maximum of the likelihood over the simplex.
    """
    total = counts.sum()
    frequencies = np.full(counts.shape, 1 / counts.size)
    for _ in range(iterations):
        expected = np.maximum(perturbed_counts(frequencies, retentions), 1e-300)
        factors = perturbed_counts(counts / expected, retentions) / total
        frequencies = frequencies * factors
        if factors.max() < 1 + tolerance:
            break
    normalised: Floats = frequencies / frequencies.sum()
    return normalised


def maximum_likelihood_frequencies(counts: Floats, retention: float) -> Floats:
    """The exact maximum-likelihood frequencies of one attribute, over the simplex.

    By Karush, Kuhn and Tucker, `f = max(0, counts/λ - (1-p)/s)/p` with the multiplier `λ` that makes them sum to 1:
    values observed less often than replacement alone produces them get frequency 0, and the others are inverted again.
    """
    ordered = np.sort(counts)[::-1]
    floor = (1 - retention) / len(counts)
    for support in range(len(counts), 0, -1):
        multiplier = ordered[:support].sum() / (retention + support * floor)
        if ordered[support - 1] > multiplier * floor or support == 1:
            frequencies = np.maximum(counts / multiplier - floor, 0) / retention
            normalised: Floats = frequencies / frequencies.sum()
            return normalised
    raise ValueError("frequencies need the counts of at least one value, got none")
