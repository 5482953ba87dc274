"""The posterior mean under a mixture of normals: what the best linear estimate misses where data are not normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import at_least
from sfumato.attacks._single_copy import Copy, Filter, SingleCopyAttack
from sfumato.attacks.evidence.statistics import chosen, complete
from sfumato.kernels import Floats
from sfumato.kernels.covariances import positive
from sfumato.kernels.mixture import fit


@dataclass(frozen=True, kw_only=True)
class Mixture(SingleCopyAttack):
    """The posterior mean under a mixture of normals, fitted to what lies behind the noise."""

    reference = "huang2005, section 6, beyond the normal law; the fit by Bovy, Hogg and Roweis 2011"
    components: int = 8
    rows: int = 10_000
    """How many records the mixture is fitted to."""

    def __post_init__(self) -> None:
        at_least("components", self.components, 1)
        at_least("rows", self.rows, 10)

    def learn(self, copy: Copy) -> Filter:
        """The mixture, in units that put all columns on one scale."""
        units = copy.values.std(axis=0)
        units = np.where(units > 0, units, 1.0)
        noise = positive(copy.noise / np.outer(units, units), np.ones(len(units))) + 1e-9 * np.eye(len(units))
        if copy.knowledge.sample is not None:
            sample = complete(copy.knowledge.sample.numbers(copy.columns)) / units
            law = fit(sample[: self.rows], np.zeros_like(noise), self.components)
        else:
            seen = chosen(copy.values, copy.knowledge)
            step = max(len(seen) // self.rows, 1)
            law = fit(seen[::step] / units, noise, self.components)

        def clean(seen: Floats) -> Floats:
            return law.posterior_mean(seen / units, noise) * units

        return clean
