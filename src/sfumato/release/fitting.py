"""Fitting: a policy and a table give a scheme, in as many passes as the mechanisms need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.mechanisms import Mechanism, Summary
from sfumato.policy.columns import check_columns
from sfumato.policy.document import Policy
from sfumato.release.scheme import TableScheme, parts_of
from sfumato.tables.partitioned import Part
from sfumato.tables.source import Source

Due = list[tuple[Mechanism, Summary | None]]
"""Mechanisms that need a pass, each with what it knows from the pass before."""


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
    source, where = Source.of(table), engine or Local(threads)
    return fitted(policy, source.schema, lambda due: _summarise(where, source, due, progress))


def fitted(policy: Policy, schema: pa.Schema, one_pass: Callable[[Due], list[Summary]]) -> TableScheme:
    """The scheme for a table with this schema, which `one_pass` measures for all mechanisms that need it."""
    check_columns(policy, schema)
    tree, mechanisms = parts_of(policy)
    for mechanism in mechanisms:
        mechanism.check(schema)
    summaries: list[Summary | None] = [None] * len(mechanisms)
    for turn in range(max((mechanism.passes for mechanism in mechanisms), default=0)):
        due = [i for i, mechanism in enumerate(mechanisms) if turn < mechanism.passes]
        measured = one_pass([(mechanisms[i], summaries[i]) for i in due])
        for i, summary in zip(due, measured, strict=True):
            summaries[i] = summary
    schemes = [m.fit(s, tree) for m, s in zip(mechanisms, summaries, strict=True) if s is not None]
    return TableScheme(policy, mechanisms, tuple(schemes), tree)


def _summarise(
    engine: Engine,
    source: Source,
    due: Due,
    progress: Callable[[int], None] | None,
) -> list[Summary]:
    """One pass over a table.

    A cluster is given the files of a folder, one machine the batches.
    """
    measure = Measure(due)
    total = measure.nothing(source.schema)  # so that an empty table is summarised too
    away = bool(source.parts) and not isinstance(engine, Local)
    for summaries in engine.map(measure, source.parts if away else source.batches(measure.names)):
        total = total.merged(summaries)
        if progress:
            progress(summaries.rows)
    return total.summaries


@dataclass(frozen=True)
class Measured:
    """Of some rows, by mechanism."""

    rows: int
    summaries: list[Summary]

    def merged(self, other: Measured) -> Measured:
        """Of both."""
        both = zip(self.summaries, other.summaries, strict=True)
        return Measured(self.rows + other.rows, [ours.merge(theirs) for ours, theirs in both])


@dataclass(frozen=True)
class Measure:
    """Measures a batch, or a file."""

    due: Due

    @property
    def names(self) -> list[str]:
        """The columns it needs."""
        return [name for mechanism, _ in self.due for name in mechanism.columns]

    def nothing(self, schema: pa.Schema) -> Measured:
        """Of no rows."""
        fields = [schema.field(name) for name in self.names]
        return self(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in fields], schema=pa.schema(fields)))

    def __call__(self, table: pa.RecordBatch | Part) -> Measured:
        """Of all mechanisms that need this pass."""
        if not isinstance(table, Part):
            return Measured(table.num_rows, [mechanism.summarise(table, before) for mechanism, before in self.due])
        total = self.nothing(table.schema)
        for batch in Source.of(table).batches(self.names):
            total = total.merged(self(batch))
        return total
