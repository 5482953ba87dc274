"""Gaussian mixture attack: the posterior mean under a mixture, better than a linear estimate of non-normal data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks._parameters import require_at_least
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.attacks.evidence.statistics import complete_records, subsample
from sfumato.kernels import Floats
from sfumato.kernels.covariances import nearest_covariance
from sfumato.kernels.mixture import fit


@dataclass(frozen=True, kw_only=True)
class Mixture(SingleCopyAttack):
    """The posterior mean under a Gaussian mixture that is fitted to the original by deconvolution of the noise."""

    cost = 1.3
    reference = "huang2005, section 6, beyond normal distributions; the fit by Bovy, Hogg and Roweis 2011"
    example = {"components": 3}
    unit_tolerance = 0.02  # clusters break ties in another way
    components: int = 8
    """Components of the mixture."""
    rows: int = 5_000
    """The largest number of records that the mixture is fitted to."""

    def __post_init__(self) -> None:
        require_at_least("components", self.components, 1)
        require_at_least("rows", self.rows, 10)

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """The mixture, in units that put all columns on one scale."""
        deviations, noisy = copy.training.std(axis=0), np.sqrt(np.diag(copy.noise))
        units = np.where(deviations > 1e-6 * noisy, deviations, np.where(noisy > 0, noisy, 1.0))  # nothing to be learnt
        noise = nearest_covariance(copy.noise / np.outer(units, units), np.ones(len(units))) + 1e-9 * np.eye(len(units))
        if copy.knowledge.sample is not None:
            sample = complete_records(copy.knowledge.sample.numbers(copy.columns)) / units
            mixture = fit(sample[: self.rows], np.zeros_like(noise), self.components)
        else:
            training = subsample(copy.training, copy.knowledge)
            step = max(len(training) // self.rows, 1)
            mixture = fit(training[::step] / units, noise, self.components)

        def denoise(values: Floats) -> Floats:
            return mixture.posterior_mean(values / units, noise) * units

        return denoise
