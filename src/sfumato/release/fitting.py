"""Fitting: a policy and a table give a scheme, in as many passes as the mechanisms need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.mechanisms import Mechanism, Summary
from sfumato.release.columns import check_columns
from sfumato.release.plan import TableScheme, parts_of
from sfumato.schema.policy import Policy
from sfumato.schema.table import Source


def fit(
    policy: Policy, table: Any, *, threads: int | None = None, progress: Callable[[int], None] | None = None
) -> TableScheme:
    """Measure a table, in as many passes as its mechanisms need; `progress` is told the rows of each batch measured."""
    source = Source.of(table)
    check_columns(policy, source.schema)
    tree, mechanisms = parts_of(policy)
    for mechanism in mechanisms:
        mechanism.check(source.schema)
    engine = Local(threads)
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
    """One pass over a table for all mechanisms that need it, each with what it knows from the pass before."""

    def summarise(batch: pa.RecordBatch) -> list[Summary]:
        summaries = [mechanism.summarise(batch, before) for mechanism, before in due]
        if progress:
            progress(batch.num_rows)
        return summaries

    def merge(ours: list[Summary], theirs: list[Summary]) -> list[Summary]:
        return [a.merge(b) for a, b in zip(ours, theirs, strict=True)]

    return engine.fold(summarise, merge, _with_empty(source, [name for m, _ in due for name in m.columns]))


def _with_empty(source: Source, names: list[str]) -> Any:
    """The batches, after one without rows, so that an empty table is summarised too."""
    fields = [source.schema.field(name) for name in names]
    yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=pa.schema(fields))
    yield from source.batches(names)
