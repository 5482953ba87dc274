"""Univariate distribution-based reconstruction (UDR): posterior means of single columns under deconvolved densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import require_one_of
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.attacks.evidence.statistics import complete_records, subsample
from sfumato.kernels import Floats
from sfumato.kernels.deconvolution import SUPPORT_POINTS, deconvolved_density, posterior_mean


@dataclass(frozen=True, kw_only=True)
class Udr(SingleCopyAttack):
    """The posterior mean of each column by itself, under the density of the original."""

    cost = 1.1
    reference = "huang2005, section 4.2, eqs 3 and 4; the density by Agrawal and Aggarwal 2001"
    example = {"density": "gaussian"}
    density: str = "reconstructed"
    """The density of the original: `reconstructed` from the copy, or `gaussian`."""

    def __post_init__(self) -> None:
        require_one_of("density", self.density, ("reconstructed", "gaussian"))

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """A table of posterior means for each column."""
        deviations = np.sqrt(np.diag(copy.noise))
        if self.density == "gaussian":
            known = copy.statistics()
            variance = np.maximum(np.diag(known.covariance), 0)
            gain = variance / (variance + deviations**2)
            return lambda values: known.mean + gain * (values - known.mean)
        tables = [_posterior_table(copy, i, deviation) for i, deviation in enumerate(deviations)]

        def denoise(values: Floats) -> Floats:
            return np.column_stack([np.interp(values[:, i], *table) for i, table in enumerate(tables)])

        return denoise


def _posterior_table(copy: NoisyCopy, column: int, deviation: float) -> tuple[Floats, Floats]:
    """Noisy values of one column, and the posterior mean of the original at each."""
    values = copy.values[:, column]
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return np.zeros(2), np.zeros(2)
    if copy.knowledge.sample is not None:
        sample = complete_records(copy.knowledge.sample.numbers(copy.columns))[:, column]
        counts, edges = np.histogram(sample, SUPPORT_POINTS)
        points, weights = (edges[1:] + edges[:-1]) / 2, counts / counts.sum()
    else:
        points, weights = deconvolved_density(subsample(values[:, None], copy.knowledge)[:, 0], deviation)
    return posterior_mean(points, weights, deviation, float(values.min()), float(values.max()))
