"""The mixture attack where a column of a copy shows nothing."""

from __future__ import annotations

import numpy as np

from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import noisy_copy


def test_a_column_that_is_constant_but_for_rounding_is_no_failure() -> None:
    """Scores of missing values that all records lack: they were imputed, and differ by less than any noise."""
    draw, noise = np.random.default_rng(1), np.array([[1, 0.3, 0.1], [0.3, 1, 0.2], [0.1, 0.2, 1]])
    original = draw.normal(size=(1000, 2))
    constant = np.where(np.arange(1000) % 2, 0.3, np.nextafter(0.3, 1))
    observed = np.column_stack([original + draw.multivariate_normal([0, 0], noise[:2, :2], 1000), constant])
    estimate = ATTACKS["mixture"]().estimate(noisy_copy(observed, noise)).values[:, :2]
    assert np.mean((estimate - original) ** 2) < 0.6  # as without that column: about 0.5
