"""Streams: records and batches that are perturbed as they arrive, with the bits of a release of the same records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.engines.local import Local
from sfumato.errors import ReleaseError, SourceError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms._single_records import Unusual
from sfumato.release.gate import Request, Sampler, clear, sampler
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import Manifest
from sfumato.release.perturbation import numbered_rows, perturb_rows
from sfumato.release.single_record import SingleRecord, identifier
from sfumato.tables import content_digest
from sfumato.tables.formats import BATCH
from sfumato.tables.row_order import KEEP
from sfumato.tables.source import Source, rebatched


class RecordStream:
    """A copy that is made while its records arrive: `scheme.stream("partner", key, like=table)`.

    Records must have ids, and are shown in the order in which they come. The same record, whenever it comes, has the
    same copy, so that work which is repeated after a failure gives the same again.
    """

    def __init__(self, layout: TableLayout, level: Level, key: Key, like: Any) -> None:
        """Ask the release gate for the stream.

        Args:
            layout: the fitted scheme.
            level: the level of the copy.
            key: the owner's key.
            like: a table with the columns of the records, by which thresholds are judged, or their schema.

        """
        if not layout.ids:
            raise SourceError(
                "the records of a stream have no row numbers, so that they must have an id; give a column the role id"
            )
        require_streamable(layout)
        layout = replace(layout, order=KEEP)  # that of their arrival
        self._source = like if isinstance(like, pa.Schema) else layout.policy.source(like).schema
        sample = like_sampler(layout, self._source, None if isinstance(like, pa.Schema) else like)
        self._clearance = clear(Request(layout, None, self._source, sample, lambda: None), [level], key)
        self._layout, self._level, self._key = layout, level, key
        self.schema = layout.schema(self._source)
        """The columns of the copy."""
        self._rows, self._digests, self._rest = 0, list[bytes](), list[pa.RecordBatch]()
        self._identify = identifier(layout, self._source, layout.table_key(key))
        self._single = SingleRecord.of(layout, self._source, level, key)

    def record(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The copy of one record, by the names of its columns."""
        if self._single is None or self._identify is None:
            return self._record_by_batch(values)
        try:
            self._single.check(values)
            return self._single(self._identify(values), values)
        except (Unusual, KeyError):
            return self._record_by_batch(values)

    def batches(self, batches: Iterable[pa.RecordBatch], *, threads: int | None = None) -> Iterator[pa.RecordBatch]:
        """The copies of batches, one for one and in order, made on all cores."""
        for copy in Local(threads).map(self.perturbed, batches):
            self._rows += copy.num_rows
            self._rest = self._digested([*self._rest, copy])
            yield copy

    def manifest(self) -> Manifest:
        """The manifest of what `batches` has given so far."""
        draft = self._layout.manifest(self._source, self._level, self._key)
        return draft.filled(self._rows, [*self._digests, *map(content_digest.of_batch, self._rest)])

    def _digested(self, copies: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Take the digests of whole batches of the size that files have; returns the rows that are left."""
        for batch in rebatched(copies):
            if batch.num_rows < BATCH:
                return [batch]
            self._digests.append(content_digest.of_batch(batch))
        return []

    def perturbed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The copy of one batch."""
        missing = [name for name in self._source.names if name not in batch.schema.names]
        other = [name for name in batch.schema.names if name not in self._source.names]
        if missing or other or any(batch.schema.field(one.name).type != one.type for one in self._source):
            shown = ", ".join(f"{one.name}: {one.type}" for one in self._source)
            raise SourceError(f"a batch must have the columns of the stream, {shown}, got others or other types")
        source = Source.of(pa.Table.from_batches([batch.select(self._source.names)]))
        parts = [
            perturb_rows(self._layout, numbers, rows, self._clearance.levels, self._clearance.secret())[0]
            for numbers, rows in numbered_rows(self._layout, source)
        ]
        nothing = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in self.schema], schema=self.schema)
        return pa.concat_batches(parts) if parts else nothing

    def _record_by_batch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same through a batch of one row, which also refuses what must be refused."""
        missing = [name for name in self._source.names if name not in values]
        if missing:
            raise SourceError(f"a record must have all columns of the table, and {missing[0]!r} is missing; add it")
        cells = [_cell(values[field.name], field) for field in self._source]
        [copy] = self.perturbed(pa.RecordBatch.from_arrays(cells, schema=self._source)).to_pylist()
        return dict(copy)


def _cell(value: Any, field: pa.Field) -> pa.Array:
    """A column of one value; an error names the column, and does not show the value."""
    try:
        if types.is_integer(field.type) and isinstance(value, float):
            raise TypeError("a fraction would be cut off")
        return pa.array([value], field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise SourceError(
            f"a record must have values of its columns' types, and that of {field.name!r} is no {field.type}"
        ) from None


def require_streamable(layout: TableLayout) -> None:
    """Refuse to stream copies whose rows must be in a secret order."""
    if layout.hides_records:
        raise ReleaseError(
            "rotated and projected rows are released in a secret order, which a stream does not have; release the "
            "whole table, or set `shuffle = false`, which lets an attacker find known records"
        )


def like_sampler(layout: TableLayout, schema: pa.Schema, like: Any) -> Sampler:
    """Takes the rows by which thresholds of a stream are judged: of a table that is like it."""
    if like is not None:
        return sampler(layout, layout.policy.source(like, schema))
    if layout.policy.targets:
        raise ReleaseError(
            "a policy with thresholds needs records by which they are judged; give a table of such records as `like`"
        )
    return lambda _: (np.empty(0, np.uint64), schema.empty_table())
