"""Independent component analysis: components of a sample and of a mapped copy, matched by distribution (Guo and Wu)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.attacks._linear_map import Inverse, LinearMapAttack, TrainingSet
from sfumato.attacks.linkage.principal_axes import PrincipalAxes
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings

_CONTRASTS = ("logcosh", "cube", "exp")
"""Contrast functions of FastICA; the one whose result is closest in distribution to the sample is used."""

_COMPARED = 1000
"""Records whose pairwise distances are computed."""

_QUANTILES = np.linspace(0.01, 0.99, 99)
"""Probabilities at which the distributions of two components are compared."""


@dataclass(frozen=True, kw_only=True)
class Ica(LinearMapAttack):
    """Find independent components of the sample and of the copy, and match them by their distributions.

    It only assumes that the matrix is invertible, so that it inverts projections as well; it needs columns that are
    linear mixtures of independent components, at most one of them normal.
    """

    reference = "Guo and Wu 2007, as in giannella2010, section II-A"

    def fit_inverse(self, training: TrainingSet) -> tuple[Inverse, Mapping[str, Any]]:
        sample, rows = training.records, training.rows
        size = min(sample.shape[1], rows.shape[1])
        if len(sample) < 10 * sample.shape[1]:
            raise AttackError(
                f"the attack 'ica' needs a sample of at least {10 * sample.shape[1]} records, got {len(sample)}"
            )
        axes = PrincipalAxes.of(rows, size)
        if any(one.values[-1] < 1e-9 * one.values[0] for one in (axes, PrincipalAxes.of(sample, size))):
            raise AttackError("the attack 'ica' needs linearly independent columns, and some are linearly dependent")
        fits = [_fit_inverse(sample, rows, axes, contrast) for contrast in _CONTRASTS]
        some = rows[:: max(len(rows) // _COMPARED, 1)]
        distances = [_energy(inverse(some), sample[:: max(len(sample) // _COMPARED, 1)]) for inverse, _ in fits]
        inverse, mismatch = fits[int(np.argmin(distances))]
        return inverse, {"sample": len(sample), "mismatch of components": mismatch}


def _fit_inverse(sample: Floats, rows: Floats, axes: PrincipalAxes, contrast: str) -> tuple[Inverse, float]:
    """The inverse map by one contrast function, and the mismatch of the components."""
    size = len(axes.values)
    mixing, ours = _components(sample, size, contrast)
    unmixing, theirs = _components(axes.coordinates(rows - axes.mean), size, contrast)
    order, signs, mismatch = _match(ours, theirs)
    inverse, centre = np.linalg.pinv(unmixing), sample.mean(axis=0)

    def estimate(some: Floats) -> Floats:
        components = axes.coordinates(some - axes.mean) @ inverse.T
        records: Floats = (components[:, order] * signs) @ mixing.T + centre
        return records

    return estimate, mismatch


def _energy(estimated: Floats, sample: Floats) -> float:
    """The energy distance between estimated records and the sample, up to a constant."""
    units = np.where(sample.std(axis=0) > 0, sample.std(axis=0), 1.0)
    one, other = estimated / units, sample / units
    return float(2 * cdist(one, other).mean() - cdist(one, one).mean())


def _components(records: Floats, size: int, contrast: str) -> tuple[Floats, Floats]:
    """The mixing matrix, and the components with mean 0 and variance 1."""
    from sklearn.decomposition import FastICA  # noqa: PLC0415 - takes long to import

    model = FastICA(size, fun=contrast, random_state=0, whiten="unit-variance", max_iter=500)
    with ignore_convergence_warnings():  # where components are nearly normal there is no optimum
        try:
            components = model.fit_transform(records)
        except ValueError as error:
            raise AttackError(f"the attack 'ica' found no independent components: {error}") from None
    return model.mixing_, components


def _match(ours: Floats, theirs: Floats) -> tuple[Any, Floats, float]:
    """The order and signs of their components that match ours, by the distance of quantiles; and the mismatch."""
    one, other, negated = (np.quantile(part, _QUANTILES, axis=0).T for part in (ours, theirs, -theirs))
    plain = np.sqrt(((one[:, None] - other[None]) ** 2).mean(axis=2))
    reflected = np.sqrt(((one[:, None] - negated[None]) ** 2).mean(axis=2))
    rows, order = linear_sum_assignment(np.minimum(plain, reflected))
    signs = np.where(reflected[rows, order] < plain[rows, order], -1.0, 1.0)
    return order, signs, float(np.minimum(plain, reflected)[rows, order].mean())
