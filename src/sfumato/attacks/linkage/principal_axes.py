"""Principal axes of a sample and of a copy, and the matrix that takes one to the other (giannella2010, section V)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats


@dataclass(frozen=True)
class Axes:
    """Eigenvectors of a covariance, by falling eigenvalue."""

    mean: Floats
    vectors: Floats
    """One column an axis."""
    values: Floats

    @classmethod
    def of(cls, records: Floats, count: int | None = None) -> Axes:
        """Of a sample, the first so many."""
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(records.T)))
        order = np.argsort(values)[::-1][:count]
        return cls(records.mean(axis=0), vectors[:, order], np.maximum(values[order], 1e-300))

    @property
    def spread(self) -> Floats:
        """The standard deviation along each axis."""
        deviations: Floats = np.sqrt(self.values)
        return deviations

    def coordinates(self, records: Floats) -> Floats:
        """Along the axes, from the origin, in standard deviations; 0 along axes that nothing varies in."""
        varies = self.values > 1e-12 * self.values[0]
        along: Floats = records @ self.vectors * np.where(varies, 1 / self.spread, 0.0)
        return along

    @property
    def eigen_ratio(self) -> float:
        """The least ratio of an eigenvalue to the next: near 1, two axes can be taken for each other (section V-D)."""
        kept = self.values[self.values > 1e-9 * self.values[0]]
        return float((kept[:-1] / kept[1:]).min()) if len(kept) > 1 else np.inf

    @property
    def invariance(self) -> float:
        """`4·min(zᵢᵀμ)²/λᵢ`: how far a normal law with this mean is from its own mirror images (eq. 9, simplified).

        Zero for a mean of zero: then only the shape of the law can tell which way an axis points.
        """
        return float(4 * ((self.mean @ self.vectors) ** 2 / self.values).min())
