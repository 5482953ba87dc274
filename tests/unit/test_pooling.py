"""How copies are pooled, and how an attacker makes copies of its own."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.attacks import ATTACKS, Evidence, Numbers, non_dominated, pool, simulated
from sfumato.experiments import _array_evidence as lab

SHAPE = np.array([[4.0, 1.0], [1.0, 2.0]])


def seen(rng: np.random.Generator, count: int) -> list[lab.Array]:
    return [rng.normal(size=(50, 2)) for _ in range(count)]


def test_the_best_of_a_path_is_the_pool(rng: np.random.Generator) -> None:
    evidence = lab.copies(seen(rng, 3), SHAPE, [2.0, 0.5, 1.0], collusion_resistant=True)
    pooled = pool(evidence.numbers)
    assert non_dominated(evidence.numbers) == [1]
    assert (pooled.of(evidence.numbers) == evidence.numbers[1].values).all()
    assert pooled.covariance == pytest.approx(SHAPE * 0.5)


def test_independent_copies_weigh_by_precision(rng: np.random.Generator) -> None:
    evidence = lab.copies(seen(rng, 2), SHAPE, [1.0, 3.0], collusion_resistant=False)
    pooled = pool(evidence.numbers)
    first, second = (part.values for part in evidence.numbers)
    np.testing.assert_allclose(pooled.of(evidence.numbers), 0.75 * first + 0.25 * second, rtol=1e-9)
    np.testing.assert_allclose(pooled.covariance, SHAPE * 0.75, rtol=1e-9)


def test_what_one_copy_misses_another_may_show(rng: np.random.Generator) -> None:
    """A missing cell takes nothing from the other columns, and is missing only where all copies miss it."""
    one, two = seen(rng, 2)
    one[3, 0] = two[3, 0] = one[4, 1] = np.nan
    evidence = lab.copies([one, two], SHAPE, [1.0, 1.0], collusion_resistant=False)
    found = pool(evidence.numbers).of(evidence.numbers)
    assert np.isnan(found).sum() == 1
    assert np.isnan(found[3, 0])
    for name in ("llse", "bayes"):
        assert np.isnan(ATTACKS[name]().estimate(evidence).values).sum() == 1


def test_copies_of_one_column_each_make_a_whole(rng: np.random.Generator) -> None:
    parts = []
    for i, time in enumerate((0.5, 1.0)):
        model = lab.noise_model(SHAPE[i : i + 1, i : i + 1] * time, time)
        shown = Numbers(model, "a", rng.normal(size=(50, 1)))
        parts.append(Numbers(lab.renamed(model, (f"c{i}",)), "a", shown.values))
    pooled = pool(parts)
    assert pooled.columns == ("c0", "c1")
    np.testing.assert_allclose(pooled.of(parts), np.hstack([part.values for part in parts]), rtol=1e-9)


def test_an_attacker_can_make_the_copies_itself() -> None:
    """The noise of simulated copies has the stated joint law, and categories are kept along the path."""
    rng = np.random.default_rng(2)
    rows = 40_000
    times, kept = [0.5, 2.0], [0.8, 0.4]
    numbers = lab.copies([np.zeros((2, 2))] * 2, SHAPE, times, collusion_resistant=True).numbers
    categories = lab.categories([np.zeros(2, int)] * 2, 10, kept, collusion_resistant=True).categories
    sample = lab.truth(rng.normal(size=(rows, 2)), rng.integers(0, 10, rows))
    made = simulated(Evidence(2, numbers, categories), sample)
    first, second = (part.values - sample.values for part in made.numbers)
    joint = np.cov(np.hstack([first, second]).T)
    expected = np.block([[SHAPE * 0.5, SHAPE * 0.5], [SHAPE * 0.5, SHAPE * 2.0]])
    assert np.abs(joint - expected).max() < 0.2
    truth, (a, b) = sample.codes["x",], (part.codes for part in made.categories)
    assert (a == truth).mean() == pytest.approx(0.8 + 0.02, abs=0.01)
    assert (b == a).mean() == pytest.approx(0.5 + 0.05, abs=0.012)
    assert (b == truth).mean() == pytest.approx(0.4 + 0.06, abs=0.012)
