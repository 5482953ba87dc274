"""Copies as evidence: what attacks see of a copy and its manifest, and the original in the same terms."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.attacks import Categories, Evidence, Knowledge, MappedRows, Numbers, Records
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.manifest import Manifest
from sfumato.tables import numeric
from sfumato.tables.domain import Domain


def copy_evidence(table: pa.Table, manifest: Manifest) -> Evidence:
    """What one copy shows."""
    return exhibit_later(table.num_rows, lambda: table, manifest)


def exhibit_later(rows: int, table: Callable[[], pa.Table], manifest: Manifest) -> Evidence:
    """What one copy shows, read when an attack looks at it."""
    numbers, categories, turned = [], [], []
    shown: list[str] = []
    for model in manifest.models:
        if isinstance(model, GaussianNoise):
            numbers.append(Numbers(model, path_of(manifest, model), partial(_read_numbers, table, model)))
        elif isinstance(model, UniformReplacement):
            if model.size:
                categories.append(Categories(model, path_of(manifest, model), partial(_read_codes, table, model)))
        elif isinstance(model, Rotation):
            turned.append(MappedRows(model, f"{manifest.scheme}/{manifest.key}", partial(_read_numbers, table, model)))
        elif isinstance(model, Unchanged) and not model.is_identifier:
            shown += model.columns
    public = partial(_read_public, table, shown) if shown else None
    return Evidence(rows, tuple(numbers), tuple(categories), public, turned=tuple(turned))


def together(parts: Sequence[Evidence], knowledge: Knowledge | None = None) -> Evidence:
    """The copies of some holders of the same records, pooled."""
    if len({part.rows for part in parts}) != 1:
        raise AttackError("copies that are pooled must hold the same records; match them by their ids first")

    def public() -> Floats | None:
        shown = [part.public for part in parts if part.public is not None]
        return max(shown, key=lambda columns: columns.shape[1]) if shown else None

    return Evidence(
        parts[0].rows,
        tuple(number for part in parts for number in part.numbers),
        tuple(category for part in parts for category in part.categories),
        public,
        knowledge or Knowledge(),
        tuple(turn for part in parts for turn in part.turned),
    )


def records(table: pa.Table, models: Iterable[Model]) -> Records:
    """The original, in the terms of these models: what an estimate is held against.

    A clipped column is taken as clipped. What lies outside is not in any copy, and would swamp every mean.
    """
    noisy: dict[str, tuple[Any, Any] | None] = {}
    attributes = []
    for model in models:
        if isinstance(model, GaussianNoise):
            noisy |= dict(zip(model.columns, model.clip, strict=True))
        elif isinstance(model, Rotation):
            noisy |= dict(zip(model.sources, model.clip, strict=True))
        elif isinstance(model, UniformReplacement) and model.size:
            attributes.append(model)
    lost = {name for name in (*noisy, *(n for m in attributes for n in m.columns)) if name not in table.column_names}
    if lost:
        raise AttackError(f"a table of real records must have the copies' columns, and lacks {', '.join(sorted(lost))}")
    values = numbers_of(table, list(noisy)) if noisy else np.empty((table.num_rows, 0))
    for i, (name, clip) in enumerate(noisy.items()):
        if clip is not None:
            values[:, i] = np.clip(values[:, i], *_ends(clip, table.schema.field(name).type))
    return Records(tuple(noisy), values, {model.columns: codes_of(table, model) for model in attributes})


def placed(table: pa.Table, model: GaussianNoise) -> Floats:
    """The original as noise is added to it: clipped, and on the lattice."""
    values = numbers_of(table, model.columns)
    for i, (name, clip, step) in enumerate(zip(model.columns, model.clip, model.step, strict=True)):
        if clip is not None:
            low, high = _ends(clip, table.schema.field(name).type)
            values[:, i] = np.clip(values[:, i], low, high)
        values[:, i] = np.rint(values[:, i] / step) * step
    return values


def before_turning(table: pa.Table, model: Rotation) -> Floats:
    """The records of the original as they are before they are turned, without those that miss a number."""
    known = records(table, [model])
    placed = MappedRows(model, "", np.empty((0, 0))).placed(known.numbers(model.sources))
    whole: Floats = placed[~np.isnan(placed).any(axis=1)]
    return whole


def names_of(manifest: Manifest) -> list[str]:
    """The columns of a copy that name its records."""
    shown = [model for model in manifest.models if isinstance(model, Unchanged) and model.is_identifier]
    return [name for model in shown for name in model.columns]


def path_of(manifest: Manifest, model: GaussianNoise | UniformReplacement) -> str:
    """Names the path that a copy lies on; noise that is not collusion_resistant has one for every level."""
    whole = f"{manifest.scheme}/{manifest.key}"
    return whole if model.collusion_resistant else f"{whole}/{manifest.fidelity!r}"


def _read_numbers(table: Callable[[], pa.Table], model: GaussianNoise | Rotation) -> Floats:
    return numbers_of(table(), model.columns)


def _read_codes(table: Callable[[], pa.Table], model: UniformReplacement) -> Rows:
    return codes_of(table(), model)


def _read_public(table: Callable[[], pa.Table], columns: Sequence[str]) -> Floats:
    whole = table()
    return np.column_stack([_public(whole.column(name)) for name in columns])


def numbers_of(table: pa.Table, columns: Sequence[str]) -> Floats:
    """Some columns as doubles, a record a row; NaN where missing."""
    out = np.empty((len(columns), table.num_rows)).T  # column by column in memory, as Arrow has it
    for i, name in enumerate(columns):
        values, null = numeric.read(_whole(table.column(name)))
        out[:, i] = np.where(null, np.nan, values) if null.size else values
    return out


def codes_of(table: pa.Table, model: UniformReplacement) -> Rows:
    """One number over the product of the domains; -1 where a value is missing and stays so."""
    if len(model.columns) == 1:
        domain = Domain.decode(model.domains[0])
        codes = domain.codes(_whole(table.column(model.columns[0])), model.columns[0])
        return np.where(codes < 0, domain.count, codes) if model.perturbs_null else codes
    total, missing = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, np.bool_)
    for name, said in zip(model.columns, model.domains, strict=True):
        domain = Domain.decode(said)
        codes = domain.codes(_whole(table.column(name)), name)
        missing |= codes < 0
        total = total * (domain.count + model.perturbs_null) + np.where(codes < 0, domain.count, codes)
    return total if model.perturbs_null else np.where(missing, -1, total)


def _public(column: pa.ChunkedArray) -> Floats:
    """A public column as numbers: codes for text, which tell values apart and no more."""
    array = _whole(column)
    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    if (numeric.is_number(kind) or numeric.is_moment(kind)) and not types.is_dictionary(array.type):
        values, null = numeric.read(array)
        return np.where(null, np.nan, values) if null.size else values
    if types.is_nested(kind):
        return np.zeros(len(array))
    encoded = array if types.is_dictionary(array.type) else array.dictionary_encode()
    marks = np.array([zlib.crc32(str(value).encode()) for value in encoded.dictionary.to_pylist()] + [0], np.float64)
    places = encoded.indices.cast(pa.int64()).fill_null(len(marks) - 1).to_numpy(zero_copy_only=False)
    coded: Floats = marks[places]
    return coded


def _ends(clip: tuple[Any, Any], kind: pa.DataType) -> tuple[float, float]:
    if isinstance(clip[0], int | float):
        return float(clip[0]), float(clip[1])
    moments = [datetime.fromisoformat(end) for end in clip]
    ends = numeric.read(
        pa.array(moments, pa.timestamp("us", tz=None if moments[0].tzinfo is None else "UTC")).cast(kind)
    )
    return float(ends[0][0]), float(ends[0][1])


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies
    return column
