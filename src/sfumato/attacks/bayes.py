"""Bayes-estimate data reconstruction (BE-DR): the best linear estimate from one copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import pinvh

from sfumato.attacks._parameters import require_one_of
from sfumato.attacks._single_copy import Filter, NoisyCopy, SingleCopyAttack
from sfumato.attacks.evidence.statistics import Statistics
from sfumato.kernels import Floats
from sfumato.kernels.covariances import nearest_covariance
from sfumato.kernels.shrinkage import shrunk_eigenvalues


@dataclass(frozen=True, kw_only=True)
class Bayes(SingleCopyAttack):
    """The best linear estimate from one copy, or from the pooled copy of several (BE-DR).

    In the form `μ + Σx(Σx+Σr)⁻¹(y-μ)` it is eq. 13, and the LLSE, and needs no inverse of `Σx`.
    """

    reference = "huang2005, section 6, eq. 11, and Theorem 8.1, eq. 13; docs/attacks.md, H7"
    example = {"shrink": False}
    shrink: bool = True
    """Correct the eigenvalues of an estimated covariance for the size of the sample."""

    def __post_init__(self) -> None:
        require_one_of("shrink", self.shrink, (True, False))

    def fit_filter(self, copy: NoisyCopy) -> Filter:
        """The gain matrix of the linear estimate."""
        known = copy.statistics()
        if known.sample_size is None or copy.knowledge.sample is not None:
            gain = linear_gain(known.covariance, copy.noise)
        elif self.shrink:
            gain = _shrunk_gain(known, copy.noise, known.sample_size)
        else:
            gain = np.eye(len(copy.noise)) - copy.noise @ pinvh(known.copy_covariance)
        return lambda values: known.mean + (values - known.mean) @ gain.T


def linear_gain(covariance: Floats, noise: Floats) -> Floats:
    """`Σx(Σx+Σr)⁻¹`, computed in units that put all columns on one scale."""
    units = np.sqrt(np.diag(covariance + noise))
    units = np.where(units > 0, units, 1.0)  # a column without any value varies as little as its noise
    scale = np.outer(units, units)
    gain: Floats = (covariance / scale) @ pinvh((covariance + noise) / scale)
    scaled: Floats = gain * units[:, None] / units[None, :]
    return scaled


def _shrunk_gain(known: Statistics, noise: Floats, rows: int) -> Floats:
    """`I - Σr·Σy⁻¹`, with the eigenvalues of the whitened `Σy` shrunk, and never below those of the noise."""
    units = np.sqrt(np.diag(noise))
    white, colour = _whitening(noise / np.outer(units, units))
    values, vectors = np.linalg.eigh(white @ (known.copy_covariance / np.outer(units, units)) @ white)
    values = np.maximum(shrunk_eigenvalues(np.maximum(values, 1e-12), rows), 1.0)
    gain: Floats = colour @ ((vectors * (1 - 1 / values)) @ vectors.T) @ white
    return gain * units[:, None] / units[None, :]


def _whitening(correlation: Floats) -> tuple[Floats, Floats]:
    """`R^(-1/2)` and `R^(1/2)`; a direction without noise is given a little."""
    values, vectors = np.linalg.eigh(nearest_covariance(correlation, np.ones(len(correlation))))
    values = np.maximum(values, 1e-9 * values[-1])
    return (vectors / np.sqrt(values)) @ vectors.T, (vectors * np.sqrt(values)) @ vectors.T
