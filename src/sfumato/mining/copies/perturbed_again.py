"""A plausible original, perturbed again as its copy was: a copy of which the original is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.kernels.covariances import symmetric
from sfumato.levels import Level
from sfumato.mining.copies.copy import Copy
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables import numeric
from sfumato.tables.columns import codes_of, contiguous, numbers_of
from sfumato.tables.domain import Domain
from sfumato.tables.source import Source


def is_plain(model: Model) -> bool:
    """Whether a model is one of noise that can be added again."""
    if isinstance(model, GaussianNoise):
        return not (model.centre or model.range or model.entity)
    return isinstance(model, UniformReplacement) and not model.entity


def perturbed_again(copy: Copy, original: pa.Table, rng: np.random.Generator, level: Level | None = None) -> Copy:
    """A copy of a plausible original, with its manifest: at the same level as a copy, or at another.

    The original may have some of the columns only.
    """
    names, models = original.column_names, []
    arrays = {name: original.column(name) for name in names}
    for whole in copy.manifest.models:
        model = whole.narrowed([name for name in whole.columns if name in names])
        if not model.columns:
            continue
        if isinstance(model, GaussianNoise):
            model = model if level is None else replace(model, **_scaled(model, level.noise / model.noise))
            arrays |= _with_noise(original, model, copy.source.schema, rng)
        elif isinstance(model, UniformReplacement):
            model = model if level is None else replace(model, retention=level.retention)
            arrays |= _replaced(original, model, copy.source.schema, rng)
        models.append(model)
    fidelity = copy.manifest.fidelity if level is None else level.fidelity
    columns = tuple((name, kind) for name, kind in copy.manifest.columns if name in names)
    manifest = replace(copy.manifest, models=tuple(models), fidelity=fidelity, columns=columns)
    return Copy(manifest, Source.of(pa.table(arrays)))


def _scaled(model: GaussianNoise, factor: float) -> dict[str, Any]:
    covariance = tuple(tuple(value * factor for value in row) for row in model.covariance)
    return {"covariance": covariance, "noise": model.noise * factor}


def _with_noise(
    original: pa.Table, model: GaussianNoise, schema: pa.Schema, rng: np.random.Generator
) -> dict[str, pa.Array]:
    whole = symmetric(model.covariance)
    values, vectors = np.linalg.eigh(whole)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    noisy: Floats = numbers_of(original, model.columns) + rng.normal(size=(original.num_rows, len(whole))) @ root.T
    found = {}
    for name, column in zip(model.columns, noisy.T, strict=True):
        kind, missing = schema.field(name).type, np.isnan(column)
        shown = np.where(missing, 0.0, column if pa.types.is_floating(kind) else np.rint(column))
        found[name] = numeric.write(shown, missing, kind, name)
    return found


def _replaced(
    original: pa.Table, model: UniformReplacement, schema: pa.Schema, rng: np.random.Generator
) -> dict[str, pa.Array]:
    codes = codes_of(original, model)
    keeps = (rng.random(len(codes)) < model.retention) | (codes < 0)
    left, found = np.where(keeps, codes, rng.integers(0, model.size, len(codes))), {}
    unknown, left = left < 0, np.maximum(left, 0)
    for name, encoded in reversed(list(zip(model.columns, model.domains, strict=True))):
        domain = Domain.decode(encoded)
        left, own = np.divmod(left, domain.count + model.perturbs_null)
        null = (own == domain.count) | unknown
        found[name] = domain.array(np.where(null, 0, own), null, contiguous(original.column(name)).type)
        if found[name].type != schema.field(name).type:
            found[name] = found[name].cast(schema.field(name).type)
    return found
