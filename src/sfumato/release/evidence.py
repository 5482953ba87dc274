"""Evidence from copies: what attacks see of a copy and its manifest, and the original in the same terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.attacks import Categories, Evidence, Knowledge, Lazy, MappedRows, Numbers, Records
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.models import Model, of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.manifest import Manifest
from sfumato.tables import numeric
from sfumato.tables.columns import codes_of, noisy_numbers, numbers_of, restored
from sfumato.tables.margin import scores_of
from sfumato.tables.public_numbers import public_numbers
from sfumato.tables.row_order import BY_OWNER, SECRET, WITHIN_FILES

_FAR = 4.5
"""Noise of more standard deviations is not to be expected, in any of a table's records."""

TableLoader = Callable[[], pa.Table]


def copy_evidence(table: pa.Table, manifest: Manifest) -> Evidence:
    """The evidence that one copy gives; its rows are in their order, or brought into another by the ids."""
    found, ids = lazy_evidence(table.num_rows, lambda: table, manifest), identifiers_of(manifest)
    visible = manifest.order not in (SECRET, WITHIN_FILES, BY_OWNER)
    return replace(found, position_data=Lazy(partial(_read_positions, table, ids, visible=visible)))


def lazy_evidence(rows: int, table: TableLoader, manifest: Manifest) -> Evidence:
    """The evidence that one copy gives, read when an attack looks at it."""
    numbers = [
        Numbers(model, manifest.path_identity(model), Lazy(partial(_read_noisy, table, model)))
        for model in of_type(manifest.models, GaussianNoise)
    ]
    numbers += [
        Numbers(model.score_noise(), manifest.path_identity(model), Lazy(partial(_read_scores, table, model)), model)
        for model in of_type(manifest.models, GaussianCopula)
    ]
    categories = [
        Categories(model, manifest.path_identity(model), Lazy(partial(_read_codes, table, model)))
        for model in of_type(manifest.models, UniformReplacement)
        if model.size
    ]
    mapped = [
        MappedRows(model, manifest.path_identity(model), Lazy(partial(_read_numbers, table, model)))
        for model in of_type(manifest.models, Rotation)
    ]
    unchanged = [model for model in of_type(manifest.models, Unchanged) if not model.is_identifier]
    names = [name for model in unchanged for name in model.columns]
    public: Lazy[Floats | None] | None = Lazy(partial(_read_public, table, names)) if names else None
    return Evidence(rows, tuple(numbers), tuple(categories), public, linear_maps=tuple(mapped))


def with_public(evidence: Evidence, table: pa.Table, column: str) -> Evidence:
    """The evidence of an attacker who knows one column of the original beside what copies show."""

    def read() -> Floats:
        known = _read_public(lambda: table, [column])
        return known if evidence.public is None else np.hstack([evidence.public, known])

    return replace(evidence, public_data=Lazy(read))


def pooled_evidence(parts: Sequence[Evidence], knowledge: Knowledge | None = None) -> Evidence:
    """The evidence of colluding recipients who combine their copies of the same records."""
    if len({part.rows for part in parts}) != 1:
        raise AttackError("copies that are combined must hold the same records; match them by their ids first")

    def public() -> Floats | None:
        columns = [part.public for part in parts if part.public is not None]
        return max(columns, key=lambda matrix: matrix.shape[1]) if columns else None

    def positions() -> Floats | None:
        known = [part.positions for part in parts if part.positions is not None]
        return max(known, key=lambda matrix: matrix.shape[1]) if known else None

    return Evidence(
        parts[0].rows,
        tuple(number for part in parts for number in part.numbers),
        tuple(category for part in parts for category in part.categories),
        Lazy(public),
        knowledge or Knowledge(),
        tuple(mapped for part in parts for mapped in part.linear_maps),
        Lazy(positions),
    )


def original_records(table: pa.Table, models: Iterable[Model]) -> Records:
    """The original, in the terms of these models: what an estimate is compared with.

    A clipped column is taken as clipped. Values outside are in no copy, and would dominate every mean.
    """
    models = list(models)
    clips = _clips(models)
    attributes = [model for model in of_type(models, UniformReplacement) if model.size]
    copulas = _distinct(of_type(models, GaussianCopula))
    needed = (*clips, *(name for model in (*attributes, *copulas) for name in model.columns))
    missing = {name for name in needed if name not in table.column_names}
    if missing:
        raise AttackError(
            f"a table of original records must have the copies' columns, and lacks {', '.join(sorted(missing))}"
        )
    values = numbers_of(table, list(clips)) if clips else np.empty((table.num_rows, 0))
    for i, (name, clip) in enumerate(clips.items()):
        if clip is not None:
            values[:, i] = np.clip(values[:, i], *clip_bounds(clip, table.schema.field(name).type))
    names = (*clips, *(name for model in copulas for name in model.scores))
    values = np.hstack([values, *(scores_of(table, model) for model in copulas)])
    return Records(names, values, {model.columns: codes_of(table, model) for model in attributes})


def _clips(models: Sequence[Model]) -> dict[str, tuple[Any, Any] | None]:
    """The clip of each number, or none."""
    clips: dict[str, tuple[Any, Any] | None] = {}
    for noise in of_type(models, GaussianNoise):
        clips |= dict(zip(noise.columns, noise.clip, strict=True))
    for mapped in of_type(models, Rotation):
        clips |= dict(zip(mapped.sources, mapped.clip, strict=True))
    return clips


def _distinct(copulas: Sequence[GaussianCopula]) -> list[GaussianCopula]:
    """Each column once, in the first of the models that describe it: copies may show some columns only."""
    seen: set[str] = set()
    out = []
    for model in sorted(copulas, key=lambda model: -len(model.columns)):
        narrowed = model.narrowed([name for name in model.columns if name not in seen])
        seen |= set(narrowed.columns)
        out += [narrowed] if narrowed.columns else []
    return out


def original_on_lattice(table: pa.Table, model: GaussianNoise) -> Floats:
    """The original as noise is added to it: clipped, and rounded to the lattice."""
    values = numbers_of(table, model.columns)
    for i, (name, clip, step) in enumerate(zip(model.columns, model.clip, model.step, strict=True)):
        if clip is not None:
            low, high = clip_bounds(clip, table.schema.field(name).type)
            values[:, i] = np.clip(values[:, i], low, high)
        values[:, i] = np.rint(values[:, i] / step) * step
    return values


def original_within_range(table: pa.Table, model: GaussianNoise) -> Floats:
    """The same where a copy shows the noise: NaN for values so near the end of a range that noise crosses it."""
    values = original_on_lattice(table, model)
    for i, (name, ends) in enumerate(zip(model.columns, model.range, strict=False)):
        if ends is not None:
            shown = np.array([clip_bounds(ends, table.schema.field(name).type)]).T
            low, high = restored(shown, model.narrowed([name]))[:, 0]
            reach = _FAR * model.deviation(name)
            values[(values[:, i] < low + reach) | (values[:, i] > high - reach), i] = np.nan
    return values


def original_before_map(table: pa.Table, model: Rotation) -> Floats:
    """The complete records of the original as they are before the linear map is applied."""
    if not table.num_rows:
        return np.empty((0, len(model.sources)))
    known = original_records(table, [model])
    standardised = MappedRows(model, "", np.empty((0, 0))).standardised(known.numbers(model.sources))
    complete: Floats = standardised[~np.isnan(standardised).any(axis=1)]
    return complete


def identifiers_of(manifest: Manifest) -> list[str]:
    """The columns of a copy that identify its records."""
    return [name for model in of_type(manifest.models, Unchanged) if model.is_identifier for name in model.columns]


def _read_positions(table: pa.Table, ids: Sequence[str], *, visible: bool) -> Floats | None:
    """The positions of records in the order of rows, if it is visible, and in that of their ids."""
    orders: list[Rows] = [np.arange(table.num_rows)] if visible else []
    if ids:
        indices = pc.sort_indices(table.select(ids), sort_keys=[(name, "ascending") for name in ids])
        by_id = np.empty(table.num_rows, np.int64)
        by_id[indices.to_numpy()] = np.arange(table.num_rows)
        orders += [] if visible and np.array_equal(by_id, orders[0]) else [by_id]
    return np.column_stack(orders).astype(np.float64) if orders else None


def _read_noisy(table: TableLoader, model: GaussianNoise) -> Floats:
    return noisy_numbers(table(), model)


def _read_numbers(table: TableLoader, model: Rotation) -> Floats:
    return numbers_of(table(), model.columns)


def _read_scores(table: TableLoader, model: GaussianCopula) -> Floats:
    """The scores of a copy as those of the original with additive noise: divided by `√f`, with `1/f = 1 + σ²`."""
    scores: Floats = scores_of(table(), model) * math.sqrt(1 + model.noise)
    return scores


def _read_codes(table: TableLoader, model: UniformReplacement) -> Rows:
    return codes_of(table(), model)


def _read_public(table: TableLoader, columns: Sequence[str]) -> Floats:
    whole = table()
    return np.column_stack([part for name in columns for part in public_numbers(whole.column(name))])


def clip_bounds(clip: tuple[Any, Any], kind: pa.DataType) -> tuple[float, float]:
    """The ends of a clip in the unit that noise is added in; dates are stated in ISO format."""
    if isinstance(clip[0], int | float):
        return float(clip[0]), float(clip[1])
    moments = [datetime.fromisoformat(end) for end in clip]
    zone = None if moments[0].tzinfo is None else "UTC"
    ends, _ = numeric.read(pa.array(moments, pa.timestamp("us", tz=zone)).cast(kind))
    return float(ends[0]), float(ends[1])
