"""The design of a linear model, seen through blur: unbiased columns, and the covariance of their errors.

A number is its own unbiased column. For a category `c` it is `(1[y=c] - (1-p)/s)/p`, whose error varies with the
record; what linear models need is its mean over the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from sfumato.kernels import Floats
from sfumato.kernels.covariances import positive
from sfumato.mining.features.features import Features


@dataclass(frozen=True)
class Design:
    """How the columns of a model are made of features."""

    features: Features

    def __post_init__(self) -> None:
        self.features.check_apart()

    def exact(self, values: Floats) -> Floats:
        """Of records as they are: numbers, and zeros and ones for all categories but the first."""
        parts = [
            (values[:, i, None] == np.arange(1, f.size)).astype(np.float64) if f.size else values[:, i, None]
            for i, f in enumerate(self.features.columns)
        ]
        return np.concatenate(parts, axis=1)

    def unbiased(self, values: Floats) -> Floats:
        """Of records as the copy shows them."""
        parts = []
        for i, feature in enumerate(self.features.columns):
            if feature.size:
                shown = (values[:, i, None] == np.arange(1, feature.size)).astype(np.float64)
                parts.append((shown - (1 - feature.retention) / feature.size) / feature.retention)
            else:
                parts.append(values[:, i, None])
        return np.concatenate(parts, axis=1)

    def errors(self, values: Floats) -> Floats:
        """The mean covariance of `unbiased - exact`."""
        numbers = self.features.numbers
        blocks = []
        for i, feature in enumerate(self.features.columns):
            if feature.size:
                blocks.append(_category_errors(values[:, i], feature.size, feature.retention))
            else:
                blocks.append(np.zeros((1, 1)))
        out: Floats = block_diag(*blocks)
        places = np.cumsum([0, *(len(block) for block in blocks)])[numbers]
        out[np.ix_(places, places)] = self.features.noise[np.ix_(numbers, numbers)]
        return out

    def numbers(self) -> list[int]:
        """The places of the columns of numbers in the design."""
        sizes = [max(feature.size - 1, 0) if feature.size else 1 for feature in self.features.columns]
        starts = np.cumsum([0, *sizes])
        return [int(starts[i]) for i in self.features.numbers]


def _category_errors(codes: Floats, size: int, kept: float) -> Floats:
    """`(E[diag(m) - m·mᵀ])/p²` with `m(x) = p·e_x + (1-p)/s`, for all categories but the first."""
    seen = np.bincount(codes.astype(np.int64), minlength=size) / len(codes)
    chance = np.maximum((seen - (1 - kept) / size) / kept, 0)
    other = (1 - kept) / size
    square = kept**2 * np.diag(chance) + kept * other * (chance[:, None] + chance) + other**2
    whole: Floats = (np.diag(kept * chance + other) - square) / kept**2
    return whole[1:, 1:]


def uncovered(seen: Floats, errors: Floats) -> Floats:
    """The covariance of the exact design: what is seen less its errors, but no direction less than a hundredth."""
    units = np.sqrt(np.maximum(np.diag(seen), 1e-300))
    return positive(seen - errors, units) + 1e-9 * np.diag(units**2)
