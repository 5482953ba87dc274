"""Perturbation of rows: batches of a table, with their record ids, become batches of its copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sfumato.engines.local import Local
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms import Scheme
from sfumato.mechanisms._single_records import Unusual
from sfumato.models import Model
from sfumato.models.unchanged import ENTITY, PUBLIC
from sfumato.policy.columns import without_buffers
from sfumato.policy.roles import DROP
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import Manifest, attach
from sfumato.release.pseudonyms import pseudonyms
from sfumato.release.single_record import SingleRecord
from sfumato.tables import content_digest, row_order
from sfumato.tables.content_digest import BLAKE3
from sfumato.tables.record_ids import hashed, record_ids
from sfumato.tables.row_order import BY_OWNER, KEEP, shuffled, shuffled_in_memory
from sfumato.tables.source import Source, rebatched

_ROW = "sfumato.row"

NumberedBatch = tuple[Words, pa.RecordBatch]
"""Rows with their numbers in the table."""

DigestedBatch = tuple[pa.RecordBatch, bytes]
"""Rows of a copy with their digest."""


def numbered_rows(layout: TableLayout, source: Source) -> Iterator[NumberedBatch]:
    """The visible rows in batches, with the columns that are needed and the numbers of the rows in the table."""
    read = {name for mechanism in layout.mechanisms for name in mechanism.reads}
    needed = [name for name in source.schema.names if layout.role(name) != DROP or name in read]
    numbered = (batch.append_column(_ROW, pa.array(rows)) for rows, batch in source.numbered_batches(needed))
    for batch in rebatched(map(layout.view.filter, numbered)):
        yield batch.column(_ROW).to_numpy(), batch.select(needed)


def identified_rows(layout: TableLayout, source: Source, key: Key) -> Iterator[NumberedBatch]:
    """The visible rows in batches, with their record ids."""
    secret = layout.table_key(key)
    for rows, batch in numbered_rows(layout, source):
        yield record_ids(batch, layout.ids, rows, secret), batch


def all_ids(layout: TableLayout, source: Source, key: Key) -> Iterator[Words]:
    """The ids of all records of a table, in batches."""
    secret = layout.table_key(key)
    for batch in source.batches(list(layout.ids)):
        yield record_ids(batch, layout.ids, np.zeros(batch.num_rows, np.uint64), secret)


def perturb_rows(
    layout: TableLayout, rows: Words, batch: pa.RecordBatch, levels: Sequence[Level], key: Key
) -> list[pa.RecordBatch]:
    """The copies of some rows, which have these numbers in the table, at several levels."""
    secret = layout.table_key(key)
    ids = record_ids(batch, layout.ids, rows, secret)
    if batch.num_rows == 1 and (single := _single_row(layout, int(ids[0]), batch, levels, key)):
        return single
    perturbed: list[dict[str, pa.Array]] = [{} for _ in levels]
    for scheme in layout.schemes:
        for columns, arrays in zip(perturbed, scheme.perturb_levels(batch, ids, levels, secret), strict=True):
            columns.update(zip(scheme.columns, arrays, strict=True))
    schema = layout.schema(batch.schema)
    for columns, level in zip(perturbed, levels, strict=True):
        rest = [name for name in schema.names if name not in columns]
        columns.update(_unperturbed(layout, batch, rest, level, key))
    return [pa.RecordBatch.from_arrays([copy[name] for name in schema.names], schema=schema) for copy in perturbed]


def _single_row(
    layout: TableLayout, record: int, batch: pa.RecordBatch, levels: Sequence[Level], key: Key
) -> list[pa.RecordBatch]:
    """The copies of one row, which would spend most of its time on arrays; nothing where it needs them."""
    found = [SingleRecord.remembered(layout, batch.schema, level, key) for level in levels]
    schema = layout.schema(batch.schema)
    try:
        return [one.of_batch(record, batch, schema) for one in found if one] if all(found) else []
    except Unusual:
        return []


def _unperturbed(
    layout: TableLayout, batch: pa.RecordBatch, names: Sequence[str], level: Level, key: Key
) -> dict[str, pa.Array]:
    """Columns that are released unchanged, or as pseudonyms of a recipient, or of a level if it has no name."""
    shared, owner = layout.dataset_key(key), layout.recipient or f"level {level.fidelity!r}"
    return {
        name: pseudonyms(batch, name, layout.pseudonym(name), shared, owner)
        if layout.has_pseudonyms(name)
        else without_buffers(batch.column(name))
        for name in names
    }


def perturb_table(
    layout: TableLayout,
    source: Source,
    levels: Sequence[Level],
    key: Key,
    threads: int | None,
    algorithm: str = BLAKE3,
    *,
    in_memory: bool = False,
) -> Iterator[list[DigestedBatch]]:
    """The copies of each batch of a table at some levels, in order, each with its digest.

    Copies that are kept in memory are shuffled there, the others in memory that does not grow with the table.
    """

    def perturb(item: NumberedBatch) -> list[DigestedBatch]:
        return [(copy, content_digest.of_batch(copy, algorithm)) for copy in perturb_rows(layout, *item, levels, key)]

    if layout.shuffles and not (in_memory and source.rows == 1):  # one row is in every order
        yield from _shuffled_copies(layout, source, levels, key, threads, algorithm, in_memory=in_memory)
    else:
        yield from Local(threads).map(perturb, numbered_rows(layout, source))


def _shuffled_copies(
    layout: TableLayout,
    source: Source,
    levels: Sequence[Level],
    key: Key,
    threads: int | None,
    algorithm: str,
    *,
    in_memory: bool,
) -> Iterator[list[DigestedBatch]]:
    """The same in the secret order of rows; the copies of all levels are shuffled side by side."""
    schema = layout.schema(source.schema)
    wide = pa.schema([pa.field(f"{i} {f.name}", f.type) for i in range(len(levels)) for f in schema])

    def perturb(item: NumberedBatch) -> NumberedBatch:
        columns = [column for copy in perturb_rows(layout, *item, levels, key) for column in copy.columns]
        return sort_keys(layout, *item, key), pa.RecordBatch.from_arrays(columns, schema=wide)

    local = Local(threads)
    keyed = local.map(perturb, numbered_rows(layout, source))
    for batch in rebatched(shuffled_in_memory(keyed, wide, local.threads) if in_memory else shuffled(keyed, wide)):
        parts = [batch.columns[i * len(schema) : (i + 1) * len(schema)] for i in range(len(levels))]
        copies = [pa.RecordBatch.from_arrays(part, schema=schema) for part in parts]
        yield [(copy, content_digest.of_batch(copy, algorithm)) for copy in copies]


def sort_keys(layout: TableLayout, rows: Words, batch: pa.RecordBatch, key: Key) -> Words:
    """The numbers by which rows are sorted into the secret order of a copy."""
    secret = layout.table_key(key)
    return row_order.sort_keys(record_ids(batch, layout.ids, rows, secret), secret)


def perturb_sample(
    layout: TableLayout, rows: Words, sample: pa.Table, levels: Sequence[Level], key: Key
) -> list[pa.Table]:
    """Copies of some rows of a table, as they are in copies of the whole: for attacks in the house, not for release."""
    [batch] = sample.combine_chunks().to_batches()
    manifests = [_unshuffled(layout.manifest(sample.schema, level, key), sample.num_rows) for level in levels]
    copies = perturb_rows(layout, rows, batch, levels, key)
    return [attach(pa.Table.from_batches([c]), manifest) for c, manifest in zip(copies, manifests, strict=True)]


def _unshuffled(manifest: Manifest, rows: int) -> Manifest:
    """The manifest of rows that were not shuffled, since the owner asked."""
    models: list[Model] = [model.unshuffled() for model in manifest.models]
    order = manifest.order if manifest.order == KEEP else BY_OWNER
    return replace(manifest, models=tuple(models), order=order).filled(rows, [])


def record_digests(layout: TableLayout, source: Source) -> Iterator[Words]:
    """What tells whether records of two versions of a table are equal, in 64-bit words, without a key, in batches.

    Returns:
        One row per record: its id, a word for each of the `joint_schemes`, numbers first, that changes with their
        noise, and a hash of everything else that a copy shows.

    """
    public = Key.from_bytes(bytes(32))
    joint = sorted(joint_schemes(layout), key=lambda scheme: scheme.is_shaped, reverse=True)
    for rows, batch in numbered_rows(layout, source):
        ids = record_ids(batch, layout.ids, rows, public)
        draws = [scheme.draws(batch, ids, public) for scheme in joint]
        rest = hashed(batch, [name for name in batch.schema.names if layout.role(name) in (ENTITY, PUBLIC)], public)
        for scheme in layout.schemes:
            rest = rest if scheme in joint else rest ^ scheme.draws(batch, ids, public)
        yield np.column_stack([ids, *draws, rest])


def joint_schemes(layout: TableLayout) -> list[Scheme]:
    """The schemes that redraw the noise of all their columns when one of them changes."""
    return [scheme for scheme in layout.schemes if len(scheme.columns) > 1 or scheme.is_shaped]
