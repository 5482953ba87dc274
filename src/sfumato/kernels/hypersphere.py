"""Surfaces of spheres: how likely a guess on one is near the truth (giannella2010, section IV-D and Appendix I)."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc

from sfumato.kernels import Floats


def cap(dimensions: int, reach: Floats) -> Floats:
    """The share of a sphere in so many dimensions that lies within `reach` radii of one of its points.

    giannella2010, eq. 14, with its area element corrected: `½·I_{sin²θ}((m-1)/2, ½)` up to the equator, and one minus
    that beyond. As printed it is too small from three dimensions on, and jumps at √2.
    """
    reach = np.asarray(reach, np.float64)
    if dimensions == 0:
        return np.ones_like(reach)
    if dimensions == 1:
        return np.where(reach < 2, 0.5, 1.0)
    cosine = 1 - np.minimum(reach, 2.0) ** 2 / 2
    half: Floats = 0.5 * betainc((dimensions - 1) / 2, 0.5, np.clip(1 - cosine**2, 0, 1))
    share: Floats = np.where(cosine >= 0, half, 1 - half)
    return share


def uniform_breach(dimensions: int, away: Floats, allowed: Floats) -> Floats:
    """`ρ(x, ε)`, eq. 6: the chance that a guess on the sphere where the truth must lie is not further off than allowed.

    Args:
        dimensions: `n - k`, those that known records say nothing of.
        away: the radius of the sphere, the truth's distance from what known records span.
        allowed: `ε·|x|`.

    """
    return np.where(away <= _near(allowed), 1.0, cap(dimensions, _ratio(allowed, away)))


def best_breach(dimensions: int, away: Floats, allowed: Floats) -> Floats:
    """The chance of the best guess: the middle of the sphere where all of it is near enough, else off the middle.

    A ball of the allowed radius covers most of a sphere if it is centred on the largest ring that it can reach.
    """
    if dimensions == 0:
        return np.ones_like(np.asarray(away, np.float64))
    ratio = np.minimum(_ratio(allowed, away), 1.0)
    part = 0.5 * betainc((dimensions - 1) / 2, 0.5, ratio**2) if dimensions > 1 else np.full_like(ratio, 0.5)
    return np.where(away <= np.maximum(allowed, _near(allowed)), 1.0, part)


def _ratio(allowed: Floats, away: Floats) -> Floats:
    divided: Floats = allowed / np.where(away > 0, away, 1.0)
    return divided


def _near(allowed: Floats) -> Floats:
    """A distance that is none but for rounding."""
    nothing: Floats = 1e-9 * np.asarray(allowed)
    return nothing
