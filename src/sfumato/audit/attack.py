"""Attacks on copies: run one attack on tables or files with their manifests, and score its estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import attacks
from sfumato.attacks import ATTACKS, Attack, Estimate, Evidence, Knowledge, Records, Score, concatenate
from sfumato.audit.alignment import (
    in_secret_order,
    match_records,
    require_aligned,
    require_identifiers,
    shared_identifiers,
)
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.models import Model, of_type
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import lazy_evidence, original_records, pooled_evidence
from sfumato.release.manifest import Manifest
from sfumato.tables.columns import codes_of
from sfumato.tables.formats import BATCH
from sfumato.tables.source import Source

TRAINING_ROWS = 2 * BATCH
"""The number of records, from the first on, that an attack learns from; it is then applied to all in batches."""

_ROW = "sfumato.row"


@dataclass(frozen=True)
class CopySet:
    """Copies of one dataset that an attacker holds, with the same records in the same row order."""

    sources: tuple[Source, ...]
    manifests: tuple[Manifest, ...]

    @classmethod
    def of(cls, copies: Sequence[Any]) -> CopySet:
        """Open copies, which are tables or files with manifests, and match their records by their identifiers."""
        if isinstance(copies, str) or not isinstance(copies, Sequence) or not copies:
            raise AttackError("an attack needs a list of copies, with at least one in it")
        manifests = tuple(Manifest.of(copy) for copy in copies)
        if len({manifest.dataset for manifest in manifests}) > 1:
            raise AttackError(f"copies must be of one dataset, got {', '.join(sorted({m.dataset for m in manifests}))}")
        opened = cls(tuple(m.source(copy) for m, copy in zip(manifests, copies, strict=True)), manifests)
        return opened if opened._is_aligned else opened._matched()

    @property
    def ids(self) -> list[str]:
        """The record identifier columns that all copies release."""
        return shared_identifiers(self.manifests)

    @property
    def rows(self) -> int:
        """The number of records."""
        return min(self._counts)

    @property
    def in_secret_order(self) -> bool:
        """Whether only the key tells which row is which record."""
        return not self.ids and in_secret_order(self.manifests)

    @property
    def models(self) -> list[Model]:
        """The public models of all copies."""
        return [model for manifest in self.manifests for model in manifest.models]

    def batches(self, size: int = BATCH) -> Iterator[Evidence]:
        """The same records of all copies, in batches; a copy that no attack looks at is not read."""
        readers = [_Reader(source, size) for source in self.sources]
        for start in range(0, self.rows, size):
            rows = min(size, self.rows - start)
            tables = [partial(reader.table, start, rows) for reader in readers]
            yield pooled_evidence([lazy_evidence(rows, t, m) for t, m in zip(tables, self.manifests, strict=True)])

    def training_evidence(self, *, all_rows: bool) -> Evidence:
        """The records that an attack learns from: the first ones, or all."""
        size = -(-self.rows // BATCH) * BATCH if all_rows and self.rows else TRAINING_ROWS
        evidence = next(self.batches(size), None)
        if evidence is None:
            raise AttackError("an attack needs at least two records, and these copies have none")
        return evidence

    def identifiers(self, rows: int | None = None) -> pa.Table:
        """The identifiers of all records, or of the first ones."""
        batches = self.sources[0].batches(self.ids)
        schema = pa.schema([self.sources[0].schema.field(name) for name in self.ids])
        table = pa.Table.from_batches(batches if rows is None else islice(batches, -(-rows // BATCH)), schema)
        return table.slice(0, rows)

    @property
    def _counts(self) -> list[int]:
        """The number of records in each copy: a part of a copy is a copy too, if the file format counts its rows."""
        pairs = zip(self.sources, self.manifests, strict=True)
        return [manifest.rows if source.rows is None else source.rows for source, manifest in pairs]

    @property
    def _is_aligned(self) -> bool:
        if len(set(self._counts)) > 1:
            return False
        names = self.ids
        columns = [source.batches(names) for source in self.sources] if names else []
        return all(part.equals(parts[0]) for parts in zip(*columns, strict=True) for part in parts[1:])

    def _matched(self) -> CopySet:
        tables = [pa.Table.from_batches(source.batches(), source.schema) for source in self.sources]
        return CopySet(tuple(map(Source.of, match_records(tables, self.ids))), self.manifests)


class _Reader:
    """Reads one copy forwards, as batches of it are requested."""

    def __init__(self, source: Source, size: int) -> None:
        self._source, self._batches, self._batches_per_table = source, source.batches(), size // BATCH
        self._next_row, self._table = 0, pa.table({})

    def table(self, start: int, rows: int) -> pa.Table:
        """The records from row `start` on, which must not be before that of the last call."""
        while self._next_row <= start:
            self._table = pa.Table.from_batches(islice(self._batches, self._batches_per_table), self._source.schema)
            self._next_row += self._batches_per_table * BATCH
        if self._table.num_rows != rows:
            raise AttackError(
                "a copy must have as many rows as its manifest states, and one has another number; was it truncated?"
            )
        return self._table


def attack(
    name: str,
    copies: Sequence[Any],
    *,
    statistics: Any = None,
    samples: int | None = None,
    sample: Any = None,
    known: Any = None,
    prior: Mapping[str, Mapping[Any, float]] | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Estimate:
    """Attack some copies: tables or files, each with its manifest.

        estimate = sf.attack("llse", [copy1, copy2])
        print(sf.score(estimate, table).number("income").rmse.attack)

    Args:
        name: the name of the attack; `sfumato attack --list` lists them all.
        copies: the copies that the attacker holds.
        statistics: the original, if the attacker knows its mean and covariance exactly.
        samples: the number of records that statistics are estimated from, if not from all.
        sample: other records of the same population.
        known: records that the attacker knows: a table with the copies' identifiers, or a pair of row indices and a
            table.
        prior: the distribution of categories, by column and value.
        progress: called with the number of records just processed.
        options: the parameters of the attack.

    """
    made = make_attack(name, options)
    opened = CopySet.of(copies)
    knowledge = _knowledge(opened, statistics, samples, sample, known, prior)
    training = opened.training_evidence(all_rows=made.needs_all_records)
    estimator, estimates = made.check_and_fit(replace(training, knowledge=knowledge)), []
    for batch in opened.batches():
        estimates.append(estimator(batch))
        if progress:
            progress(batch.rows)
    identifiers = opened.identifiers() if opened.ids else None
    return replace(
        concatenate(estimates), records=identifiers, in_secret_order=opened.in_secret_order, models=tuple(opened.models)
    )


def make_attack(name: str, options: Mapping[str, Any]) -> Attack:
    """An attack with its parameters."""
    kind = ATTACKS[name]
    parameters = getattr(kind, "__dataclass_fields__", {})
    unknown = [option for option in options if option not in parameters]
    if unknown:
        has = f"it has {', '.join(parameters)}" if parameters else "it has none"
        raise AttackError(f"the attack {name!r} has no parameter {unknown[0]!r}; {has}")
    made: Attack = kind(**options)
    return made


def choose_known_records(copies: Sequence[Any], original: Any, share: float) -> tuple[Rows, pa.Table]:
    """The row indices and true values of records for an attacker who knows a share of them, or a number from 1 on."""
    opened = CopySet.of(copies)
    rows = min(TRAINING_ROWS, opened.rows)
    if share >= rows:
        raise AttackError(
            f"an attacker must know fewer than all {rows:,} records that the attack learns from, got {share:g}"
        )
    count = max(int(share if share >= 1 else share * rows), 1)
    known_rows = np.unique(np.linspace(0, rows - 1, count).astype(np.int64))
    table = require_aligned(_table(original), in_secret_order=opened.in_secret_order)
    if opened.ids:
        identifiers = opened.identifiers(rows)
        table = match_records([identifiers, table], require_identifiers(table.column_names, opened.ids))[1]
    return known_rows, table.take(pa.array(known_rows))


def score(
    estimate: Estimate, truth: Any, *, control: Any = None, epsilon: float = 0.05, leave_out: Rows | None = None
) -> Score:
    """The accuracy of an estimate, with intervals, beside a baseline without any copy and a control.

    Args:
        estimate: the estimate of an `attack`.
        truth: the original, as a table or a file; records are matched by their identifiers where the copies release
            them, and columns that a policy clips are clipped.
        control: records that were not released; by default, other records than the one that is estimated.
        epsilon: the relative error up to which an estimate is a breach (giannella2010, Definition 3.1).
        leave_out: the row indices of records that the attacker knew.

    """
    original = require_aligned(_original(estimate, _table(truth)), in_secret_order=estimate.in_secret_order)
    real = original_records(original, estimate.models)
    if leave_out is not None:
        scored = np.delete(np.arange(len(estimate)), leave_out)
        estimate, real = estimate.take(scored), real.take(scored)
    other = None if control is None else original_records(_table(control), estimate.models)
    return attacks.score(estimate, real, control=other, epsilon=epsilon)


def _original(estimate: Estimate, table: pa.Table) -> pa.Table:
    """The original in the row order of an estimate."""
    if estimate.records is not None:
        ids = require_identifiers(table.column_names, estimate.records.column_names)
        table = match_records([estimate.records, table], ids)[1]
    if table.num_rows != len(estimate):
        raise AttackError(f"the truth must hold the {len(estimate):,} records of the copies, got {table.num_rows:,}")
    return table


def _knowledge(copies: CopySet, statistics: Any, samples: int | None, sample: Any, known: Any, prior: Any) -> Knowledge:
    """The background knowledge of an attacker, in the terms of the copies."""
    if samples is not None and samples < 2:
        raise AttackError(f"statistics are estimated from at least two records, got samples={samples!r}")
    knowledge = Knowledge(
        statistics=None if statistics is None else _statistics(statistics, copies),
        samples=samples,
        sample=None if sample is None else _records(_table(sample), copies.models),
        prior={} if prior is None else _priors(prior, copies),
    )
    return knowledge if known is None else _with_known_records(knowledge, known, copies)


def _with_known_records(knowledge: Knowledge, known: Any, copies: CopySet) -> Knowledge:
    """The knowledge with known records, at known rows unless the copies are rotated or projected."""
    if isinstance(known, float | int):
        raise AttackError(f"`known` must be a table of known records, or a pair of row indices and one, got {known!r}")
    if not isinstance(known, tuple) and of_type(copies.models, Rotation):
        return replace(knowledge, known=_records(_table(known), copies.models))  # the attack finds their rows
    known_rows, table = known if isinstance(known, tuple) else _located(known, copies)
    return replace(knowledge, known=original_records(table, copies.models), known_rows=known_rows)


def _records(table: pa.Table, models: Sequence[Model]) -> Records:
    """Original records, in the terms of those models whose columns the table has."""
    available = [model for model in models if set(model.original_columns) <= set(table.column_names)]
    unchanged = of_type(available, Unchanged)
    return original_records(table, [model for model in available if model not in unchanged] or models)


def _table(table: Any) -> pa.Table:
    source = Source.of(table)
    return pa.Table.from_batches(source.batches(), source.schema)


def _statistics(original: Any, copies: CopySet) -> tuple[tuple[str, ...], Floats, Floats]:
    """The columns of the copies, and the mean and covariance of the original."""
    known = original_records(_table(original), copies.models)
    complete = known.values[~np.isnan(known.values).any(axis=1)]
    if len(complete) < 2:
        raise AttackError("statistics need at least two records without missing numbers; give a larger table")
    return known.columns, complete.mean(axis=0), np.atleast_2d(np.cov(complete.T))


def _located(known: Any, copies: CopySet) -> tuple[Rows, pa.Table]:
    """The row indices of known records among those that an attack learns from, and the records found there."""
    table = _table(known)
    if not copies.ids:
        raise AttackError(
            "known records are found by their identifiers, and these copies release none; give their row indices too"
        )
    first = copies.identifiers(TRAINING_ROWS)
    numbered = first.append_column(_ROW, pa.array(np.arange(first.num_rows)))
    found, chosen = match_records([numbered, table], require_identifiers(table.column_names, copies.ids))
    return found.column(_ROW).to_numpy(), chosen


def _priors(stated: Mapping[str, Mapping[Any, float]], copies: CopySet) -> dict[tuple[str, ...], Floats]:
    """The prior distribution of each attribute, in the order of its domain."""
    priors: dict[tuple[str, ...], Floats] = {}
    for column, probabilities in stated.items():
        models = [m for m in of_type(copies.models, UniformReplacement) if m.columns == (column,)]
        if not models:
            raise AttackError(
                f"a prior must be about a single categorical column, and {column!r} is none in these copies"
            )
        values = pa.table({column: pa.array(list(probabilities)).cast(_value_type(copies, column))})
        prior = np.zeros(models[0].size)
        prior[codes_of(values, models[0])] = list(probabilities.values())
        if not 0.999 < prior.sum() < 1.001 or prior.min() < 0:
            raise AttackError(f"the prior of {column!r} must be probabilities that sum to 1, got {prior.sum():g}")
        priors[column,] = prior / prior.sum()
    return priors


def _value_type(copies: CopySet, column: str) -> pa.DataType:
    """The type of a column's values, without a dictionary encoding."""
    kind = next(source.schema.field(column).type for source in copies.sources if column in source.schema.names)
    return kind.value_type if pa.types.is_dictionary(kind) else kind
