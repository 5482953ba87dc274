"""Scores with NumPy and in compiled loops are the same, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sfumato.kernels import bins, compiled, score_arrays, scores
from sfumato.kernels.normal import tables

ROWS = 3000


@pytest.fixture(params=range(3))
def rng(request: pytest.FixtureRequest, seed: list[int]) -> np.random.Generator:
    return np.random.default_rng([*seed, request.param])


def _intervals(rng: np.random.Generator, scores: int) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of all widths, some of them far out on either side."""
    middle, width = 2 * rng.normal(size=(scores, ROWS)), rng.choice([1e-5, 0.05, 0.2, 1.0, 4.0], (scores, ROWS))
    lower, upper = middle - width, middle + width
    lower[:, :200], upper[:, :200] = rng.uniform(3, 8.9, (scores, 200)), 9.0
    lower[:, 200:400], upper[:, 200:400] = -9.0, rng.uniform(-8.9, -3, (scores, 200))
    lower[:, 400:600] = rng.uniform(5, 8, (scores, 200))
    upper[:, 400:600] = lower[:, 400:600] + rng.uniform(0.01, 0.9, (scores, 200))
    return np.maximum(lower, -9.0), np.minimum(upper, 9.0)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_scores_are_the_same(size: int, rng: np.random.Generator) -> None:
    mixed = rng.normal(size=(size, size + 2))
    covariance = mixed @ mixed.T
    deviations = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviations, deviations)
    root, conditional = np.linalg.cholesky(correlation), scores.conditional(correlation)
    lower, upper = _intervals(rng, size)
    blocks = rng.integers(0, 1 << 64, (2, 2 * ROWS), np.uint64)
    made, expected = np.empty_like(lower), np.empty_like(lower)
    score_arrays.first_scores(lower, upper, blocks, root, tables(), made)
    scores.first_scores.dispatcher(lower, upper, blocks, root, tables(), expected)
    assert_array_equal(made, expected)
    assert ((made >= lower) & (made <= upper)).all()
    wide = np.arange(0, size, 2)
    score_arrays.redraw_scores(lower, upper, blocks, wide, conditional, tables(), made)
    scores.redraw_scores.dispatcher(lower, upper, blocks, wide, conditional, tables(), expected)
    assert_array_equal(made, expected)
    path = rng.normal(size=(size, ROWS))
    assert_array_equal(
        score_arrays.degrade(root, path, made, 0.7), scores.degrade.dispatcher(root, path, expected, 0.7)
    )


@pytest.mark.parametrize("count", [1, 2, 60])
def test_bins_are_the_same(count: int, rng: np.random.Generator) -> None:
    gaps = np.cumsum(rng.integers(1, 9, 2 * count)).astype(np.float64)
    low, high = gaps[::2], gaps[1::2] - 1
    high = np.maximum(low, high)
    starts = np.sort(rng.normal(size=count + 1))
    parts = (low, high, starts[:-1], np.diff(starts) / (high - low + 1))
    values = rng.uniform(low[0] - 5, high[-1] + 5, ROWS)
    values[::7], values[5::11] = np.rint(values[::7]), np.rint(values[5::11]) + 0.5
    values[3], values[1000], values[2000] = np.nan, np.inf, -np.inf
    for null in (np.empty(0, np.bool_), rng.random(ROWS) < 0.2):
        results: list[Any] = []
        for cells in (score_arrays.to_cells, bins.to_cells.dispatcher):
            filled = np.empty(ROWS, np.int64), np.empty(ROWS), np.empty(ROWS)
            results.append([cells(values, null, 1.0, parts, bins.guide(low), *filled), *filled])
        for made, expected in zip(*results, strict=True):
            assert_array_equal(made, expected)
    ends, drawn = starts[1:-1], np.clip(2 * rng.normal(size=ROWS), -9, 9)
    drawn[: len(ends)] = ends
    made, expected = np.empty(ROWS, np.int64), np.empty(ROWS, np.int64)
    score_arrays.from_scores(drawn, ends, parts, bins.guide(ends), made)
    bins.from_scores.dispatcher(drawn, ends, parts, bins.guide(ends), expected)
    assert_array_equal(made, expected)
    before, after = np.array([-9.0, *starts, 9.0]), np.array([-9.0, *np.sort(rng.normal(size=count + 1)), 9.0])
    shown, mapped = np.empty(ROWS), np.empty(ROWS)
    score_arrays.mapped(drawn, before, after, bins.guide(before), shown)
    bins.mapped.dispatcher(drawn, before, after, bins.guide(before), mapped)
    assert_array_equal(shown, mapped)


def test_small_work_is_done_with_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_worked", 0)
    seen = []
    small = compiled.njit(arrays=lambda values: seen.append(values.size))(lambda values: values.size)
    for _ in range(3):
        small(np.zeros(compiled._WORTH_LOADING // 4))
    assert seen == [compiled._WORTH_LOADING // 4] * 3
    assert small(np.zeros(compiled._WORTH_LOADING // 4)) == compiled._WORTH_LOADING // 4
    assert small(np.zeros(1)) == 1  # once it is there, it is used
    assert len(seen) == 3
