"""Fitting: a policy and a table give a scheme, in as many passes as the mechanisms need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.mechanisms import Mechanism, Summary
from sfumato.release.columns import check_columns
from sfumato.release.plan import TableScheme, parts_of
from sfumato.schema.folder import Part
from sfumato.schema.policy import Policy
from sfumato.schema.table import Source


def fit(
    policy: Policy,
    table: Any,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> TableScheme:
    """Measure a table, in as many passes as its mechanisms need; `progress` is told the rows that were measured.

    Merging what was measured is exact, so that the scheme is the same, to the last bit, however the table lies and
    wherever it is measured.
    """
    source = Source.of(table)
    check_columns(policy, source.schema)
    tree, mechanisms = parts_of(policy)
    for mechanism in mechanisms:
        mechanism.check(source.schema)
    engine = engine or Local(threads)
    summaries: list[Summary | None] = [None] * len(mechanisms)
    for turn in range(max((mechanism.passes for mechanism in mechanisms), default=0)):
        due = [i for i, mechanism in enumerate(mechanisms) if turn < mechanism.passes]
        merged = _summarise(engine, source, [(mechanisms[i], summaries[i]) for i in due], progress)
        for i, summary in zip(due, merged, strict=True):
            summaries[i] = summary
    schemes = [m.fit(s, tree) for m, s in zip(mechanisms, summaries, strict=True) if s is not None]
    return TableScheme(policy, mechanisms, tuple(schemes), tree)


def _summarise(
    engine: Engine,
    source: Source,
    due: list[tuple[Mechanism, Summary | None]],
    progress: Callable[[int], None] | None,
) -> list[Summary]:
    """One pass over a table for all mechanisms that need it, each with what it knows from the pass before.

    A cluster is given the files of a folder, one machine the batches.
    """
    names = [name for mechanism, _ in due for name in mechanism.columns]
    measure = _Measure(due, names)
    total = measure(_empty(source.schema, names))  # so that an empty table is summarised too
    away = bool(source.parts) and not isinstance(engine, Local)
    for summaries in engine.map(measure, source.parts if away else source.batches(names)):
        total = total.merged(summaries)
        if progress:
            progress(summaries.rows)
    return total.summaries


@dataclass(frozen=True)
class _Measured:
    """Of some rows, by mechanism."""

    rows: int
    summaries: list[Summary]

    def merged(self, other: _Measured) -> _Measured:
        both = zip(self.summaries, other.summaries, strict=True)
        return _Measured(self.rows + other.rows, [ours.merge(theirs) for ours, theirs in both])


@dataclass(frozen=True)
class _Measure:
    """Measures a batch, or a file."""

    due: list[tuple[Mechanism, Summary | None]]
    names: list[str]

    def __call__(self, table: pa.RecordBatch | Part) -> _Measured:
        if not isinstance(table, Part):
            return _Measured(table.num_rows, [mechanism.summarise(table, before) for mechanism, before in self.due])
        total = self(_empty(table.schema, self.names))
        for batch in Source.of(table).batches(self.names):
            total = total.merged(self(batch))
        return total


def _empty(schema: pa.Schema, names: list[str]) -> pa.RecordBatch:
    fields = [schema.field(name) for name in names]
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=pa.schema(fields))
