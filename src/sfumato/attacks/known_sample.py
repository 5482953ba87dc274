"""Known-sample attack: align a sample of the population with rotated records, and invert the rotation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks._linear_map import Inverse, LinearMapAttack, TrainingSet
from sfumato.attacks._parameters import require_at_least, require_one_of
from sfumato.attacks.linkage.likelihood import fit_mixture, most_likely_rotation
from sfumato.attacks.linkage.principal_axes import PrincipalAxes
from sfumato.attacks.linkage.signs import signs_by_energy, signs_by_moments
from sfumato.errors import AttackError
from sfumato.kernels import Floats

_STARTS = 6
"""Reflections that fit means and third moments, and twice as many that fit third moments alone, to search from."""

_EXHAUSTIVE = 12
"""The number of columns up to which all reflections are tried."""


@dataclass(frozen=True, kw_only=True)
class KnownSample(LinearMapAttack):
    """Match the principal axes of a sample with those of the copy, choose their signs, and invert the rotation.

    `method`: `energy` tries all reflections with a two-sample statistic, as the paper does; `moments` chooses them by
    means and third moments, in any number of dimensions; `likelihood`, the default, continues from there to the
    rotation of maximum likelihood. `shift`, for copies with a translation: `centred`, the default, subtracts both
    means; `differences` takes differences of disjoint pairs as the paper does, whose distribution is symmetric, so that
    `M` and `-M` cannot be distinguished.
    """

    reference = "giannella2010, section V, Algorithm V-B.1 and eq. 10"
    example = {"method": "moments", "shift": "differences", "components": 2}
    method: str = "likelihood"
    """`energy`, `moments` or `likelihood`."""
    shift: str = "centred"
    """`centred` or `differences`."""
    components: int = 8
    """Components of the Gaussian mixture that is fitted to the copy."""

    def __post_init__(self) -> None:
        require_one_of("method", self.method, ("energy", "moments", "likelihood"))
        require_one_of("shift", self.shift, ("centred", "differences"))
        require_at_least("components", self.components, 1)

    def fit_inverse(self, training: TrainingSet) -> tuple[Inverse, Mapping[str, Any]]:
        sample, rows, translated = _noisy_sample(training), training.rows, training.model.translated
        if len(sample) < 3:
            raise AttackError(f"the attack {self.name!r} needs a sample of at least three records, got {len(sample)}")
        square = sample.shape[1] == rows.shape[1] and training.model.preserves_distances
        if translated and self.shift == "differences":
            matrix = self._fit_matrix(_differences(sample), _differences(rows), square=square)
        elif translated:
            matrix = self._fit_matrix(sample - sample.mean(axis=0), rows - rows.mean(axis=0), square=square)
        else:
            matrix = self._fit_matrix(sample, rows, square=square)
        sample_mean, rows_mean = (part.mean(axis=0) if translated else 0.0 for part in (sample, rows))
        centre, gain = training.records.mean(axis=0), _noise_filter(training)
        axes = PrincipalAxes.of(sample)
        explanation = {
            "sample": len(sample),
            "eigen-ratio": axes.eigen_ratio,
            "invariance": 0.0 if translated else axes.invariance,
        }

        def inverse(some: Floats) -> Floats:
            records = (some - rows_mean) @ matrix + sample_mean
            return records if gain is None else centre + (records - centre) @ gain

        return inverse, explanation

    def _fit_matrix(self, sample: Floats, rows: Floats, *, square: bool) -> Floats:
        """The estimate of `M`, one row per dimension of the copy; `square` if it is known to be orthogonal."""
        size = min(sample.shape[1], rows.shape[1])
        ours, theirs = PrincipalAxes.of(sample, size), PrincipalAxes.of(rows, size)
        starts = [(theirs.vectors * signs) @ ours.vectors.T for signs in self._signs(ours, theirs, sample, rows)]
        if self.method != "likelihood" or not square:
            return starts[0]
        most = max(len(rows) // (10 * rows.shape[1] ** 2), 1)
        for components in sorted({min(k, most) for k in (self.components // 2, self.components) if k}):
            # the optimum of a simple mixture is one more start for a finer one, which has more local optima
            starts = [most_likely_rotation(sample, fit_mixture(rows, components), starts, ours.vectors), *starts]
        return starts[0]

    def _signs(self, ours: PrincipalAxes, theirs: PrincipalAxes, sample: Floats, rows: Floats) -> list[Floats]:
        """The most plausible signs of the axes, the best first."""
        along, across = ours.coordinates(sample), theirs.coordinates(rows)
        if self.method == "moments":
            return signs_by_moments(along, across)
        if self.method == "likelihood":  # means can mislead where they are small along an axis
            centred = signs_by_moments(along - along.mean(axis=0), across - across.mean(axis=0))
            candidates = [*signs_by_moments(along, across)[:_STARTS], *centred[: 2 * _STARTS]]
            return list({signs.tobytes(): signs for signs in candidates}.values())[: 2 * _STARTS]
        if len(ours.values) > _EXHAUSTIVE:
            raise AttackError(
                f"all reflections are tried up to {_EXHAUSTIVE} dimensions, got {len(ours.values)}; use "
                "method='moments'"
            )
        return [signs_by_energy(along, across, theirs.deviations)]


def _noise_deviations(training: TrainingSet) -> Floats:
    """The standard deviation of the noise of each column, before the map."""
    variances = np.array([line[-1] for line in training.model.covariance])
    deviations: Floats = np.sqrt(variances) / np.array(training.model.unit)
    return deviations


def _noisy_sample(training: TrainingSet) -> Floats:
    """The sample with noise like that of the copy, so that both have the same distribution."""
    if not training.model.noise:
        return training.records
    noise = np.random.default_rng(0).normal(size=training.records.shape) * _noise_deviations(training)
    noisy: Floats = training.records + noise
    return noisy


def _noise_filter(training: TrainingSet) -> Floats | None:
    """The gain of the best linear estimate from the noisy records, once the map is inverted (li2012, eq. 6)."""
    if not training.model.noise:
        return None
    covariance = np.atleast_2d(np.cov(training.records.T))
    noise = np.diag(_noise_deviations(training) ** 2)
    return np.asarray(np.linalg.solve(covariance + noise, covariance), np.float64)


def _differences(records: Floats) -> Floats:
    """Differences of disjoint pairs of records (section V-E)."""
    half = len(records) // 2
    differences: Floats = records[:half] - records[half : 2 * half]
    return differences
