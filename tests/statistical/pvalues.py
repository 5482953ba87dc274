"""Exact or non-asymptotic p-values: asymptotic ones are wrong this far out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

Array = Any


def variance_p(z: Array, variance: float) -> float:
    """Centred normals have this variance: the sum of squares is χ²."""
    total = float(np.square(z).sum() / variance)
    return float(2 * min(stats.chi2.cdf(total, len(z)), stats.chi2.sf(total, len(z))))


def independent_p(a: Array, b: Array) -> float:
    """`b` is normal and independent of `a`: the exact test of a correlation."""
    r = float(np.corrcoef(a, b)[0, 1])
    t = r * np.sqrt((len(a) - 2) / (1 - r * r))
    return 2 * float(stats.t.sf(abs(t), len(a) - 2))


def normal_p(z: Array) -> float:
    """Standard normals, by the bound of Dvoretzky, Kiefer, Wolfowitz and Massart."""
    distance = stats.ks_1samp(z, stats.norm.cdf, method="asymp").statistic
    return min(1.0, 2 * float(np.exp(-2 * len(z) * distance**2)))


def same_distribution_p(a: Array, b: Array) -> float:
    """Two samples of one distribution: the bound above for each, at half the rate."""
    distance = stats.ks_2samp(a, b, method="asymp").statistic
    smaller = min(len(a), len(b))
    return min(1.0, 4 * float(np.exp(-2 * smaller * (distance / 2) ** 2)))


def rate_p(hits: int, trials: int, rate: float) -> float:
    """So many hits of a Bernoulli rate."""
    return float(min(1.0, 2 * min(stats.binom.cdf(hits, trials, rate), stats.binom.sf(hits - 1, trials, rate))))


def unrelated_p(a: Array, b: Array) -> float:
    """Two yes-or-no properties are independent: Fisher's exact test, hypergeometric given the margins."""
    both, total = int((a & b).sum()), len(a)
    distribution = stats.hypergeom(total, int(a.sum()), int(b.sum()))
    return float(min(1.0, 2 * min(distribution.cdf(both), distribution.sf(both - 1))))


def at_most_half_p(wins: int, losses: int) -> float:
    """So many wins in wins + losses, where a win has probability at most one half."""
    return float(stats.binom.sf(wins - 1, wins + losses, 0.5))


def not_negative_p(values: Array, bound: float) -> float:
    """The mean of values within ±bound is not negative: the empirical Bernstein bound (Maurer and Pontil 2009)."""
    n, mean, spread = len(values), float(values.mean()), float(values.var(ddof=1))
    if mean >= 0:
        return 1.0
    # solve -mean = √(2·spread·L/n) + 7·(2·bound)·L/(3(n-1)) for L = ln(2/p)
    a, b, c = 14 * bound / (3 * (n - 1)), np.sqrt(2 * spread / n), mean
    root = (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)
    return min(1.0, 2 * float(np.exp(-(root**2))))


def useless_p(target: Array, known: Array, offered: Array) -> float:
    """Given `known`, the columns `offered` say nothing linear about `target`: the exact F test for normal residuals."""

    def residual(columns: Array) -> float:
        fit = columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
        return float(np.square(target - fit).sum())

    base = np.column_stack([np.ones(len(target)), known])
    full = np.column_stack([base, offered])
    extra, rest = full.shape[1] - base.shape[1], len(target) - full.shape[1]
    small, large = residual(full), residual(base)
    return float(stats.f.sf((large - small) / extra / (small / rest), extra, rest))
