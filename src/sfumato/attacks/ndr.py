"""Noise distribution-based reconstruction (NDR): the values of the most faithful copy, unchanged."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack
from sfumato.attacks.evidence.pooling import non_dominated
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Ndr(Attack):
    """The values of the best copy as the estimate: its error is the noise."""

    reference = "huang2005, section 4.1"
    supports = frozenset({GaussianNoise.kind})
    combines_copies = False

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Choose the copy with the most columns and, among those, the least noise."""
        parts = evidence.numbers
        best = min(non_dominated(parts), key=lambda i: (-len(parts[i].columns), parts[i].model.noise))

        def estimate(some: Evidence) -> Estimate:
            part = some.numbers[best]
            return Estimate(self.name, part.columns, part.values)

        return estimate
