"""Evidence for attacks built from NumPy arrays, for simulations and tests that need no release, file or key."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.attacks import ATTACKS, Categories, Evidence, Knowledge, MappedRows, Numbers, Records
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation
from sfumato.models.uniform_replacement import UniformReplacement

Array = Any


def noise_model(covariance: Array, noise: float = 1.0) -> GaussianNoise:
    """The model of columns `c0`, `c1`, ... with Gaussian noise of this covariance."""
    size = len(covariance)
    return GaussianNoise(
        columns=tuple(f"c{i}" for i in range(size)),
        covariance=tuple(tuple(map(float, covariance[i][: i + 1])) for i in range(size)),
        noise=noise,
        scale=(1.0,) * size,
        step=(0.0,) * size,
        clip=(None,) * size,
        rounding=(0.0,) * size,
        collusion_resistant=True,
    )


def with_columns(model: GaussianNoise, columns: tuple[str, ...]) -> GaussianNoise:
    """The same model for columns of other names."""
    return dataclasses.replace(model, columns=columns)


def noisy_copy(observed: Array, covariance: Array, knowledge: Knowledge | None = None) -> Evidence:
    """One copy of numeric records with Gaussian noise of this covariance."""
    part = Numbers(noise_model(covariance), "a", np.asarray(observed))
    return Evidence(len(observed), (part,), knowledge=knowledge or Knowledge(), position_data=_row_order(len(observed)))


def noisy_copies(
    observed: Sequence[Array],
    covariance: Array,
    scales: Sequence[float],
    *,
    collusion_resistant: bool,
    knowledge: Knowledge | None = None,
) -> Evidence:
    """Several copies of numeric records; the noise of each has `covariance` times its scale."""
    parts = [
        Numbers(
            noise_model(np.asarray(covariance) * scale, scale),
            "a" if collusion_resistant else f"path {i}",
            np.asarray(values),
        )
        for i, (values, scale) in enumerate(zip(observed, scales, strict=True))
    ]
    rows = len(observed[0])
    return Evidence(rows, tuple(parts), knowledge=knowledge or Knowledge(), position_data=_row_order(rows))


def categorical_copies(
    observed: Sequence[Array],
    size: int,
    retentions: Sequence[float],
    *,
    collusion_resistant: bool,
    knowledge: Knowledge | None = None,
) -> Evidence:
    """Several copies of one categorical attribute `x` with a domain of `size` values, given as indices."""
    parts = [
        Categories(
            UniformReplacement(
                ("x",),
                ({"min": 0, "count": size},),
                retention,
                perturbs_null=False,
                collusion_resistant=collusion_resistant,
            ),
            "a" if collusion_resistant else f"path {i}",
            np.asarray(codes),
        )
        for i, (codes, retention) in enumerate(zip(observed, retentions, strict=True))
    ]
    rows = len(observed[0])
    return Evidence(rows, (), tuple(parts), knowledge=knowledge or Knowledge(), position_data=_row_order(rows))


def _row_order(rows: int) -> Array:
    """The positions of records whose order is that of the rows."""
    return np.arange(rows, dtype=np.float64)[:, None]


def records(values: Array, codes: Array | None = None) -> Records:
    """Original records: numeric columns `c0`, `c1`, ... and, if given, the codes of a categorical column `x`."""
    names = tuple(f"c{i}" for i in range(np.asarray(values).shape[1]))
    return Records(names, np.asarray(values), {} if codes is None else {("x",): np.asarray(codes)})


def rmse(name: str, evidence: Evidence, original: Array, **options: Any) -> float:
    """The root mean square error of an attack over all values."""
    estimate = ATTACKS[name](**options).estimate(evidence).values
    return float(np.sqrt(np.mean((estimate - original) ** 2)))


def random_orthogonal(rng: np.random.Generator, size: int) -> Array:
    """An orthogonal matrix drawn uniformly (Haar measure on O(n))."""
    q, r = np.linalg.qr(rng.normal(size=(size, size)))
    return q * np.sign(np.diag(r))


def normal_records(
    rng: np.random.Generator, eigenvalues: Array, rows: int, eigenvectors: Array | None = None
) -> tuple[Array, Array]:
    """Normal records whose covariance has these eigenvalues, and that covariance (huang2005, section 7.1)."""
    values = np.asarray(eigenvalues, float)
    axes = random_orthogonal(rng, len(values)) if eigenvectors is None else eigenvectors
    return rng.normal(size=(rows, len(values))) * np.sqrt(values) @ axes.T, (axes * values) @ axes.T


def linear_map_model(
    size: int, *, projected_to: int | None = None, translated: bool = False, step: float = 0.0
) -> Rotation:
    """The model of a rotation of columns `c0`, `c1`, ...; with `projected_to`, of a projection to so many columns."""
    kind, count = (Rotation, size) if projected_to is None else (Projection, projected_to)
    return kind(
        columns=tuple(f"r{i}" for i in range(count)),
        sources=tuple(f"c{i}" for i in range(size)),
        centre=(0.0,) * size,
        unit=(1.0,) * size,
        clip=(None,) * size,
        step=step,
        translated=translated,
        shuffled=True,
        noise=0.0,
        covariance=(),
        collusion_resistant=True,
    )


def mapped_copy(
    rows: Array, model: Rotation, *, known: Array = None, known_rows: Array = None, sample: Array = None
) -> Evidence:
    """One rotated or projected copy, with known records and maybe their rows, or a known sample of the population."""
    knowledge = Knowledge(
        known=None if known is None else records(known),
        known_rows=known_rows,
        sample=None if sample is None else records(sample),
    )
    part = MappedRows(model, "a", np.asarray(rows))
    return Evidence(len(rows), knowledge=knowledge, linear_maps=(part,))


def breach_rate(estimate: Array, original: Array, epsilon: float) -> float:
    """The share of records estimated with a relative error of at most ε (giannella2010, Definition 3.1)."""
    error, length = np.linalg.norm(estimate - original, axis=1), np.linalg.norm(original, axis=1)
    return float((error <= epsilon * length).mean())
