"""Copies of Spark data frames: whatever Spark reads (Delta, Iceberg, a database), blurred where it lies."""

from __future__ import annotations

import atexit
import pickle
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines import Secret
from sfumato.engines.spark import Spark
from sfumato.errors import SourceError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.mechanisms import Summary
from sfumato.policy.document import Policy
from sfumato.release.fitting import Due, Measure, Measured, fitted
from sfumato.release.manifest import FOLDER, Manifest, digested_parts
from sfumato.release.scheme import TableScheme
from sfumato.risk import breach as advice
from sfumato.risk import thresholds
from sfumato.tables.filesystem import below
from sfumato.tables.source import Source
from sfumato.tables.storing import store_text

_LOT = "sfumato_lot"

_lent = ExitStack()
"""A data frame is computed when it is asked for, so that its key is shared_key until this process ends."""
atexit.register(_lent.close)


def release_dataframe(scheme: TableScheme, frame: Any, level: Level | float | str, key: Key) -> Any:
    """A copy of a Spark data frame at a level, as a data frame that is computed when it is asked for.

    Rows of a data frame have no places, so that records must have ids. They are checked to be distinct now.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - an extra
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    if not scheme.ids:
        raise SourceError(
            "the rows of a data frame have no places of their own, so that its records must have an id; give a column "
            "the role id"
        )
    schema = to_arrow(frame)
    asked = scheme.policy.ladder.level(level)
    scheme.check_schema(schema, key)
    twice = frame.groupBy(*scheme.ids).count().filter("count > 1").limit(1).collect()
    if twice:
        raise SourceError(
            f"a record id must occur once, and {list(twice[0])[:-1]} occurs again; remove the repeated record, or add "
            "a column to the id"
        )
    some = frame.orderBy(functions.xxhash64(*scheme.ids)).limit(max(thresholds.ROWS, advice.ROWS))
    sample = Source.of(some.toArrow().cast(schema) if scheme.is_tested else pa.Table.from_batches([], schema))
    scheme.check_motion(sample)
    scheme.check_targets(sample, [asked], key)
    secret = _lent.enter_context(Spark(frame.sparkSession).shared_key(key))
    shown = scheme.schema(schema)
    drawn = shown.append(pa.field(_LOT, pa.int64())) if scheme.shuffles else shown
    copy = frame.mapInArrow(_Blur(scheme, asked, secret, drawn), from_arrow_schema(drawn))
    return copy.orderBy(_LOT).drop(_LOT) if scheme.shuffles else copy


def to_arrow(frame: Any) -> pa.Schema:
    """The columns of a data frame."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - an extra

    return to_arrow_schema(frame.schema)


def fit_dataframe(policy: Policy, frame: Any) -> TableScheme:
    """Measure a Spark data frame where it lies; the scheme is that of the same rows anywhere else."""
    schema = to_arrow(frame)

    def one_pass(due: Due) -> list[Summary]:
        measure = Measure(due)
        found = frame.select(*dict.fromkeys(measure.names)).mapInArrow(_Summarise(measure), "summary binary").collect()
        parts = [pickle.loads(row.summary) for row in found]  # noqa: S301 - our own
        return reduce(Measured.merged, parts, measure.nothing(schema)).summaries

    return fitted(policy, schema, one_pass)


def release_read(
    scheme: TableScheme, engine: Spark, frame: Any, target: str, level: Level | float | str, key: Key
) -> Manifest:
    """Write a copy of what one of Spark's own readers reads as a folder of Parquet, with its manifest."""
    copy = release_dataframe(scheme, frame, level, key)
    copy.write.parquet(target)
    draft = scheme.manifest(to_arrow(frame), scheme.policy.ladder.level(level), key)
    manifest = draft.filled(*digested_parts(draft.source(target).parts, engine))
    store_text(below(target, FOLDER), manifest.dumps() + "\n")
    return manifest


@dataclass(frozen=True)
class _Summarise:
    """Measures the rows that an executor has."""

    measure: Measure

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [self.measure(batch) for batch in batches]
        if found:
            yield pa.RecordBatch.from_pydict({"summary": [pickle.dumps(reduce(Measured.merged, found))]})


@dataclass(frozen=True)
class _Blur:
    """Blurs the rows that an executor has."""

    scheme: TableScheme
    level: Level
    secret: Secret
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            source = Source.of(pa.Table.from_batches([batch]))
            for places, rows in self.scheme.numbered(source):
                [copy] = self.scheme.blur(places, rows, [self.level], self.secret())
                columns = [*copy.columns, *self._lots(places, rows)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _lots(self, places: Any, rows: pa.RecordBatch) -> list[pa.Array]:
        """What puts rows into their secret order; Spark has no unsigned numbers, so the order is kept by a shift."""
        if not self.scheme.shuffles:
            return []
        drawn = self.scheme.lots(places, rows, self.secret())
        return [pa.array((drawn ^ np.uint64(1 << 63)).view(np.int64))]
