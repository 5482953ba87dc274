"""Spectral filtering: keep the eigenvectors whose eigenvalues exceed what random-matrix theory expects of noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack


@dataclass(frozen=True, kw_only=True)
class Spectral(SingleCopyAttack):
    """Keep the directions whose variance noise cannot explain (spectral filtering).

    Like its paper, it assumes uncorrelated noise, and so fails where noise is correlated.
    """

    reference = "Kargupta and others 2003, as in huang2005, section 7; docs/attacks.md, H14"
    example = {"margin": 0.0}
    margin: float = 2.02
    """Tracy-Widom deviations above the asymptotic bound; pure noise exceeds it with probability 1 %."""

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """The projection on the eigenvectors above the bound for the largest eigenvalue of pure noise."""
        units = np.sqrt(np.diag(copy.noise))
        known = copy.statistics()
        values, vectors = np.linalg.eigh(known.copy_covariance / np.outer(units, units))
        rows, size = len(copy.training), len(values)
        # Johnstone 2001, Theorem 1.1: centre and scale of the largest eigenvalue of pure noise of variance 1
        edge = np.sqrt(rows - 1) + np.sqrt(size)
        scale = edge * (1 / np.sqrt(rows - 1) + 1 / np.sqrt(size)) ** (1 / 3)
        bound = (edge**2 + self.margin * scale) / rows
        kept = vectors[:, values > bound]
        projection = (kept @ kept.T) * units[:, None] / units[None, :]
        return lambda values: known.mean + (values - known.mean) @ projection.T
