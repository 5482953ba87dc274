"""Normal scores: the distribution function and its inverse, truncated draws, bins, and bivariate probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

from sfumato.kernels import bins
from sfumato.kernels.bivariate_normal import lower_quadrant, score_correlation
from sfumato.kernels.normal import exponential, logarithm, lower_tail, quantile, tables, truncated, truncated_far
from sfumato.kernels.scores import conditional, first_scores, redraw_scores


def test_functions_agree_with_scipy() -> None:
    x = np.linspace(-37, 8, 4001)
    assert np.allclose([lower_tail(one) for one in x], ndtr(x), rtol=1e-13, atol=0)
    p = np.concatenate([10.0 ** -np.linspace(0.31, 300, 2001), 1 - 10.0 ** -np.linspace(0.31, 15, 501)])
    assert np.allclose([quantile(one) for one in p], ndtri(p), rtol=1e-13, atol=1e-15)
    y = np.linspace(-700, 700, 1001)
    assert np.allclose([exponential(one) for one in y], np.exp(y), rtol=1e-13, atol=0)
    z = 10.0 ** np.linspace(-300, 300, 1001)
    assert np.allclose([logarithm(one) for one in z], np.log(z), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("low", "high"), [(-9, 9), (-0.3, 0.4), (0.5, 9), (-9, -2), (3, 3.5), (6, 7), (-40, -38), (2, 2.0001)]
)
def test_truncated_draws_are_quantiles(low: float, high: float) -> None:
    shares = (np.arange(200) + 0.5) / 200
    lower, upper = np.full(200, float(low)), np.full(200, float(high))
    by_tables, far = truncated(lower, upper, shares, tables())
    drawn = np.where(far, truncated_far(lower, upper, shares), by_tables)
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    assert (np.diff(drawn) >= -1e-8).all()
    if ndtr(high) - ndtr(low) > 1e-300 and abs(low) < 30:
        expected = stats.truncnorm.ppf(shares, low, high)
        assert np.allclose(drawn, expected, rtol=0, atol=2e-6 * max(1.0, 1 / (high - low)))


@given(
    st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=40, unique=True).map(sorted),
    st.lists(st.floats(-12_000, 12_000, allow_nan=False), min_size=1, max_size=50),
)
def test_the_guide_finds_the_bin(starts: list[int], values: list[float]) -> None:
    """Adjacent bins, whose widths in the score are one per integer, so that the lower end is the integer itself."""
    low = np.array(starts, np.float64)
    high = np.append(low[1:] - 1, low[-1] + 5)
    parts = (low, high, low, np.ones(len(low)))
    given_values, none = np.array(values), np.empty(0, np.bool_)
    integers, lower, upper = np.empty(len(values), np.int64), np.empty(len(values)), np.empty(len(values))
    assert bins.to_cells(given_values, none, 1.0, parts, bins.guide(low), integers, lower, upper) == 0
    expected = np.clip(np.rint(given_values), low[0], high[-1])
    assert (integers == expected).all()
    inner = (integers > low[0]) & (integers < high[-1])
    assert (lower[inner] == expected[inner]).all()
    assert (upper[inner] == expected[inner] + 1).all()
    out = np.empty(len(values), np.int64)
    ends = low[1:]
    bins.from_scores(expected + 0.5, ends, parts, bins.guide(ends), out)
    assert (out == integers).all()


def test_values_between_bins_are_moved_to_the_nearest() -> None:
    low, high = np.array([0.0, 10.0]), np.array([2.0, 12.0])
    parts = (low, high, low, np.ones(2))
    values, integers, ends = np.array([-5.0, 4.0, 5.9, 6.1, 7.0, 99.0]), np.empty(6, np.int64), np.empty(6)
    bins.to_cells(values, np.empty(0, np.bool_), 1.0, parts, bins.guide(low), integers, ends, ends.copy())
    assert integers.tolist() == [0, 2, 2, 2, 10, 12]


def test_bivariate_probabilities() -> None:
    ends = np.array([-1.5, 0.0, 0.7, 2.0])
    for correlation in (-0.95, -0.3, 0.0, 0.6, 0.97):
        normal = stats.multivariate_normal(cov=[[1, correlation], [correlation, 1]], allow_singular=True)
        expected = [[normal.cdf([a, b]) for b in ends] for a in ends]
        assert np.allclose(lower_quadrant(ends, ends, correlation), expected, atol=2e-5)


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.3, 0.8])
def test_the_correlation_behind_a_table_is_found(correlation: float) -> None:
    ends = np.array([-9, -1, 0.2, 0.9, 9.0])
    cells = np.diff(np.diff(lower_quadrant(ends, ends, correlation), axis=0), axis=1)
    assert score_correlation(1e6 * cells) == pytest.approx(correlation, abs=0.01)
    assert score_correlation(np.array([[5.0, 7.0]])) == 0.0


def test_scores_given_each_other_keep_the_correlation_that_independent_ones_lose() -> None:
    rng, rows = np.random.default_rng(1), 40_000
    correlation = np.array([[1, 0.7, 0.5], [0.7, 1, 0.6], [0.5, 0.6, 1]])
    root = np.linalg.cholesky(correlation)
    scores = root @ rng.normal(size=(3, rows))
    positive = scores > 0
    lower, upper = np.where(positive, 0.0, -9.0), np.where(positive, 9.0, 0.0)
    lower[0], upper[0] = scores[0] - 0.01, scores[0] + 0.01  # a continuous column
    found: dict[str, Any] = {}
    for name, matrix in (("given each other", correlation), ("independent", np.eye(3))):
        drawn = np.empty((3, rows))
        first_scores(lower, upper, _blocks(rng, rows, 1), np.linalg.cholesky(matrix), tables(), drawn)
        redraw_scores(lower, upper, _blocks(rng, rows, 1), np.array([1, 2]), conditional(matrix), tables(), drawn)
        assert (drawn >= lower).all()
        assert (drawn <= upper).all()
        found[name] = np.corrcoef(drawn)
    assert np.abs(found["given each other"] - correlation).max() < 0.03
    assert correlation[0, 1] - found["independent"][0, 1] > 0.1


def _blocks(rng: np.random.Generator, rows: int, blocks: int) -> np.ndarray:
    return rng.integers(0, 1 << 64, (blocks, 2 * rows), np.uint64)
