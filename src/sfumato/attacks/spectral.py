"""Keep the directions whose variance random-matrix theory cannot explain by noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._single_copy import Copy, Filter, SingleCopyAttack


@dataclass(frozen=True, kw_only=True)
class Spectral(SingleCopyAttack):
    """Keep the directions whose variance noise cannot explain (spectral filtering).

    It takes noise for uncorrelated, as its paper does, and so fails where it is not.
    """

    reference = "Kargupta and others 2003, as in huang2005, section 7; docs/attacks.md, H14"
    margin: float = 2.02
    """Tracy-Widom deviations above the asymptotic bound; pure noise crosses it with probability 1 %."""

    def learn(self, copy: Copy) -> Filter:
        """The projection on the directions above the bound for the largest eigenvalue of pure noise."""
        units = np.sqrt(np.diag(copy.noise))
        known = copy.statistics()
        values, vectors = np.linalg.eigh(known.seen / np.outer(units, units))
        rows, size = len(copy.values), len(values)
        # Johnstone 2001, Theorem 1.1: centre and scale of the largest eigenvalue of pure noise of variance 1
        edge = np.sqrt(rows - 1) + np.sqrt(size)
        scale = edge * (1 / np.sqrt(rows - 1) + 1 / np.sqrt(size)) ** (1 / 3)
        bound = (edge**2 + self.margin * scale) / rows
        kept = vectors[:, values > bound]
        projection = (kept @ kept.T) * units[:, None] / units[None, :]
        return lambda seen: known.mean + (seen - known.mean) @ projection.T
