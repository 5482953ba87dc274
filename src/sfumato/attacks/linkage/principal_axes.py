"""Principal axes of a sample and of a copy, which determine the map between the two (giannella2010, section V)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats


@dataclass(frozen=True)
class PrincipalAxes:
    """The eigenvectors of a covariance matrix, by decreasing eigenvalue."""

    mean: Floats
    vectors: Floats
    """The axes, one per column of the matrix."""
    values: Floats
    """The eigenvalues."""

    @classmethod
    def of(cls, records: Floats, count: int | None = None) -> PrincipalAxes:
        """The first `count` principal axes of a sample, by default all of them."""
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(records.T)))
        order = np.argsort(values)[::-1][:count]
        return cls(records.mean(axis=0), vectors[:, order], np.maximum(values[order], 1e-300))

    @property
    def deviations(self) -> Floats:
        """The standard deviation along each axis."""
        deviations: Floats = np.sqrt(self.values)
        return deviations

    def coordinates(self, records: Floats) -> Floats:
        """Principal component scores, not centred, in standard deviations; 0 along axes without variance."""
        varies = self.values > 1e-12 * self.values[0]
        scores: Floats = records @ self.vectors * np.where(varies, 1 / self.deviations, 0.0)
        return scores

    @property
    def eigen_ratio(self) -> float:
        """The smallest ratio of an eigenvalue to the next; near 1, two axes can be confused (section V-D)."""
        positive = self.values[self.values > 1e-9 * self.values[0]]
        return float((positive[:-1] / positive[1:]).min()) if len(positive) > 1 else np.inf

    @property
    def invariance(self) -> float:
        """`4·min(zᵢᵀμ)²/λᵢ`: the divergence of a normal distribution from its nearest reflection (eq. 9, simplified).

        It is zero for a mean of zero: then only the shape of the distribution determines the sign of an axis.
        """
        return float(4 * ((self.mean @ self.vectors) ** 2 / self.values).min())
