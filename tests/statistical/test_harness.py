"""The harness itself: p-values of a true statement are uniform or conservative, and faults are caught."""

from __future__ import annotations

import numpy as np
import pytest

from . import pvalues as p
from .conftest import Verdict

N = 1_000_000


@pytest.mark.statistical(checks=2)
def test_nested_increments(verdict: Verdict, rng: np.random.Generator) -> None:
    first = rng.normal(0, 1, N)
    second = first + rng.normal(0, np.sqrt(3), N)
    verdict.accept(p.variance_p(second, 4.0), "variance of level 2")
    verdict.accept(p.independent_p(first, second - first), "increment independent of level 1")
    verdict.reject(p.variance_p(0.99 * second, 4.0), "noise 1 % too small")
    verdict.reject(p.independent_p(first, second - 0.98 * first), "increment that keeps 2 % of level 1")


@pytest.mark.statistical(checks=4)
def test_other_p_values(verdict: Verdict, rng: np.random.Generator) -> None:
    z, coin = rng.normal(size=N), rng.random(N)
    verdict.accept(p.normal_p(z), "normal")
    verdict.reject(p.normal_p(z + 0.02 * (z > 0)), "a gap in the middle")
    verdict.accept(p.rate_p(int((coin < 0.3).sum()), N, 0.3), "rate")
    verdict.reject(p.rate_p(int((coin < 0.305).sum()), N, 0.3), "rate off by 0.005")
    verdict.accept(p.unrelated_p(coin < 0.3, z > 1), "unrelated")
    verdict.reject(p.unrelated_p((coin < 0.3) | (z > 2.5), z > 1), "related")
    verdict.accept(p.not_negative_p(np.clip(z, -5, 5) + 0.001, 5.001), "mean not negative")
    verdict.reject(p.not_negative_p(np.clip(z, -5, 5) - 0.02, 5.02), "mean negative")
