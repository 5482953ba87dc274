"""The synthetic data of huang2005: settings with which the sentences of its sections 7 and 8.2 hold.

The paper leaves unsaid: the noise's deviation (5 here), the mean variance of an attribute (100 in Experiments 1 and 2),
the small eigenvalues (4), the number of records (10,000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sfumato.attacks import Evidence
from sfumato.experiments import _array_evidence as lab

NOISE = 25.0
SCHEMES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "UDR": ("udr", {"density": "gaussian"}),
    "SF": ("spectral", {"margin": 0.0}),
    "PCA-DR": ("pca", {}),
    "BE-DR": ("bayes", {"shrink": False}),
    "BE-DR, shrunk (ours)": ("bayes", {}),
}


class World(NamedTuple):
    """Records, a copy of them, and what is true of both."""

    real: lab.Array
    evidence: Evidence
    eigenvalues: lab.Array
    noise: lab.Array
    """Eigenvalues of the noise, on the same axes."""
    covariance: lab.Array
    noise_covariance: lab.Array

    def pca_theory(self, kept: int) -> float:
        """The noise that is kept and the signal that is not (H2)."""
        return float(np.sqrt((self.noise[:kept].sum() + self.eigenvalues[kept:].sum()) / len(self.noise)))

    def bayes_theory(self) -> float:
        """The error of the best linear estimate."""
        return float(np.sqrt(np.mean(1 / (1 / self.eigenvalues + 1 / self.noise))))

    def plugin_theory(self) -> float:
        """What estimating the covariance costs, for white noise (H7)."""
        size, rows = len(self.noise), len(self.real)
        share = size / rows
        extra = share / (1 - share) * NOISE**2 * np.sum(1 / (self.eigenvalues + NOISE)) / size
        return float(np.sqrt(self.bayes_theory() ** 2 + extra))


@cache
def world(eigenvalues: tuple[float, ...], rows: int = 10_000, noise: tuple[float, ...] = (), repeat: int = 0) -> World:
    """Records with this spectrum, and noise with that one (section 7.1)."""
    path = [len(eigenvalues), rows, int(sum(eigenvalues)), int(sum(noise[:1]) * 100)]
    rng = np.random.default_rng([*path, repeat] if repeat else path)
    axes = lab.rotation(rng, len(eigenvalues))
    real, covariance = lab.spectrum(rng, eigenvalues, rows, axes)
    spectrum = np.array(noise or [NOISE] * len(eigenvalues))
    shape = (axes * spectrum) @ axes.T
    seen = real + rng.normal(size=real.shape) * np.sqrt(spectrum) @ axes.T
    return World(real, lab.one_copy(seen, shape), np.array(eigenvalues), spectrum, covariance, shape)


def experiment1(size: int, small: float = 4.0) -> tuple[float, ...]:
    """Five principal components of so many attributes."""
    return ((100 * size - small * (size - 5)) / 5,) * 5 + (small,) * (size - 5)


def experiment2(principal: int) -> tuple[float, ...]:
    """So many principal components of a hundred attributes."""
    return ((100 * 100 - 4.0 * (100 - principal)) / principal,) * principal + (4.0,) * (100 - principal)


def experiment3(small: float) -> tuple[float, ...]:
    """Twenty principal components and eighty others, whose eigenvalues grow."""
    return (400.0,) * 20 + (small,) * 80


EIGENVALUES_4 = (400.0,) * 50 + (4.0,) * 50


def noise4(share: float) -> tuple[float, ...]:
    """From noise with the shape of the data, 800/404, to its opposite."""
    return (NOISE * share,) * 50 + (NOISE * (2 - share),) * 50


def dissimilarity(share: float) -> float:
    """Definition 8.1 as printed, of the data and the noise of Experiment 4, in expectation over the axes."""
    found = world(EIGENVALUES_4, 1000, noise4(share))
    one, two = (_correlations(c) for c in (found.covariance, found.noise_covariance))
    return float(np.sqrt(((one - two) ** 2).sum()) / (100**2 - 100))


def _correlations(covariance: lab.Array) -> lab.Array:
    deviation = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviation, deviation)


def sweep(
    places: Iterable[Any], make: Callable[[Any, int], World], repeats: int, **options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The root mean square error of every scheme at every place, and its standard deviation over repetitions."""
    out = []
    for place in places:
        worlds = [make(place, repeat) for repeat in range(repeats)]
        for series, (name, plain) in SCHEMES.items():
            asked = {**plain, **options.get(name, {})}
            found = [lab.rmse(name, one.evidence, one.real, **asked) for one in worlds]
            out.append({"scheme": series, "x": place, "rmse": float(np.mean(found)), "sd": float(np.std(found))})
        world.cache_clear()
    return out
