"""Pooling of copies, simulation of copies, and laziness of the evidence."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sfumato.attacks import (
    ATTACKS,
    Categories,
    Evidence,
    Knowledge,
    Lazy,
    MappedRows,
    Numbers,
    non_dominated,
    pool,
    simulate_copies,
)
from sfumato.attacks.evidence.arrays import (
    Array,
    categorical_copies,
    linear_map_model,
    noise_model,
    noisy_copies,
    records,
    with_columns,
)

SHAPE = np.array([[4.0, 1.0], [1.0, 2.0]])


def copies(rng: np.random.Generator, count: int) -> list[Array]:
    return [rng.normal(size=(50, 2)) for _ in range(count)]


def test_the_best_copy_of_a_path_is_the_pooled_copy(rng: np.random.Generator) -> None:
    evidence = noisy_copies(copies(rng, 3), SHAPE, [2.0, 0.5, 1.0], collusion_resistant=True)
    pooled = pool(evidence.numbers)
    assert non_dominated(evidence.numbers) == [1]
    assert (pooled.apply(evidence.numbers) == evidence.numbers[1].values).all()
    assert pooled.covariance == pytest.approx(SHAPE * 0.5)


def test_independent_copies_are_weighted_by_precision(rng: np.random.Generator) -> None:
    evidence = noisy_copies(copies(rng, 2), SHAPE, [1.0, 3.0], collusion_resistant=False)
    pooled = pool(evidence.numbers)
    first, second = (part.values for part in evidence.numbers)
    np.testing.assert_allclose(pooled.apply(evidence.numbers), 0.75 * first + 0.25 * second, rtol=1e-9)
    np.testing.assert_allclose(pooled.covariance, SHAPE * 0.75, rtol=1e-9)


def test_a_value_that_one_copy_lacks_comes_from_another(rng: np.random.Generator) -> None:
    """A missing cell does not affect other columns, and stays missing only where all copies lack it."""
    one, two = copies(rng, 2)
    one[3, 0] = two[3, 0] = one[4, 1] = np.nan
    evidence = noisy_copies([one, two], SHAPE, [1.0, 1.0], collusion_resistant=False)
    found = pool(evidence.numbers).apply(evidence.numbers)
    assert np.isnan(found).sum() == 1
    assert np.isnan(found[3, 0])
    for name in ("llse", "bayes"):
        assert np.isnan(ATTACKS[name]().estimate(evidence).values).sum() == 1


def test_copies_of_different_columns_are_combined(rng: np.random.Generator) -> None:
    parts = []
    for i, time in enumerate((0.5, 1.0)):
        model = noise_model(SHAPE[i : i + 1, i : i + 1] * time, time)
        part = Numbers(model, "a", rng.normal(size=(50, 1)))
        parts.append(Numbers(with_columns(model, (f"c{i}",)), "a", part.values))
    pooled = pool(parts)
    assert pooled.columns == ("c0", "c1")
    np.testing.assert_allclose(pooled.apply(parts), np.hstack([part.values for part in parts]), rtol=1e-9)


def test_simulated_copies_have_the_distribution_of_the_models() -> None:
    """The noise has the stated joint distribution, and categories are retained along the path."""
    rng = np.random.default_rng(2)
    rows = 40_000
    times, retentions = [0.5, 2.0], [0.8, 0.4]
    numbers = noisy_copies([np.zeros((2, 2))] * 2, SHAPE, times, collusion_resistant=True).numbers
    categories = categorical_copies([np.zeros(2, int)] * 2, 10, retentions, collusion_resistant=True).categories
    sample = records(rng.normal(size=(rows, 2)), rng.integers(0, 10, rows))
    simulated = simulate_copies(Evidence(2, numbers, categories), sample)
    first, second = (part.values - sample.values for part in simulated.numbers)
    joint = np.cov(np.hstack([first, second]).T)
    expected = np.block([[SHAPE * 0.5, SHAPE * 0.5], [SHAPE * 0.5, SHAPE * 2.0]])
    assert np.abs(joint - expected).max() < 0.2
    truth, (a, b) = sample.codes["x",], (part.codes for part in simulated.categories)
    assert (a == truth).mean() == pytest.approx(0.8 + 0.02, abs=0.01)
    assert (b == a).mean() == pytest.approx(0.5 + 0.05, abs=0.012)
    assert (b == truth).mean() == pytest.approx(0.4 + 0.06, abs=0.012)


class Reads:
    """Lazy arrays that record when they are read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def lazy(self, name: str, value: Any) -> Lazy[Any]:
        def read() -> Any:
            self.names.append(name)
            return value

        return Lazy(read)


def lazy_evidence(reads: Reads, rng: np.random.Generator) -> Evidence:
    """Evidence with every kind of data, all of it lazy."""
    eager = categorical_copies([rng.integers(0, 5, 50)], 5, [0.5], collusion_resistant=True).categories[0]
    return Evidence(
        50,
        tuple(
            Numbers(noise_model(SHAPE * time, time), "a", reads.lazy(f"copy {time}", rng.normal(size=(50, 2))))
            for time in (0.5, 1.0)
        ),
        (Categories(eager.model, "a", reads.lazy("codes", eager.codes)),),
        reads.lazy("public", np.arange(50.0)[:, None]),
        linear_maps=(MappedRows(linear_map_model(2), "a", reads.lazy("rows", rng.normal(size=(50, 2)))),),
    )


def test_replacing_a_field_reads_no_copy(rng: np.random.Generator) -> None:
    reads = Reads()
    evidence = lazy_evidence(reads, rng)
    known = dataclasses.replace(evidence, knowledge=Knowledge(samples=20))
    moved = tuple(dataclasses.replace(part, path="b") for part in known.numbers)
    known = dataclasses.replace(known, numbers=moved, categories=known.categories)
    assert reads.names == []
    assert known.knowledge.samples == 20
    assert known.numbers[0].values is evidence.numbers[0].values
    assert reads.names == ["copy 0.5"]  # once, for both


def test_taking_rows_reads_no_copy(rng: np.random.Generator) -> None:
    reads, rows = Reads(), np.array([3, 1, 4])
    evidence = lazy_evidence(reads, rng)
    taken = dataclasses.replace(evidence.take(rows), knowledge=Knowledge())
    assert taken.rows == 3
    assert reads.names == []
    assert taken.public is not None
    assert taken.public[:, 0].tolist() == [3, 1, 4]
    assert (taken.numbers[0].values == evidence.numbers[0].values[rows]).all()
    assert (taken.categories[0].codes == evidence.categories[0].codes[rows]).all()
    assert (taken.linear_maps[0].values == evidence.linear_maps[0].values[rows]).all()
    assert sorted(reads.names) == ["codes", "copy 0.5", "public", "rows"]


def test_a_dominated_copy_is_never_read(rng: np.random.Generator) -> None:
    """On one path, the best copy contains the others: an attack does not read them."""
    reads = Reads()
    evidence = lazy_evidence(reads, rng)
    for name in ("llse", "bayes", "ndr"):
        ATTACKS[name]().estimate(evidence)
    assert reads.names == ["copy 0.5"]


def test_the_example_of_the_documentation_works(rng: np.random.Generator) -> None:
    """The docstring of `sfumato.attacks` contains a complete attack."""
    import inspect
    import textwrap

    from sfumato import attacks

    text = inspect.getdoc(attacks) or ""
    code = textwrap.dedent(text[text.index("    from dataclasses") : text.index("The command line")])
    names: dict[str, Any] = {"__name__": "column_mean"}
    exec(compile(code, "example", "exec"), names)  # noqa: S102
    values = rng.normal(size=(50, 2))
    found = names["ColumnMean"]().estimate(noisy_copies([values], SHAPE, [1.0], collusion_resistant=True))
    assert found.attack == "column-mean"
    np.testing.assert_allclose(found.values, np.tile(values.mean(axis=0), (50, 1)))
