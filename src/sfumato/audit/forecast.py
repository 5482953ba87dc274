"""Risk forecast: residual error, local-DP epsilon and posterior of any coalition, in closed form, before a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import Categories, Evidence, Numbers, pool
from sfumato.attacks.bayes import linear_gain
from sfumato.attacks.collusion import best_of_each_path
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.levels import Level
from sfumato.models import Model, of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.manifest import Manifest


@dataclass(frozen=True)
class NumberForecast:
    """The residual error of the best linear attack on a numeric column, as a share of its variance."""

    column: str
    residual_error: float
    independent_residual_error: float
    """The residual error if the noise of the copies were independent: `1/(1+Σ1/σᵢ²)` for noise of the data's shape."""
    standard_deviation: float
    """The standard deviation of the column, from the shape of the noise; 1 for any number."""

    @property
    def rmse(self) -> tuple[float, float]:
        """The root mean square error of the attack on these copies, and on copies with independent noise."""
        errors = (self.residual_error, self.independent_residual_error)
        first, second = (self.standard_deviation * math.sqrt(error) for error in errors)
        return first, second


@dataclass(frozen=True)
class CategoryForecast:
    """The information that copies give about a categorical attribute."""

    column: str
    size: int
    """The number of categories."""
    epsilon: float
    """The epsilon of local differential privacy: that of the best copy."""
    independent_epsilon: float
    """The epsilon if the copies were perturbed independently: the sum over the copies."""
    posterior: float
    """The largest posterior probability of a category whose prior probability is `1/size`."""
    independent_posterior: float
    """The largest posterior probability if the copies were perturbed independently."""


@dataclass(frozen=True)
class Forecast:
    """The disclosure risk of a coalition, by column."""

    numbers: tuple[NumberForecast, ...]
    categories: tuple[CategoryForecast, ...]


def of_levels(levels: Sequence[Level], domain: int) -> Forecast:
    """The forecast for copies of these levels with one number of variance 1 and one category."""
    return of_models([(_number(level), _category(level, domain)) for level in levels])


def of_copies(manifests: Sequence[Manifest]) -> Forecast:
    """The forecast for copies of one dataset that were made, from their manifests."""
    names = sorted({manifest.dataset for manifest in manifests})
    if len(names) > 1:
        raise AttackError(f"copies must be of one dataset, got {', '.join(names)}")
    return of_models([manifest.models for manifest in manifests], [f"{m.scheme}/{m.key}" for m in manifests])


def of_models(copies: Sequence[Sequence[Model]], paths: Sequence[str] | None = None) -> Forecast:
    """The forecast for copies with these public models.

    Args:
        copies: the models of each copy.
        paths: the path of each copy; by default they all lie on one.

    """
    numbers: list[Numbers] = []
    categories: list[Categories] = []
    for i, models in enumerate(copies):
        path = "" if paths is None else paths[i]
        numbers += [
            Numbers(model, _path(model, path, i), np.empty((0, len(model.columns))))
            for model in (*of_type(models, GaussianNoise), *(m.score_noise() for m in of_type(models, GaussianCopula)))
        ]
        categories += [
            Categories(model, _path(model, path, i), np.empty(0, np.int64))
            for model in of_type(models, UniformReplacement)
        ]
    evidence = Evidence(0, tuple(numbers), tuple(categories))
    return Forecast(
        tuple(_number_forecasts(numbers)) if numbers else (),
        tuple(_category_forecast(parts) for parts in evidence.attributes().values()),
    )


def _path(model: Model, path: str, copy: int) -> str:
    """The path of a model's columns: one of its own for each copy whose noise is independent."""
    return path if model.is_collusion_resistant else f"{path} {copy}"


def _number_forecasts(parts: Sequence[Numbers]) -> list[NumberForecast]:
    """The forecast of each numeric column; the noise has the shape of the data, and so gives their covariance."""
    separate = [replace(part, path=f"{part.path} {i}") for i, part in enumerate(parts)]
    pooled, independent = pool(parts), pool(separate)
    covariance = np.zeros((len(pooled.columns), len(pooled.columns)))
    for part in parts:
        indices = [pooled.columns.index(name) for name in part.columns]
        covariance[np.ix_(indices, indices)] = part.covariance / part.model.noise
    errors = [_residual_error(covariance, noise.covariance) for noise in (pooled, independent)]
    deviations = np.sqrt(np.diag(covariance))
    return [
        NumberForecast(name, float(error), float(independent_error), float(deviation))
        for name, error, independent_error, deviation in zip(pooled.columns, *errors, deviations, strict=True)
    ]


def _residual_error(covariance: Floats, noise: Floats) -> Floats:
    """The error of the best linear estimate, `Σx - Σx(Σx+Σr)⁻¹Σx`, as a share of variance (li2012, eq. 7)."""
    rest = covariance - linear_gain(covariance, noise) @ covariance
    share: Floats = np.diag(rest) / np.diag(covariance)
    return share


def _category_forecast(parts: Sequence[Categories]) -> CategoryForecast:
    size = parts[0].size
    epsilons = [math.log1p(part.model.retention * size / (1 - part.model.retention)) for part in parts]
    best = best_of_each_path(parts)
    epsilon = sum(e for part, e in zip(parts, epsilons, strict=True) if any(part is one for one in best))
    name = " x ".join(parts[0].model.columns)
    independent = sum(epsilons)
    return CategoryForecast(name, size, epsilon, independent, _posterior(epsilon, size), _posterior(independent, size))


def _posterior(epsilon: float, size: int) -> float:
    """The posterior probability after a prior of `1/size` and a likelihood ratio of `e^ε`."""
    return 1 / (1 + (size - 1) * math.exp(-epsilon))


def _number(level: Level) -> GaussianNoise:
    noise = level.noise
    return GaussianNoise(("any number",), ((noise,),), noise, (1.0,), (0.0,), (None,), (0.0,), collusion_resistant=True)


def _category(level: Level, domain: int) -> UniformReplacement:
    return UniformReplacement(
        ("any category",), ({"min": 0, "count": domain},), level.retention, False, collusion_resistant=True
    )
