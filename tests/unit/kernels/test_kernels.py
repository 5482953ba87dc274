"""Numerical kernels: Cholesky factors, exact moments, the rounding lattice, and the replacement process."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.kernels import lattice
from sfumato.kernels.cholesky import correlation_factor, gram
from sfumato.kernels.exact_moments import covariance, cross_products, resolution, to_integers
from sfumato.kernels.replacement import replace


def test_the_factor_of_a_regular_matrix_is_its_cholesky_factor() -> None:
    draw = np.random.default_rng(1)
    correlation: Any = np.corrcoef(draw.normal(size=(6, 50)) + draw.normal(size=50))
    np.testing.assert_allclose(correlation_factor(correlation), np.linalg.cholesky(correlation), atol=1e-12)


@pytest.mark.parametrize(
    "matrix",
    [
        [[1, 1], [1, 1]],
        [[1, -1, 0], [-1, 1, 0], [0, 0, 1]],
        [[1, 0.6, 0.6], [0.6, 1, 1], [0.6, 1, 1]],
        np.ones((5, 5)).tolist(),
    ],
)
def test_a_singular_matrix_has_a_factor_too(matrix: list[list[float]]) -> None:
    np.testing.assert_allclose(gram(correlation_factor(np.array(matrix, dtype=float))), matrix, atol=1e-9)


def test_an_indefinite_matrix_is_shrunk_to_a_correlation_matrix() -> None:
    indefinite = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    result = gram(correlation_factor(indefinite))
    np.testing.assert_allclose(np.diag(result), 1)
    assert np.linalg.eigvalsh(result).min() > -1e-9
    assert np.sign(result[0, 2]) == -1


def test_moments_are_correct_and_independent_of_the_order_of_rows() -> None:
    draw = np.random.default_rng(2)
    values: Any = draw.normal(1e6, 3, (2, 5000))
    none = np.empty(0, bool)
    integers = np.stack([to_integers(line, none, line.min(), line.max()) for line in values] + [np.ones(5000)] * 2)
    assert (np.abs(integers) <= 2**21).all()
    total = cross_products(integers)
    shuffled = cross_products(np.ascontiguousarray(integers[:, draw.permutation(5000)]))
    assert (total == shuffled).all()
    exact = sum(Fraction(int(a)) * int(b) for a, b in zip(integers[0], integers[1], strict=True))
    assert total[0, 1] == exact
    resolutions = [resolution(line.min(), line.max()) for line in values]
    np.testing.assert_allclose(covariance(total, resolutions), np.cov(values), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("spread", [1e-300, 1e-9, 1.0, 65536.0, 1e12, 1e300])
def test_the_step_is_a_power_of_two_just_under_a_65536th(spread: float) -> None:
    step = lattice.fine_step(spread, spread)
    assert math.frexp(step)[0] == 0.5
    assert 2**16 <= spread / step < 2**17 or spread < 1e-290


def test_a_large_offset_makes_the_step_coarser_and_keeps_sums_exact() -> None:
    step = lattice.fine_step(1e-9, 1e12)
    assert 1e12 / step <= lattice.LARGEST


def test_the_rounding_correlation_agrees_with_a_simulation() -> None:
    """The correlation is `-step²/(12σσ_D)`; the lattice is coarse enough to measure it."""
    draw = np.random.default_rng(3)
    first, more = draw.normal(0, 0.6, 4_000_000), draw.normal(0, 0.7, 4_000_000)
    one, two = np.rint(first), np.rint(first + more)
    measured = np.mean(one * (two - one)) / (0.6 * 0.7)
    assert measured == pytest.approx(lattice.rounding_correlation(1, 0.6, 0.7), abs=0.06)
    assert lattice.rounding_correlation(2**-16, 1, 1) == pytest.approx(-2e-11, rel=0.1)


def test_replacement_in_a_domain_of_one_value_and_of_very_many() -> None:
    cells = np.arange(2000, dtype=np.uint64)

    def bits(lane: str, addresses: Any) -> Any:
        import hashlib

        seed = int.from_bytes(hashlib.sha256(lane.encode() + addresses.tobytes()).digest()[:8], "big")
        return np.random.default_rng(seed).integers(0, 2**64, len(addresses), dtype=np.uint64)

    assert (replace(np.zeros(1000, np.int64), 0.1, 1, cells, bits) == 0).all()
    size = (1 << 31) - 1  # almost half of the draws are rejected and drawn again
    out = replace(np.zeros(1000, np.int64), 1e-6, size, cells, bits)
    assert (out > 0).all()
    assert (out < size).all()
    assert abs(out.mean() / size - 0.5) < 0.1
