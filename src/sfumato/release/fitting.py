"""Fitting: a policy and a table give a scheme, in as many passes over the table as the mechanisms need."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.mechanisms import Mechanism, Summary
from sfumato.policy.columns import check_columns
from sfumato.policy.document import PolicyDocument
from sfumato.release.scheme import TableScheme, tree_and_mechanisms
from sfumato.release.spark import to_arrow
from sfumato.tables.partitioned import Part
from sfumato.tables.row_order import KEEP
from sfumato.tables.source import Source

Due = list[tuple[Mechanism, Summary | None]]
"""The mechanisms that need a pass, each with its summary of the pass before."""


def fit(
    policy: PolicyDocument,
    table: Any,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> TableScheme:
    """Measure a table; `progress` is called with the number of rows that were measured.

    Summaries merge exactly, so that the scheme is the same, to the last bit, however the table is divided and on
    whichever engine it is measured.
    """
    source, where = policy.source(table), engine or Local(threads)
    return fit_passes(policy, source.schema, lambda due: _summarise(where, source, due, progress))


def fit_dataframe(policy: PolicyDocument, frame: Any) -> TableScheme:
    """Measure a Spark data frame where it is; the scheme is that of the same rows anywhere else."""
    schema = to_arrow(frame)

    def one_pass(due: Due) -> list[Summary]:
        measure = Measure(due)
        columns = frame.select(*dict.fromkeys(measure.columns))
        rows = columns.mapInArrow(_SummariseOnExecutor(measure), "summary binary").collect()
        parts = [pickle.loads(row.summary) for row in rows]  # noqa: S301 - our own
        return reduce(Measured.merged, parts, measure.of_no_rows(schema)).summaries

    return fit_passes(policy, schema, one_pass)


def fit_passes(policy: PolicyDocument, schema: pa.Schema, one_pass: Callable[[Due], list[Summary]]) -> TableScheme:
    """The scheme for a table with this schema, which `one_pass` measures for all mechanisms that need the pass."""
    check_columns(policy, schema)
    tree, mechanisms = tree_and_mechanisms(policy)
    for mechanism in mechanisms:
        mechanism.check(schema)
    summaries: list[Summary | None] = [None] * len(mechanisms)
    for number in range(max((mechanism.passes for mechanism in mechanisms), default=0)):
        due = [i for i, mechanism in enumerate(mechanisms) if number < mechanism.passes]
        measured = one_pass([(mechanisms[i], summaries[i]) for i in due])
        for i, summary in zip(due, measured, strict=True):
            summaries[i] = summary
    schemes = [m.fit(s, tree) for m, s in zip(mechanisms, summaries, strict=True) if s is not None]
    in_order = any(m.is_linear_map and not scheme.shuffles for m, scheme in zip(mechanisms, schemes, strict=True))
    return TableScheme(policy, mechanisms, tuple(schemes), tree, order=KEEP if in_order else policy.order)


def _summarise(
    engine: Engine,
    source: Source,
    due: Due,
    progress: Callable[[int], None] | None,
) -> list[Summary]:
    """One pass over a table: a cluster gets its files, or the row groups of a Parquet file, one machine the batches."""
    measure = Measure(due)
    total = measure.of_no_rows(source.schema)  # so that an empty table is summarised too
    parts = source.by_row_groups().parts if engine.is_distributed else ()
    for summaries in engine.map(measure, parts or source.batches(measure.columns)):
        total = total.merged(summaries)
        if progress:
            progress(summaries.rows)
    return total.summaries


@dataclass(frozen=True)
class Measured:
    """The summaries of some rows, one per mechanism."""

    rows: int
    summaries: list[Summary]

    def merged(self, other: Measured) -> Measured:
        """The summaries of both sets of rows."""
        both = zip(self.summaries, other.summaries, strict=True)
        return Measured(self.rows + other.rows, [ours.merge(theirs) for ours, theirs in both])


@dataclass(frozen=True)
class Measure:
    """Summarises a batch, or a file, for all mechanisms that need this pass."""

    due: Due

    @property
    def columns(self) -> list[str]:
        """The columns that it needs."""
        return list(dict.fromkeys(name for mechanism, _ in self.due for name in mechanism.reads))

    def of_no_rows(self, schema: pa.Schema) -> Measured:
        """The summaries of an empty table."""
        fields = [schema.field(name) for name in self.columns]
        return self(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in fields], schema=pa.schema(fields)))

    def __call__(self, table: pa.RecordBatch | Part) -> Measured:
        """The summaries of a batch or a file."""
        if not isinstance(table, Part):
            return Measured(table.num_rows, [mechanism.summarise(table, before) for mechanism, before in self.due])
        total = self.of_no_rows(table.schema)
        for batch in Source.of(table).batches(self.columns):
            total = total.merged(self(batch))
        return total


@dataclass(frozen=True)
class _SummariseOnExecutor:
    """Summarises the rows that a Spark executor has."""

    measure: Measure

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [self.measure(batch) for batch in batches]
        if found:
            yield pa.RecordBatch.from_pydict({"summary": [pickle.dumps(reduce(Measured.merged, found))]})
