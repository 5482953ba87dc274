"""Zhang 2005, Fig. 3: five functions of Agrawal and Srikant's people, cut into quartiles, against ByClass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.experiments._agrawal_srikant import generate_people, quartile_codes
from sfumato.experiments._classification_functions import BITS, NAMES, accuracy_bound, byclass_accuracy, guided_accuracy
from sfumato.survey import leakage

Array = Any


def _entropy(*columns: Array) -> float:
    counts = np.unique(np.column_stack(columns), axis=0, return_counts=True)[1] / len(columns[0])
    return float(-(counts * np.log2(counts)).sum())


def test_people_in_quartiles() -> None:
    """Commission is 0 for most, so that one of its four bins is empty (E15)."""
    codes, sizes = quartile_codes(generate_people(100_000, 1))
    by_name = dict(zip(NAMES, codes.T, strict=True))
    pairs = [("salary", "commission"), ("zipcode", "hvalue")]  # the rest is independent
    alone = [name for name in NAMES if not any(name in pair for pair in pairs)]
    total = sum(_entropy(by_name[a], by_name[b]) for a, b in pairs) + sum(_entropy(by_name[name]) for name in alone)
    assert sum(sizes) == 42
    assert total == pytest.approx(BITS, abs=0.02)
    assert (by_name["commission"] == 1).sum() == 0
    assert leakage.paper_bound(codes, sizes, 1) == pytest.approx(0.251, abs=0.003)


@pytest.mark.parametrize(("number", "most"), [(1, 0.832), (2, 0.850), (3, 0.893), (4, 0.927), (5, 0.924)])
def test_ceilings(number: int, most: float) -> None:
    """No classifier on quartiles is better than the majority in each cell of what matters (E16)."""
    assert accuracy_bound(number, 1_000_000) == pytest.approx(most, abs=0.003 + 0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "accuracy", "around"),
    [(1, 0.835, 0.008), (2, 0.807, 0.035), (3, 0.819, 0.02), (4, 0.898, 0.02), (5, 0.899, 0.015)],
)
def test_the_scheme_on_five_functions(number: int, accuracy: float, around: float) -> None:
    found = [guided_accuracy(number, seed) for seed in range(1, 6)]
    assert np.mean([right for right, _ in found]) == pytest.approx(accuracy, abs=around)
    assert 0.21 <= np.mean([leaked for _, leaked in found]) <= 0.28


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "low", "high"), [(1, 0.97, 1.0), (2, 0.80, 0.84), (3, 0.82, 0.88), (4, 0.905, 0.935), (5, 0.905, 0.935)]
)
def test_byclass_at_equal_leakage_is_no_worse(number: int, low: float, high: float) -> None:
    """The paper's headline does not reproduce: the randomisation that it beats is at least as good.

    The better of stopping early, as Agrawal and Srikant do, and late: what is sharp needs many rounds, what is not few.
    """
    found = byclass_accuracy(number, 1)
    print(number, found)
    assert low <= max(found.values()) <= high
