"""Copies of Spark data frames: whatever Spark reads (Delta, Iceberg, a database), perturbed on its executors."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.spark import Spark
from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.gate import Clearance, DatasetSecret, Request, Sampler, clear, sampler
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import FOLDER, Manifest, digested_parts
from sfumato.release.perturbation import numbered_rows, perturb_rows, sort_keys
from sfumato.release.stream import like_sampler, require_streamable
from sfumato.tables.atomic import upload_text
from sfumato.tables.filesystem import join
from sfumato.tables.row_order import KEEP
from sfumato.tables.source import Source

_SORT_KEY = "sfumato_sort_key"

_shared_keys = ExitStack()
"""A data frame is computed when it is asked for, so that its key is shared until this process ends."""
atexit.register(_shared_keys.close)


def release_dataframe(layout: TableLayout, frame: Any, level: Level | float | str, key: Key, like: Any = None) -> Any:
    """A copy of a Spark data frame at a level, as a data frame that is computed when it is asked for.

    Rows of a data frame have no numbers, so that records must have ids. They are checked to be distinct now. A
    streaming data frame becomes a streaming one, with its rows in the order of their arrival: a record has the same
    copy whenever it is perturbed, so that a query that is restarted from its checkpoint writes what it would have
    written. Thresholds are judged by a table that is `like` it.
    """
    if not layout.ids:
        raise SourceError(
            "the rows of a data frame have no numbers of their own, so that its records must have an id; give a column "
            "the role id"
        )
    if frame.isStreaming:
        require_streamable(layout)
        layout = replace(layout, order=KEEP)
        request = Request(layout, frame, to_arrow(frame), like_sampler(layout, to_arrow(frame), like), lambda: None)
    else:
        request = Request(layout, frame, to_arrow(frame), _sampler(layout, frame), lambda: _check_ids(layout, frame))
    with ExitStack() as stack:  # which takes the key back if the gate refuses
        shared = stack.enter_context(Spark(frame.sparkSession).shared_key(layout.dataset_key(key)))
        cleared = clear(request, [layout.policy.ladder.level(level)], key, secret=DatasetSecret(shared))
        _shared_keys.push(stack.pop_all())
    return _perturbed(cleared)


def release_read(
    layout: TableLayout, engine: Spark, frame: Any, target: str, level: Level | float | str, key: Key
) -> Manifest:
    """Write a copy of what one of Spark's own readers reads as a folder of Parquet files, with its manifest."""
    copy = release_dataframe(layout, frame, level, key)
    copy.write.parquet(target)
    draft = layout.manifest(to_arrow(frame), layout.policy.ladder.level(level), key)
    manifest = draft.filled(*digested_parts(draft.source(target).parts, engine))
    upload_text(join(target, FOLDER), manifest.dumps() + "\n")
    return manifest


def to_arrow(frame: Any) -> pa.Schema:
    """The columns of a data frame."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - an extra

    return to_arrow_schema(frame.schema)


def _sampler(layout: TableLayout, frame: Any) -> Sampler:
    """Takes some rows of a data frame, chosen by a hash of their ids."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    def take(rows: int) -> tuple[Words, pa.Table]:
        chosen = frame.orderBy(functions.xxhash64(*layout.ids)).limit(rows)
        return sampler(layout, Source.of(chosen.toArrow().cast(to_arrow(frame))))(rows)

    return take


def _check_ids(layout: TableLayout, frame: Any) -> None:
    repeated = frame.groupBy(*layout.ids).count().filter("count > 1").limit(1).collect()
    if repeated:
        raise SourceError(
            f"a record id must occur once, and {list(repeated[0])[:-1]} occurs again; remove the repeated record, or "
            "add a column to the id"
        )


def _perturbed(clearance: Clearance[Any]) -> Any:
    """The cleared copy of a data frame."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an extra

    layout, frame = clearance.layout, clearance.table
    clearance.require_no_issuer()
    shown = layout.schema(to_arrow(frame))
    keyed = shown.append(pa.field(_SORT_KEY, pa.int64())) if layout.shuffles else shown
    copy = frame.mapInArrow(_PerturbOnExecutor(clearance.for_workers(), keyed), from_arrow_schema(keyed))
    return copy.orderBy(_SORT_KEY).drop(_SORT_KEY) if layout.shuffles else copy


@dataclass(frozen=True)
class _PerturbOnExecutor:
    """Perturbs the rows that a Spark executor has."""

    clearance: Clearance[None]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        layout, levels, secret = self.clearance.layout, self.clearance.levels, self.clearance.secret
        for batch in batches:
            source = Source.of(pa.Table.from_batches([batch]))
            for numbers, rows in numbered_rows(layout, source):
                [copy] = perturb_rows(layout, numbers, rows, levels, secret())
                columns = [*copy.columns, *self._sort_keys(numbers, rows)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _sort_keys(self, numbers: Words, rows: pa.RecordBatch) -> list[pa.Array]:
        """What sorts rows into their secret order; Spark has no unsigned numbers, so the order is kept by a shift."""
        if not self.clearance.layout.shuffles:
            return []
        keys = sort_keys(self.clearance.layout, numbers, rows, self.clearance.secret())
        return [pa.array((keys ^ np.uint64(1 << 63)).view(np.int64))]
