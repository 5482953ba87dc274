"""Differential privacy of a record's values: zCDP of clipped numbers, ε of categories, composed to `(ε, δ)`.

It is local: what one record's copy discloses of its values, to somebody who knows everything else. Copies on one path
count once, as the best of them; each further version in which a record changed has noise of its own, and counts again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import AttackError, install_hint
from sfumato.kernels.covariances import symmetric
from sfumato.models import Model, of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

DELTA = 1e-6
_MOST_CORNERS = 16
"""With at most this many columns, the two records that noise protects least are found exactly."""


_LARGEST_RHO = 100.0
"""Beyond it, ε is bounded by `ρ + 2√(ρ·log(1/δ))` (Bun and Steinke 2016, Proposition 1.3)."""


@dataclass(frozen=True)
class AttributeBudget:
    """The privacy budget of one attribute, where the others of the record are fixed."""

    columns: tuple[str, ...]
    rho: float | None
    """zCDP's ρ of a clipped number; none where the column is not clipped, and so without a bound."""
    epsilon: float
    """ε at `DELTA` for numbers, pure ε for categories; infinite without a bound."""


@dataclass(frozen=True)
class PrivacyBudget:
    """The privacy budget of whole records."""

    attributes: tuple[AttributeBudget, ...]
    rho: float
    """zCDP's ρ of all numbers of a record together; infinite if one of them is not clipped."""
    epsilon: float
    """ε at `delta` of all perturbed columns of a record, over all versions."""
    delta: float
    versions: int
    """The number of independent draws of noise that a record may have received."""


def privacy_budget(
    models: Sequence[Model], bounds: Mapping[str, tuple[float, float]], versions: int = 1
) -> PrivacyBudget | None:
    """The budget of a copy with these models; none where it perturbs neither numbers nor categories.

    Args:
        models: the models of the best copy.
        bounds: the range of each clipped column, in the unit of its noise.
        versions: the number of independent draws of noise that a record may have received.

    """
    numbers, categories = of_type(models, GaussianNoise), of_type(models, UniformReplacement)
    if not numbers and not categories:
        return None
    attributes = [one for model in numbers for one in _number_budgets(model, bounds, versions)]
    attributes += [AttributeBudget(m.columns, None, versions * replacement_epsilon(m)) for m in categories if m.size]
    rho = versions * sum(record_rho(model, bounds) for model in numbers)
    choices = [(m.retention, m.size) for m in categories if m.size > 1]
    return PrivacyBudget(tuple(attributes), rho, composed_epsilon(rho, choices, versions), DELTA, versions)


def replacement_epsilon(model: UniformReplacement) -> float:
    """`ε = log(1 + p·s/(1-p))` of a category that is retained with probability `p`, else one of `s` (xiao2009)."""
    return math.log1p(model.retention * model.size / (1 - model.retention)) if model.retention < 1 else math.inf


def _number_budgets(
    model: GaussianNoise, bounds: Mapping[str, tuple[float, float]], versions: int
) -> list[AttributeBudget]:
    """Each column alone: `ρ = Δ²·(Σ⁻¹)ⱼⱼ/2`, as others' noise is correlated with its own."""
    precision = np.diag(np.linalg.pinv(symmetric(model.covariance), hermitian=True))
    found = []
    for name, value in zip(model.columns, precision, strict=True):
        if name in bounds:
            rho = versions * float(np.ptp(bounds[name])) ** 2 * float(value) / 2
            found.append(AttributeBudget((name,), rho, composed_epsilon(rho, [], 1)))
        else:
            found.append(AttributeBudget((name,), None, math.inf))
    return found


def record_rho(model: GaussianNoise, bounds: Mapping[str, tuple[float, float]]) -> float:
    """`max dᵀΣ⁻¹d/2` over all differences `d` of two records within the bounds: at a corner, as it is convex."""
    if any(name not in bounds for name in model.columns):
        return math.inf
    precision = np.linalg.pinv(symmetric(model.covariance), hermitian=True)
    widths = np.array([np.ptp(bounds[name]) for name in model.columns])
    scaled = precision * np.outer(widths, widths)
    if len(widths) > _MOST_CORNERS:
        return float(np.abs(scaled).sum() / 2)  # an upper bound
    signs = itertools.product((1.0, -1.0), repeat=len(widths) - 1)
    return max(float(s @ scaled @ s) for s in (np.array([1.0, *rest]) for rest in signs)) / 2


def composed_epsilon(rho: float, choices: Sequence[tuple[float, int]], versions: int) -> float:
    """ε at `DELTA` of normal noise with this ρ in all, and of categories retained with a probability, per version."""
    if math.isinf(rho) or any(retention >= 1 for retention, _ in choices):
        return math.inf
    if rho > _LARGEST_RHO:  # so large that nobody needs it to many digits
        pure = versions * sum(math.log1p(p * size / (1 - p)) for p, size in choices)
        return rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) + pure
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise AttackError(f"a privacy budget needs dp_accounting; {install_hint('dp')}") from None
    parts = [pld.from_gaussian_mechanism(1 / math.sqrt(2 * rho), value_discretization_interval=1e-3)] if rho else []
    for retention, size in choices:
        one = pld.from_randomized_response(1 - retention, size, value_discretization_interval=1e-3)
        parts.append(one.self_compose(versions) if versions > 1 else one)
    if not parts:
        return 0.0
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(DELTA))
