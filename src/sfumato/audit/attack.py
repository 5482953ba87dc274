"""The door for users: attack copies, and score what an attack said against the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import attacks
from sfumato.attacks import ATTACKS, Attack, Estimate, Evidence, Knowledge, Records, Score, joined
from sfumato.audit.alignment import aligned, matched, needed, shared_ids
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.models import Model
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import codes_of, exhibit_later, records, together
from sfumato.release.manifest import Manifest
from sfumato.tables.domain import Domain
from sfumato.tables.readers import BATCH
from sfumato.tables.source import Source

LEARN = 2 * BATCH
"""How many records an attack learns from, from the first on; it is then applied to all, a batch at a time."""


@dataclass(frozen=True)
class Opened:
    """Some copies, opened together."""

    sources: tuple[Source, ...]
    manifests: tuple[Manifest, ...]

    @classmethod
    def of(cls, copies: Sequence[Any]) -> Opened:
        """Copies as tables or files, each with its manifest; those of different records are matched by their ids."""
        if isinstance(copies, str) or not isinstance(copies, Sequence) or not copies:
            raise AttackError("an attack needs a list of copies, with at least one in it")
        manifests = tuple(Manifest.of(copy) for copy in copies)
        if len({manifest.dataset for manifest in manifests}) > 1:
            raise AttackError(f"copies must be of one dataset, got {', '.join(sorted({m.dataset for m in manifests}))}")
        case = cls(tuple(m.source(copy) for m, copy in zip(manifests, copies, strict=True)), manifests)
        return case if case._is_aligned else case._matched()

    @property
    def ids(self) -> list[str]:
        """The columns that name a record."""
        return shared_ids(self.manifests)

    @property
    def rows(self) -> int:
        """How many records there are."""
        return min(self._counts)

    def batches(self, size: int = BATCH) -> Iterator[Evidence]:
        """The same records of all copies, some at a time; a copy that nobody looks at is not read."""
        readers = [_Reader(source, size) for source in self.sources]
        for place in range(0, self.rows, size):
            rows = min(size, self.rows - place)
            tables = [partial(reader.table, place, rows) for reader in readers]
            yield together([exhibit_later(rows, t, m) for t, m in zip(tables, self.manifests, strict=True)])

    def lesson(self, *, whole: bool) -> Evidence:
        """The records that an attack learns from: the first, or all of them."""
        first = next(self.batches(-(-self.rows // BATCH) * BATCH if whole and self.rows else LEARN), None)
        if first is None:
            raise AttackError("an attack needs at least two records, and these copies have none")
        return first

    def names(self, rows: int | None = None) -> pa.Table:
        """What names the records, or the first of them."""
        kept = self.sources[0].batches(self.ids)
        schema = pa.schema([self.sources[0].schema.field(name) for name in self.ids])
        named = pa.Table.from_batches(kept if rows is None else islice(kept, -(-rows // BATCH)), schema)
        return named.slice(0, rows)

    @property
    def models(self) -> list[Model]:
        """Of all copies."""
        return [model for manifest in self.manifests for model in manifest.models]

    @property
    def _counts(self) -> list[int]:
        """How many records each copy has: part of a copy is a copy, where the format tells its rows."""
        pairs = zip(self.sources, self.manifests, strict=True)
        return [manifest.rows if source.rows is None else source.rows for source, manifest in pairs]

    @property
    def _is_aligned(self) -> bool:
        if len(set(self._counts)) > 1:
            return False
        names = self.ids
        columns = [source.batches(names) for source in self.sources] if names else []
        return all(part.equals(parts[0]) for parts in zip(*columns, strict=True) for part in parts[1:])

    def _matched(self) -> Opened:
        tables = [pa.Table.from_batches(source.batches(), source.schema) for source in self.sources]
        found = matched(tables, self.ids)
        return Opened(tuple(map(Source.of, found)), self.manifests)


class _Reader:
    """One copy, read in step with what is asked of it."""

    def __init__(self, source: Source, size: int) -> None:
        self._source, self._batches, self._each = source, source.batches(), size // BATCH
        self._next, self._held = 0, pa.table({})

    def table(self, place: int, rows: int) -> pa.Table:
        """The records from that place on, which is no earlier than the last one."""
        while self._next <= place:
            self._held = pa.Table.from_batches(islice(self._batches, self._each), self._source.schema)
            self._next += self._each * BATCH
        if self._held.num_rows != rows:
            raise AttackError("a copy must have the rows that its manifest counts, and one has not; was it cut?")
        return self._held


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
        name: of the attack; `sfumato attack --list` has them all.
        copies: that the attacker holds.
        statistics: the original, if its mean and covariance shall be perfectly known.
        samples: how many records statistics are estimated from, if not from all.
        sample: other records of the same population.
        known: records that the attacker knows: a table with the copies' ids, or a pair of their places and a table.
        prior: the distribution of categories, by column and value.
        progress: told the number of records just done.
        options: the attack's own parameters.

    """
    made = make(name, options)
    case = Opened.of(copies)
    told = _knowledge(case, statistics, samples, sample, known, prior)
    lesson = case.lesson(whole=made.whole)
    guess, found = made.ready(replace(lesson, knowledge=told)), []
    for part in case.batches():
        found.append(guess(part))
        if progress:
            progress(part.rows)
    named = case.names() if case.ids else None
    return replace(joined(found), records=named, models=tuple(case.models))


def _knowledge(case: Opened, statistics: Any, samples: int | None, sample: Any, known: Any, prior: Any) -> Knowledge:
    """What an attacker is told, in the terms of the copies."""
    if samples is not None and samples < 2:
        raise AttackError(f"statistics are estimated from at least two records, got samples={samples!r}")
    if isinstance(known, float | int):
        raise AttackError(f"`known` must be a table of known records, or a pair of places and one, got {known!r}")
    told = Knowledge(
        statistics=None if statistics is None else _statistics(statistics, case),
        samples=samples,
        sample=None if sample is None else _records(_table(sample), case.models),
        prior={} if prior is None else _priors(prior, case),
    )
    if known is None:
        return told
    if not isinstance(known, tuple) and any(isinstance(model, Rotation) for model in case.models):
        return replace(told, known=_records(_table(known), case.models))  # where they are is what is sought
    places, table = known if isinstance(known, tuple) else _placed(known, case)
    return replace(told, known=records(table, case.models), places=places)


def _records(table: pa.Table, models: Sequence[Model]) -> Records:
    """Real records, in the terms of the models of which they tell anything."""
    told = [m for m in models if set(getattr(m, "sources", m.columns)) <= set(table.column_names)]
    blurred = [model for model in told if not isinstance(model, Unchanged)]
    return records(table, blurred or models)


def known_share(copies: Sequence[Any], original: Any, share: float) -> tuple[Rows, pa.Table]:
    """What an attacker knows who knows that share of the records, or so many: their places, and the truth."""
    case = Opened.of(copies)
    rows = min(LEARN, case.rows)
    if share >= rows:
        raise AttackError(f"an attacker knows fewer than all {rows:,} records that are learnt from, got {share:g}")
    places = np.unique(np.linspace(0, rows - 1, max(int(share if share >= 1 else share * rows), 1)).astype(np.int64))
    table = aligned(_table(original), case.models)
    if case.ids:
        table = matched([case.names(rows), table], needed(table.column_names, case.ids))[1]
    return places, table.take(pa.array(places))


def make(name: str, options: Mapping[str, Any]) -> Attack:
    """An attack with its parameters."""
    kind = ATTACKS[name]
    known = getattr(kind, "__dataclass_fields__", {})
    strange = [option for option in options if option not in known]
    if strange:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise AttackError(f"the attack {name!r} has no parameter {strange[0]!r}; {has}")
    made: Attack = kind(**options)
    return made


def score(
    estimate: Estimate, truth: Any, *, control: Any = None, epsilon: float = 0.05, leave_out: Rows | None = None
) -> Score:
    """How right an estimate was, with intervals, beside a guess without any copy and a control.

    Args:
        estimate: from `attack`.
        truth: the original, as a table or a file; records are matched by their ids where the copies show them, and
            columns that a policy clips are clipped.
        control: records that were not released; by default, other records than the one that is guessed.
        epsilon: what counts as a breach (giannella2010, Definition 3.1).
        leave_out: the places of records that the attacker knew.

    """
    real = records(aligned(_original(estimate, _table(truth)), estimate.models), estimate.models)
    if leave_out is not None:
        kept = np.delete(np.arange(len(estimate)), leave_out)
        estimate, real = estimate.take(kept), real.take(kept)
    other = None if control is None else records(_table(control), estimate.models)
    return attacks.score(estimate, real, control=other, epsilon=epsilon)


def _original(estimate: Estimate, table: pa.Table) -> pa.Table:
    if estimate.records is not None:
        table = matched([estimate.records, table], needed(table.column_names, estimate.records.column_names))[1]
    if table.num_rows != len(estimate):
        raise AttackError(f"the truth must hold the {len(estimate):,} records of the copies, got {table.num_rows:,}")
    return table


def _table(table: Any) -> pa.Table:
    source = Source.of(table)
    return pa.Table.from_batches(source.batches(), source.schema)


def _statistics(original: Any, case: Opened) -> tuple[tuple[str, ...], Floats, Floats]:
    known = records(_table(original), case.models)
    whole = known.values[~np.isnan(known.values).any(axis=1)]
    if len(whole) < 2:
        raise AttackError("statistics need at least two records without missing numbers; give a larger table")
    return known.columns, whole.mean(axis=0), np.atleast_2d(np.cov(whole.T))


def _placed(known: Any, case: Opened) -> tuple[Rows, pa.Table]:
    """Where known records are among those that are learnt from."""
    table = _table(known)
    if not case.ids:
        raise AttackError("known records are found by their ids, and these copies show none; give their places too")
    first = case.names(LEARN)
    seen = first.append_column("sfumato.place", pa.array(np.arange(first.num_rows)))
    found, chosen = matched([seen, table], needed(table.column_names, case.ids))
    return found.column("sfumato.place").to_numpy(), chosen


def _priors(said: Mapping[str, Mapping[Any, float]], case: Opened) -> dict[tuple[str, ...], Floats]:
    """Priors by attribute, in the order of its domain."""
    out: dict[tuple[str, ...], Floats] = {}
    for column, chances in said.items():
        models = [m for m in case.models if isinstance(m, UniformReplacement) and m.columns == (column,)]
        if not models:
            raise AttackError(f"a prior is about one category by itself, and {column!r} is none in these copies")
        values = pa.table({column: pa.array(list(chances)).cast(_kind(case, column))})
        prior = np.zeros(Domain.decode(models[0].domains[0]).count + models[0].perturbs_null)
        prior[codes_of(values, models[0])] = list(chances.values())
        if not 0.999 < prior.sum() < 1.001 or prior.min() < 0:
            raise AttackError(f"the prior of {column!r} must be probabilities that sum to 1, got {prior.sum():g}")
        out[column,] = prior / prior.sum()
    return out


def _kind(case: Opened, column: str) -> pa.DataType:
    kind = next(source.schema.field(column).type for source in case.sources if column in source.schema.names)
    return kind.value_type if pa.types.is_dictionary(kind) else kind
