"""Counts of categories that were replaced at random: what they were, and how far off that may be.

Uniform replacement (xiao2009, eq. 1) over `s` values is the symmetric matrix `M = p·I + (1-p)/s·11ᵀ`, and
`M⁻¹ = (I - (1-p)/s·11ᵀ)/p`. A table of counts over several attributes is inverted along each of its axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.kernels import Floats

_STEPS = 20_000
_GAP = 1e-7


def replaced(table: Floats, retentions: Sequence[float]) -> Floats:
    """`M·table` along every axis: what is to be expected of a copy."""
    for axis, kept in enumerate(retentions):
        if kept < 1:
            table = kept * table + (1 - kept) * table.mean(axis=axis, keepdims=True)
    return table


def inverted(table: Floats, retentions: Sequence[float]) -> Floats:
    """`M⁻¹·table` along every axis: unbiased, and sometimes negative."""
    for axis, kept in enumerate(retentions):
        if kept < 1:
            table = (table - (1 - kept) * table.mean(axis=axis, keepdims=True)) / kept
    return table


def inversion_variance(counts: Floats, retentions: Sequence[float]) -> Floats:
    """The variance of each entry of `inverted(counts)`, the table held fixed; unbiased as well.

    An entry is a sum over rows of weights `h(y)` with `E[h | x] = 1[x is this entry]`, whose square is itself. So
    `Σ h(y)² - Σ h(y)` estimates the sum of the weights' variances.
    """
    squares = counts
    for axis, kept in enumerate(retentions):
        if kept < 1:
            size = counts.shape[axis]
            off = -(1 - kept) / (size * kept)
            on = off + 1 / kept
            squares = (on**2 - off**2) * squares + off**2 * squares.sum(axis=axis, keepdims=True)
    return np.maximum(squares - inverted(counts, retentions), 0.0)


def em_frequencies(counts: Floats, retentions: Sequence[float], steps: int = _STEPS, gap: float = _GAP) -> Floats:
    """Frequencies by expectation maximisation (Agrawal and Aggarwal 2001, in the form for categories).

    It ends when no frequency can raise the mean log-likelihood by more than `gap` (the conditions of Karush, Kuhn and
    Tucker), which makes it the maximum of the likelihood over the simplex.
    """
    total = counts.sum()
    found = np.full(counts.shape, 1 / counts.size)
    for _ in range(steps):
        ratio = replaced(counts / np.maximum(replaced(found, retentions), 1e-300), retentions) / total
        found = found * ratio
        if ratio.max() < 1 + gap:
            break
    likely: Floats = found / found.sum()
    return likely


def likeliest(counts: Floats, retention: float) -> Floats:
    """The frequencies of one attribute that maximise the likelihood over the simplex, exactly.

    By Karush, Kuhn and Tucker, `f = max(0, counts/level - (1-p)/s)/p` with the level that makes them sum to 1: values
    seen less often than replacement alone makes them are held impossible, and the others are inverted again.
    """
    ordered = np.sort(counts)[::-1]
    floor = (1 - retention) / len(counts)
    for held in range(len(counts), 0, -1):
        level = ordered[:held].sum() / (retention + held * floor)
        if ordered[held - 1] > level * floor or held == 1:
            found = np.maximum(counts / level - floor, 0) / retention
            likely: Floats = found / found.sum()
            return likely
    raise ValueError("a distribution has at least one value")
