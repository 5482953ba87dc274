"""Keep the directions in which the data vary, and drop the noise of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import one_of
from sfumato.attacks._single_copy import Copy, Filter, SingleCopyAttack
from sfumato.errors import AttackError
from sfumato.kernels import Floats


@dataclass(frozen=True, kw_only=True)
class Pca(SingleCopyAttack):
    """Keep the directions in which the data vary, and drop the noise of the others (PCA-DR).

    About the mean, and with the eigenvectors of `Σy - Σr`: the paper's own are those of uncorrelated noise.
    """

    reference = "huang2005, section 5.2, Theorem 5.2 and section 8.1; docs/attacks.md, H1, H5, H6"
    components: int | str | float = "gap"
    """How many directions to keep: up to the largest `gap` between eigenvalues, so many, or that share of variance."""

    scaled: bool = True
    """Measure columns in their noise's standard deviations; the paper's are of one unit, and taken as they are."""

    def __post_init__(self) -> None:
        one_of("scaled", self.scaled, (True, False))

    def learn(self, copy: Copy) -> Filter:
        """The projection on the directions that are kept."""
        known = copy.statistics()
        units = np.sqrt(np.diag(copy.noise)) if self.scaled else np.ones(len(copy.noise))
        values, vectors = np.linalg.eigh(known.covariance / np.outer(units, units))
        kept = vectors[:, ::-1][:, : self._count(values[::-1])]
        projection = (kept @ kept.T) * units[:, None] / units[None, :]
        return lambda seen: known.mean + (seen - known.mean) @ projection.T

    def _count(self, falling: Floats) -> int:
        if self.components == "gap":  # the last gap is that to zero: all directions may be worth keeping
            return int(np.argmax(falling - np.append(falling[1:], 0.0))) + 1
        if isinstance(self.components, int) and 1 <= self.components <= len(falling):
            return self.components
        if isinstance(self.components, float) and 0 < self.components <= 1:
            share = np.cumsum(np.maximum(falling, 0)) / np.maximum(falling, 0).sum()
            return int(np.searchsorted(share, self.components - 1e-12)) + 1
        raise AttackError(
            f"`components` of pca must be 'gap', a number from 1 to {len(falling)} or a share of variance such as 0.9, "
            f"got {self.components!r}"
        )
