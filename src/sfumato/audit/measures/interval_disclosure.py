"""Interval disclosure of numbers: original values that lie in an interval around those of a copy (sdcMicro)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.column_moments import column_deviations
from sfumato.kernels.convergence_warnings import ignore_convergence_warnings


@dataclass(frozen=True)
class RobustDistanceRisk:
    """The measures of sdcMicro's `dRiskRMD`, where the interval of a record grows with its distance from the centre."""

    near: float
    """The share of records of which some value lies in the interval around the original (`risk1`)."""
    near_and_alone: float
    """The share of those that no other record of the copy is close to (`risk2`)."""


def interval_disclosure(original: Floats, copy: Floats, width: float = 0.05) -> float:
    """The share of records all of whose values lie within so many standard deviations of the copy's (`dRisk`)."""
    if not original.size:
        return float("nan")
    deviations = column_deviations(copy)
    outside = np.abs(original - copy) > width * deviations  # a missing value is not outside
    return float((~outside).all(axis=1).mean())


def robust_distance_risk(
    original: Floats, copy: Floats, width: float = 0.01, apart: float = 0.05, covariance: Floats | None = None
) -> RobustDistanceRisk:
    """The measures of sdcMicro's `dRiskRMD`, for records without missing values.

    Args:
        original: the original records.
        copy: their copies.
        width: the width of an interval, relative to the robust distance of the record.
        apart: the distance within which another record of the copy hides one, in standard deviations.
        covariance: the covariance of the standardised original, by default a robust estimate of it.

    """
    original, copy = _scaled(original), _scaled(copy)
    covariance = _robust_covariance(original) if covariance is None else covariance
    centred = original - original.mean(axis=0)
    squared = np.einsum("ij,jk,ik->i", centred, np.linalg.pinv(covariance), centred)
    reach = width * 0.05 * np.sqrt(np.maximum(squared, 0.0))
    near = (np.abs(copy - original) < reach[:, None]).any(axis=1)
    alone = 0
    for i in np.flatnonzero(near):
        squares = ((copy - copy[i]) ** 2).sum(axis=1)
        squares[i] = np.inf
        alone += bool(np.sqrt(squares.min()) > apart)
    return RobustDistanceRisk(float(near.mean()), alone / len(original))


def _scaled(values: Floats) -> Floats:
    deviations = values.std(axis=0, ddof=1)
    scaled: Floats = (values - values.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    return scaled


def _robust_covariance(values: Floats) -> Floats:
    """The minimum covariance determinant."""
    from sklearn.covariance import MinCovDet  # noqa: PLC0415 - takes long to import

    with ignore_convergence_warnings():  # columns that mostly hold one value have no full rank
        covariance: Floats = MinCovDet(random_state=0).fit(values).covariance_
    return covariance
