"""Hyperspherical caps, and the probability of a privacy breach by known inputs (giannella2010, IV-D, Appendix I)."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc

from sfumato.kernels import Floats


def cap_fraction(dimensions: int, reach: Floats) -> Floats:
    """The fraction of a sphere's surface that lies within `reach` radii of one of its points.

    giannella2010, eq. 14, with its area element corrected: `½·I_{sin²θ}((m-1)/2, ½)` up to the equator, and one minus
    that beyond. The printed formula is too small from three dimensions on, and is discontinuous at √2.
    """
    reach = np.asarray(reach, np.float64)
    if dimensions == 0:
        return np.ones_like(reach)
    if dimensions == 1:
        return np.where(reach < 2, 0.5, 1.0)
    cosine = 1 - np.minimum(reach, 2.0) ** 2 / 2
    half: Floats = 0.5 * betainc((dimensions - 1) / 2, 0.5, np.clip(1 - cosine**2, 0, 1))
    fraction: Floats = np.where(cosine >= 0, half, 1 - half)
    return fraction


def uniform_breach_probability(dimensions: int, radius: Floats, tolerance: Floats) -> Floats:
    """The breach probability `ρ(x, ε)` of an estimate drawn uniformly from the sphere that contains the truth (eq. 6).

    Args:
        dimensions: `n - k`, the dimensions orthogonal to the known records.
        radius: the radius of the sphere, which is the distance of the truth from the span of the known records.
        tolerance: `ε·|x|`, the largest error that counts as a breach.

    """
    return np.where(radius <= _rounding(tolerance), 1.0, cap_fraction(dimensions, _ratio(tolerance, radius)))


def best_breach_probability(dimensions: int, radius: Floats, tolerance: Floats) -> Floats:
    """The breach probability of the best single estimate.

    It is the centre of the sphere if the whole sphere is within tolerance. Otherwise a ball of the
    tolerated radius covers most of the sphere if it is centred on the largest circle that it can reach.
    """
    if dimensions == 0:
        return np.ones_like(np.asarray(radius, np.float64))
    ratio = np.minimum(_ratio(tolerance, radius), 1.0)
    covered = 0.5 * betainc((dimensions - 1) / 2, 0.5, ratio**2) if dimensions > 1 else np.full_like(ratio, 0.5)
    return np.where(radius <= np.maximum(tolerance, _rounding(tolerance)), 1.0, covered)


def _ratio(tolerance: Floats, radius: Floats) -> Floats:
    ratio: Floats = tolerance / np.where(radius > 0, radius, 1.0)
    return ratio


def _rounding(tolerance: Floats) -> Floats:
    """The largest radius that is zero up to rounding."""
    negligible: Floats = 1e-9 * np.asarray(tolerance)
    return negligible
