"""Take the most faithful copy at its word."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.attacks import Attack, Estimate, Evidence, Guess
from sfumato.attacks.evidence.pooling import non_dominated
from sfumato.models.gaussian_noise import GaussianNoise


@dataclass(frozen=True, kw_only=True)
class Ndr(Attack):
    """Take the best copy at its word: the error is the noise."""

    reference = "huang2005, section 4.1"
    supports = frozenset({GaussianNoise.kind})
    pools = False

    def prepare(self, evidence: Evidence) -> Guess:
        """The best copy that shows most."""
        parts = evidence.numbers
        best = min(non_dominated(parts), key=lambda i: (-len(parts[i].columns), parts[i].model.noise))

        def guess(some: Evidence) -> Estimate:
            part = some.numbers[best]
            return Estimate(self.name, part.columns, part.values)

        return guess
