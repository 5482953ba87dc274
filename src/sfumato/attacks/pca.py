"""PCA-based data reconstruction (PCA-DR): project on the principal components, and drop the noise of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import require_one_of
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.errors import AttackError
from sfumato.kernels import Floats


@dataclass(frozen=True, kw_only=True)
class Pca(SingleCopyAttack):
    """Project on the principal components of the original, and drop the noise of the others (PCA-DR).

    About the mean, and with the eigenvectors of `Σy - Σr`; the paper's are those for uncorrelated noise.
    """

    reference = "huang2005, section 5.2, Theorem 5.2 and section 8.1; docs/attacks.md, H1, H5, H6"
    example = {"components": 2}
    components: int | str | float = "gap"
    """Components to keep: those before the largest `gap` between eigenvalues, a number, or a share of the variance."""

    scaled: bool = True
    """Measure columns in standard deviations of their noise; the paper's have one unit and are not scaled."""

    def __post_init__(self) -> None:
        require_one_of("scaled", self.scaled, (True, False))

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """The projection on the components that are kept."""
        known = copy.statistics()
        units = np.sqrt(np.diag(copy.noise)) if self.scaled else np.ones(len(copy.noise))
        values, vectors = np.linalg.eigh(known.covariance / np.outer(units, units))
        kept = vectors[:, ::-1][:, : self._count(values[::-1])]
        projection = (kept @ kept.T) * units[:, None] / units[None, :]
        return lambda values: known.mean + (values - known.mean) @ projection.T

    def _count(self, eigenvalues: Floats) -> int:
        """The number of components to keep, of eigenvalues in decreasing order."""
        if self.components == "gap":  # the last gap is that to zero: all components may be kept
            return int(np.argmax(eigenvalues - np.append(eigenvalues[1:], 0.0))) + 1
        if isinstance(self.components, int) and 1 <= self.components <= len(eigenvalues):
            return self.components
        if isinstance(self.components, float) and 0 < self.components <= 1:
            share = np.cumsum(np.maximum(eigenvalues, 0)) / np.maximum(eigenvalues, 0).sum()
            return int(np.searchsorted(share, self.components - 1e-12)) + 1
        raise AttackError(
            f"`components` of pca must be 'gap', an integer from 1 to {len(eigenvalues)} or a share of variance such "
            f"as 0.9, got {self.components!r}"
        )
