"""The synthetic data of huang2005, with settings under which the statements of its sections 7 and 8.2 hold.

The paper does not state the standard deviation of the noise (5 here), the mean variance of an attribute (100 in
Experiments 1 and 2), the small eigenvalues (4) and the number of records (10,000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sfumato.attacks import Evidence
from sfumato.attacks.evidence.arrays import Array, noisy_copy, normal_records, random_orthogonal, rmse
from sfumato.kernels.covariances import correlation_dissimilarity

SETTINGS = (
    "the variance of the noise (25; for 4 some statements do not hold), the mean variance of an attribute (100), the "
    "small eigenvalues (4) and the number of records (10,000)"
)
"""What the paper does not state, and we chose so that its statements hold."""
NOISE = 25.0
"""The variance of the noise."""
SCHEMES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "UDR": ("udr", {"density": "gaussian"}),
    "SF": ("spectral", {"margin": 0.0}),
    "PCA-DR": ("pca", {}),
    "BE-DR": ("bayes", {"shrink": False}),
    "BE-DR, shrunk (ours)": ("bayes", {}),
}
"""The attack and its options for each reconstruction scheme of the paper."""


class Simulation(NamedTuple):
    """Synthetic records, a copy of them as evidence, and the true parameters of both."""

    original: Array
    evidence: Evidence
    eigenvalues: Array
    noise: Array
    """The eigenvalues of the noise covariance, for the same eigenvectors."""
    covariance: Array
    noise_covariance: Array

    def pca_theory(self, components: int) -> float:
        """The error of PCA-DR: the noise in the components kept and the signal in those discarded (H2)."""
        return float(np.sqrt((self.noise[:components].sum() + self.eigenvalues[components:].sum()) / len(self.noise)))

    def bayes_theory(self) -> float:
        """The error of the best linear estimate."""
        return float(np.sqrt(np.mean(1 / (1 / self.eigenvalues + 1 / self.noise))))

    def plugin_theory(self) -> float:
        """The error of the best linear estimate with an estimated covariance, for white noise (H7)."""
        size, rows = len(self.noise), len(self.original)
        ratio = size / rows
        extra = ratio / (1 - ratio) * NOISE**2 * np.sum(1 / (self.eigenvalues + NOISE)) / size
        return float(np.sqrt(self.bayes_theory() ** 2 + extra))


@cache
def simulate(
    eigenvalues: tuple[float, ...], rows: int = 10_000, noise: tuple[float, ...] = (), repeat: int = 0
) -> Simulation:
    """Records whose covariance has these eigenvalues, and noise with the eigenvalues `noise` (section 7.1)."""
    path = [len(eigenvalues), rows, int(sum(eigenvalues)), int(sum(noise[:1]) * 100)]
    rng = np.random.default_rng([*path, repeat] if repeat else path)
    eigenvectors = random_orthogonal(rng, len(eigenvalues))
    original, covariance = normal_records(rng, eigenvalues, rows, eigenvectors)
    spectrum = np.array(noise or [NOISE] * len(eigenvalues))
    noise_covariance = (eigenvectors * spectrum) @ eigenvectors.T
    observed = original + rng.normal(size=original.shape) * np.sqrt(spectrum) @ eigenvectors.T
    evidence = noisy_copy(observed, noise_covariance)
    return Simulation(original, evidence, np.array(eigenvalues), spectrum, covariance, noise_covariance)


def experiment1(size: int, small: float = 4.0) -> tuple[float, ...]:
    """The eigenvalues of Experiment 1: five principal components among `size` attributes."""
    return ((100 * size - small * (size - 5)) / 5,) * 5 + (small,) * (size - 5)


def experiment2(principal: int) -> tuple[float, ...]:
    """The eigenvalues of Experiment 2: a number of principal components among a hundred attributes."""
    return ((100 * 100 - 4.0 * (100 - principal)) / principal,) * principal + (4.0,) * (100 - principal)


def experiment3(small: float) -> tuple[float, ...]:
    """The eigenvalues of Experiment 3: twenty principal components, and eighty others with the eigenvalue `small`."""
    return (400.0,) * 20 + (small,) * 80


EIGENVALUES_4 = (400.0,) * 50 + (4.0,) * 50
"""The eigenvalues of the data in Experiment 4."""


def noise4(share: float) -> tuple[float, ...]:
    """The eigenvalues of the noise in Experiment 4, from proportional to the data's (share 800/404) to the opposite."""
    return (NOISE * share,) * 50 + (NOISE * (2 - share),) * 50


def dissimilarity(share: float) -> float:
    """The correlation dissimilarity (Definition 8.1 as printed) of data and noise in Experiment 4."""
    simulation = simulate(EIGENVALUES_4, 1000, noise4(share))
    return correlation_dissimilarity(simulation.covariance, simulation.noise_covariance)


def sweep(
    settings: Iterable[Any], make: Callable[[Any, int], Simulation], repeats: int, **options: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The root mean square error of every scheme at every setting, and its standard deviation over repetitions."""
    out = []
    for setting in settings:
        simulations = [make(setting, repeat) for repeat in range(repeats)]
        for scheme, (name, defaults) in SCHEMES.items():
            chosen = {**defaults, **options.get(name, {})}
            errors = [rmse(name, one.evidence, one.original, **chosen) for one in simulations]
            out.append({"scheme": scheme, "x": setting, "rmse": float(np.mean(errors)), "sd": float(np.std(errors))})
        simulate.cache_clear()
    return out
