"""Evidence for attacks from plain arrays, and the synthetic data of huang2005's experiments."""

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


def renamed(model: GaussianNoise, columns: tuple[str, ...]) -> GaussianNoise:
    return dataclasses.replace(model, columns=columns)


def one_copy(seen: Array, covariance: Array, knowledge: Knowledge | None = None) -> Evidence:
    """One copy of numbers with this noise."""
    part = Numbers(noise_model(covariance), "a", np.asarray(seen))
    return Evidence(len(seen), (part,), knowledge=knowledge or Knowledge())


def copies(
    seen: Sequence[Array],
    covariance: Array,
    times: Sequence[float],
    *,
    collusion_resistant: bool,
    knowledge: Knowledge | None = None,
) -> Evidence:
    """Copies whose noise is `covariance` times these."""
    parts = [
        Numbers(
            noise_model(np.asarray(covariance) * time, time),
            "a" if collusion_resistant else f"path {i}",
            np.asarray(values),
        )
        for i, (values, time) in enumerate(zip(seen, times, strict=True))
    ]
    return Evidence(len(seen[0]), tuple(parts), knowledge=knowledge or Knowledge())


def categories(
    seen: Sequence[Array],
    size: int,
    retentions: Sequence[float],
    *,
    collusion_resistant: bool,
    knowledge: Knowledge | None = None,
) -> Evidence:
    """Copies of one attribute `x`."""
    parts = [
        Categories(
            UniformReplacement(
                ("x",), ({"min": 0, "count": size},), kept, perturbs_null=False, collusion_resistant=collusion_resistant
            ),
            "a" if collusion_resistant else f"path {i}",
            np.asarray(codes),
        )
        for i, (codes, kept) in enumerate(zip(seen, retentions, strict=True))
    ]
    return Evidence(len(seen[0]), (), tuple(parts), knowledge=knowledge or Knowledge())


def truth(values: Array, codes: Array | None = None) -> Records:
    names = tuple(f"c{i}" for i in range(np.asarray(values).shape[1]))
    return Records(names, np.asarray(values), {} if codes is None else {("x",): np.asarray(codes)})


def rmse(name: str, evidence: Evidence, real: Array, **options: Any) -> float:
    """The root mean square error of an attack over all cells."""
    guess = ATTACKS[name](**options).estimate(evidence).values
    return float(np.sqrt(np.mean((guess - real) ** 2)))


def rotation(rng: np.random.Generator, size: int) -> Array:
    q, r = np.linalg.qr(rng.normal(size=(size, size)))
    return q * np.sign(np.diag(r))


def spectrum(rng: np.random.Generator, eigenvalues: Array, rows: int, axes: Array | None = None) -> tuple[Array, Array]:
    """Normal records whose covariance has these eigenvalues, and that covariance (huang2005, section 7.1)."""
    values = np.asarray(eigenvalues, float)
    axes = rotation(rng, len(values)) if axes is None else axes
    return rng.normal(size=(rows, len(values))) * np.sqrt(values) @ axes.T, (axes * values) @ axes.T


def turned_model(size: int, *, ell: int | None = None, translated: bool = False, step: float = 0.0) -> Rotation:
    """A turn of columns `c0`, `c1`, ...; with `ell`, a projection to so many."""
    kind, count = (Rotation, size) if ell is None else (Projection, ell)
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


def turned(rows: Array, model: Rotation, *, known: Array = None, sample: Array = None) -> Evidence:
    """One turned copy, and records that are known."""
    knowledge = Knowledge(
        known=None if known is None else truth(known), sample=None if sample is None else truth(sample)
    )
    part = MappedRows(model, "a", np.asarray(rows))
    return Evidence(len(rows), knowledge=knowledge, turned=(part,))


def orthogonal(rng: np.random.Generator, size: int) -> Array:
    """Uniform on O(n)."""
    whole, triangle = np.linalg.qr(rng.normal(size=(size, size)))
    return whole * np.sign(np.diag(triangle))


def breached(guess: Array, real: Array, epsilon: float) -> float:
    """The share of records that are found within so much of their size."""
    return float((np.linalg.norm(guess - real, axis=1) <= epsilon * np.linalg.norm(real, axis=1)).mean())
