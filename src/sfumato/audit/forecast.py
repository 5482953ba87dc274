"""The coalition calculator: what any set of copies gives away, in closed form, before one of them is made."""

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
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.manifest import Manifest


@dataclass(frozen=True)
class NumberForecast:
    """The share of a column's variance that the best linear attack leaves, and its root mean square error."""

    column: str
    ours: float
    independent: float
    """Had the noise been independent between copies: `1/(1+Σ1/σᵢ²)` for noise in the shape of the data."""
    deviation: float
    """Of the column, as far as the noise's shape tells; 1 for any number."""

    @property
    def rmse(self) -> tuple[float, float]:
        """The root mean square error, with our copies and with independent ones."""
        return self.deviation * math.sqrt(self.ours), self.deviation * math.sqrt(self.independent)


@dataclass(frozen=True)
class CategoryForecast:
    """What the copies tell about an attribute of so many values."""

    column: str
    size: int
    epsilon: float
    """Of local differential privacy, with our copies: that of the best one."""
    independent_epsilon: float
    """Had they been perturbed independently: the sum."""
    posterior: float
    """What a belief of one in `size` can rise to at most."""
    independent_posterior: float


@dataclass(frozen=True)
class Forecast:
    """For a coalition."""

    numbers: tuple[NumberForecast, ...]
    categories: tuple[CategoryForecast, ...]


def of_levels(levels: Sequence[Level], domain: int) -> Forecast:
    """For one column of numbers of deviation 1, and one of categories."""
    return of_models([(_number(level), _category(level, domain)) for level in levels])


def of_copies(manifests: Sequence[Manifest]) -> Forecast:
    """For copies that were made, all of one dataset."""
    names = sorted({manifest.dataset for manifest in manifests})
    if len(names) > 1:
        raise AttackError(f"copies must be of one dataset, got {', '.join(names)}")
    return of_models([manifest.models for manifest in manifests], [f"{m.scheme}/{m.key}" for m in manifests])


def of_models(copies: Sequence[Sequence[Model]], paths: Sequence[str] | None = None) -> Forecast:
    """For copies with these models.

    Args:
        paths: names the path of each copy; by default they all lie on one.

    """
    numbers, categories = [], []
    for i, models in enumerate(copies):
        path = "" if paths is None else paths[i]
        for model in models:
            if isinstance(model, GaussianNoise):
                shown = np.empty((0, len(model.columns)))
                numbers.append(Numbers(model, path if model.collusion_resistant else f"{path} {i}", shown))
            elif isinstance(model, UniformReplacement):
                categories.append(
                    Categories(model, path if model.collusion_resistant else f"{path} {i}", np.empty(0, np.int64))
                )
    evidence = Evidence(0, tuple(numbers), tuple(categories))
    return Forecast(
        tuple(_forecast(numbers)) if numbers else (),
        tuple(_category_forecast(parts) for parts in evidence.attributes().values()),
    )


def _forecast(parts: Sequence[Numbers]) -> list[NumberForecast]:
    """The noise has the shape of the data, so that it also tells their covariance."""
    apart = [replace(part, path=f"{part.path} {i}") for i, part in enumerate(parts)]
    ours, independent = pool(parts), pool(apart)
    whole = np.zeros((len(ours.columns), len(ours.columns)))
    for part in parts:
        places = [ours.columns.index(name) for name in part.columns]
        whole[np.ix_(places, places)] = part.covariance / part.model.noise
    left = [_left(whole, noise.covariance) for noise in (ours, independent)]
    deviations = np.sqrt(np.diag(whole))
    return [
        NumberForecast(name, float(a), float(b), float(deviation))
        for name, a, b, deviation in zip(ours.columns, *left, deviations, strict=True)
    ]


def _left(covariance: Floats, noise: Floats) -> Floats:
    """The error of the best linear estimate, `Σx - Σx(Σx+Σr)⁻¹Σx`, as a share of variance (li2012, eq. 7)."""
    rest = covariance - linear_gain(covariance, noise) @ covariance
    share: Floats = np.diag(rest) / np.diag(covariance)
    return share


def _category_forecast(parts: Sequence[Categories]) -> CategoryForecast:
    size = parts[0].size
    alone = [math.log1p(part.model.retention * size / (1 - part.model.retention)) for part in parts]
    held = best_of_each_path(parts)
    ours = sum(log for part, log in zip(parts, alone, strict=True) if any(part is best for best in held))
    name = " x ".join(parts[0].model.columns)
    return CategoryForecast(name, size, ours, sum(alone), _rise(ours, size), _rise(sum(alone), size))


def _rise(epsilon: float, size: int) -> float:
    """What a belief of `1/size` rises to by a likelihood ratio of `e^ε`."""
    return 1 / (1 + (size - 1) * math.exp(-epsilon))


def _number(level: Level) -> GaussianNoise:
    noise = level.noise
    return GaussianNoise(("any number",), ((noise,),), noise, (1.0,), (0.0,), (None,), (0.0,), collusion_resistant=True)


def _category(level: Level, domain: int) -> UniformReplacement:
    return UniformReplacement(
        ("any category",), ({"min": 0, "count": domain},), level.retention, False, collusion_resistant=True
    )
