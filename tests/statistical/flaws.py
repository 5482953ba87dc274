"""Copies with a planted flaw in their noise, which an audit should detect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import original_on_lattice

Array = Any
NAMES = ("a", "b", "c", "d")
LEVELS = (0.8, 0.6, 0.4, 0.2)
SIZES = {"u": 7, "v": 4}
Copies = dict[str, pa.Table]
Flaw = Callable[[Array, list[Array], list[float], np.random.Generator], list[Array]]


def table(rng: np.random.Generator, rows: int, columns: int) -> pa.Table:
    mixing = rng.normal(size=(columns, columns)) + np.eye(columns)
    values = rng.gamma(2.0, size=(rows, columns)) @ mixing * 10.0 ** rng.integers(-3, 4, columns)
    made = {f"c{i}": values[:, i] for i in range(columns)}
    return pa.table(made | {"u": rng.integers(0, 8, rows), "v": rng.choice(5, rows, p=[0.5, 0.2, 0.1, 0.1, 0.1])})


def policy(columns: int) -> sf.Policy:
    levels = "".join(f"{name} = {level}\n" for name, level in zip(NAMES, LEVELS, strict=True))
    columns_ = "".join(f'c{i} = "gaussian"\n' for i in range(columns))
    columns_ += "".join(
        f'{n} = {{ role = "uniform", domain = {{ min = 0, max = {most} }} }}\n' for n, most in SIZES.items()
    )
    return sf.Policy.loads(f'dataset = "d"\norder = "keep"\n[levels]\n{levels}[columns]\n{columns_}')


def swapped(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """The noise of the second level in the third copy, and the reverse."""
    return [noise[0], noise[2], noise[1], noise[3]]


def leaking(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """2 % of the second level's noise leak into the increment of the third, and so into all that follow."""
    return [noise[0], noise[1], noise[2] + 0.02 * noise[1], noise[3] + 0.02 * noise[1]]


def reused(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """The same draws for every level, scaled to its variance."""
    return [noise[0] * np.sqrt(time / times[0]) for time in times]


def independent(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """Independent noise in the third copy: the noise of other records."""
    other = np.roll(noise[2], len(noise[2]) // 2, axis=0)
    return [noise[0], noise[1], other, noise[3]]


def shared_records(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """One key for two records: one per cent of the records have the noise of others."""
    some = len(original) // 100
    out = [part.copy() for part in noise]
    for part in out:
        part[-some:] = part[:some]
    return out


def shared_columns(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """One key for two columns, so that their noise is perfectly correlated."""
    out = [part.copy() for part in noise]
    for part in out:
        part[:, 1] = part[:, 0] * part[:, 1].std() / part[:, 0].std()
    return out


def half_shared(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """In one column, the noise of the second half of the records is minus that of the first half."""
    half = len(original) // 2
    out = [part.copy() for part in noise]
    for part in out:
        part[half : 2 * half, 1] = -part[:half, 1]
    return out


def small(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """Noise 2 % too small, at all levels."""
    return [0.98 * part for part in noise]


def large(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """Noise 2 % too large, at all levels."""
    return [1.02 * part for part in noise]


def uneven(original: Array, noise: list[Array], times: list[float], rng: np.random.Generator) -> list[Array]:
    """The smallest noise of a column for the records furthest from the median, and so on."""
    column = original[:, 0]
    far = np.argsort(-np.abs(column - np.median(column)))
    order = np.argsort(np.abs(noise[0][:, 0]))
    out = [part.copy() for part in noise]
    for part, before in zip(out, noise, strict=True):
        part[far] = before[order]
    return out


NUMERIC: dict[str, Flaw] = {
    "levels swapped": swapped,
    "2 % of a lower level kept": leaking,
    "a reused key": reused,
    "independent noise at one level": independent,
    "one key for two records": shared_records,
    "one key for two columns": shared_columns,
    "one key for two halves": half_shared,
    "too small": small,
    "too large": large,
    "small for outliers": uneven,
}


MAIN = tuple(NUMERIC)[:4]


def with_noise(
    original: pa.Table, copies: dict[str, pa.Table], flaw: Flaw, rng: np.random.Generator
) -> dict[str, pa.Table]:
    """The copies with flawed numbers."""
    models = {name: _noise(copy) for name, copy in copies.items()}
    base = original_on_lattice(original, models["a"])
    noise = [_matrix(copies[name], models[name].columns) - base for name in NAMES]
    flawed = flaw(base, noise, [models[name].noise for name in NAMES], rng)
    out = {}
    for name, part in zip(NAMES, flawed, strict=True):
        copy = copies[name]
        steps = np.array(models[name].step)
        values = base + np.rint(part / steps) * steps
        for i, column in enumerate(models[name].columns):
            copy = copy.set_column(copy.column_names.index(column), column, pa.array(values[:, i]))
        out[name] = copy
    return out


def with_categories(original: pa.Table, copies: Copies, flaw: str, rng: np.random.Generator) -> Copies:
    """The copies with flawed categories."""
    codes = {name: copy.column("u").to_numpy() for name, copy in copies.items()}
    truth = original.column("u").to_numpy()
    if flaw == "levels swapped":
        codes["b"], codes["c"] = codes["c"], codes["b"]
    elif flaw == "2 % of the truth kept":
        for name in ("c", "d"):
            codes[name] = np.where(rng.random(len(truth)) < 0.02, truth, codes[name])
    elif flaw == "independent replacement at one level":
        kept = next(m for m in sf.Manifest.of(copies["c"]).models if isinstance(m, UniformReplacement)).retention
        codes["c"] = np.where(rng.random(len(truth)) < kept, truth, rng.integers(0, 8, len(truth)))
    else:
        raise ValueError(flaw)
    return {
        name: copy.set_column(copy.column_names.index("u"), "u", pa.array(codes[name])) for name, copy in copies.items()
    }


CATEGORICAL = ("levels swapped", "2 % of the truth kept", "independent replacement at one level")


def _noise(copy: pa.Table) -> GaussianNoise:
    return next(model for model in sf.Manifest.of(copy).models if isinstance(model, GaussianNoise))


def _matrix(table: pa.Table, columns: tuple[str, ...]) -> Array:
    return np.column_stack([table.column(name).to_numpy() for name in columns])
