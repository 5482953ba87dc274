"""The posterior mean of each column by itself, under the density that its noise hides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import one_of
from sfumato.attacks._single_copy import Copy, Filter, SingleCopyAttack
from sfumato.attacks.evidence.statistics import chosen, complete
from sfumato.kernels import Floats
from sfumato.kernels.deconvolution import GRID, density, posterior_mean


@dataclass(frozen=True, kw_only=True)
class Udr(SingleCopyAttack):
    """The posterior mean of each column by itself, under the density that the noise hides."""

    reference = "huang2005, section 4.2, eqs 3 and 4; the density by Agrawal and Aggarwal 2001"
    density: str = "reconstructed"
    """`reconstructed` from the copy, or `gaussian`."""

    def __post_init__(self) -> None:
        one_of("density", self.density, ("reconstructed", "gaussian"))

    def learn(self, copy: Copy) -> Filter:
        """A table of guesses for each column."""
        deviations = np.sqrt(np.diag(copy.noise))
        if self.density == "gaussian":
            known = copy.statistics()
            variance = np.maximum(np.diag(known.covariance), 0)
            gain = variance / (variance + deviations**2)
            return lambda seen: known.mean + gain * (seen - known.mean)
        tables = [_table(copy, i, deviation) for i, deviation in enumerate(deviations)]

        def clean(seen: Floats) -> Floats:
            return np.column_stack([np.interp(seen[:, i], *table) for i, table in enumerate(tables)])

        return clean


def _table(copy: Copy, column: int, deviation: float) -> tuple[Floats, Floats]:
    """What to guess for what is seen of one column."""
    seen = copy.shown[:, column]
    seen = seen[~np.isnan(seen)]
    if len(seen) < 2:
        return np.zeros(2), np.zeros(2)
    if copy.knowledge.sample is not None:
        counts, edges = np.histogram(complete(copy.knowledge.sample.numbers(copy.columns))[:, column], GRID)
        points, weights = (edges[1:] + edges[:-1]) / 2, counts / counts.sum()
    else:
        points, weights = density(chosen(seen[:, None], copy.knowledge)[:, 0], deviation)
    return posterior_mean(points, weights, deviation, float(seen.min()), float(seen.max()))
