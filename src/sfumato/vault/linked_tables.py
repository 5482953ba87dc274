"""Datasets of several tables in a vault: each table is a dataset, `clinic.patients`, and one command is for all.

What refers to an identifier of another table has its pseudonyms. Noise is drawn for each table by itself, so that a
column must not repeat one of another table: two draws of one value could be averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import PolicyError, SfumatoError, SourceError
from sfumato.kernels import Floats
from sfumato.ledger.chain import Entry
from sfumato.policy.roles import PLAIN_ROLES
from sfumato.release.policy import Policy
from sfumato.tables.source import Source
from sfumato.vault.protocol import Progress, VaultProtocol

_COMPARED = 65_536
"""The number of records of a table whose values are looked for in the tables that refer to it."""

_FEWEST = 20
"""The fewest records by which two columns are compared."""

_RELATED = 0.9
"""The rank correlation from which a column of numbers repeats another one, rounded, rescaled or nearly so."""

_AGREEMENT = 0.5
"""The agreement (Cohen's kappa, which is 0 for independent columns) from which a column repeats another one."""


def add_tables(
    vault: VaultProtocol,
    policies: Mapping[str, Policy],
    tables: Mapping[str, Any],
    *,
    traced: bool = False,
    replace: bool = False,
    accept_overlap: str | None = None,
    progress: Progress | None = None,
) -> list[Entry]:
    """Add all tables of a dataset; adding the same again changes nothing, so that an interrupted run is finished so."""
    if set(policies) != set(tables):
        raise SourceError(
            f"the policy has the tables {', '.join(sorted(policies))}, and there must be one for each, got "
            f"{', '.join(sorted(tables)) or 'none'}"
        )
    check_links(policies, {name: policies[name].source(tables[name]) for name in policies})
    options: dict[str, Any] = {"traced": traced, "replace": replace}
    options |= {"accept_overlap": accept_overlap, "progress": progress}
    entries: list[Entry] = []
    for name in policies:
        try:
            entries.append(vault.add(policies[name], tables[name], **options))
        except SfumatoError as error:
            done = ", ".join(entry.dataset for entry in entries) or "nothing"
            raise type(error)(f"{name}: {error} ({done} was added; correct this, and run the same command)") from None
    return entries


def check_links(policies: Mapping[str, Policy], sources: Mapping[str, Source]) -> None:
    """Refuse references of another type than the identifiers, and columns that repeat those of another table."""
    for name, column, other, identifier in _references(policies):
        kinds = [_kind(sources[name], column), _kind(sources[other], identifier)]
        if kinds[0] != kinds[1]:
            raise SourceError(
                f"{name}.{column} must have the type of {other}.{identifier}, to which it refers, and is {kinds[0]} "
                f"instead of {kinds[1]}; convert one of them"
            )
        _refuse_repeats(policies, sources, (name, column), (other, identifier))
    for (name, column, *target), (other, key, *same) in combinations(_references(policies), 2):
        if target == same and name != other:
            _refuse_repeats(policies, sources, (name, column), (other, key))


def _refuse_repeats(
    policies: Mapping[str, Policy], sources: Mapping[str, Source], one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Refuse a column of a table that repeats one of another, whose records are found by the same identifiers."""
    known = _values(policies[other[0]], next(sources[other[0]].batches(), None), other[1])
    for mine, theirs, agreement in _agreements(policies[one[0]], sources[one[0]], one[1], known):
        if agreement > _AGREEMENT:
            raise PolicyError(
                f"{one[0]}.{mine} repeats {other[0]}.{theirs}, and two draws of noise of one value could be averaged; "
                "give it the role drop in one of the tables"
            )


def _references(policies: Mapping[str, Policy]) -> Iterator[tuple[str, str, str, str]]:
    for name, policy in policies.items():
        for column, stated in policy.columns.items():
            if "references" in stated.options:
                table, _, identifier = str(stated.options["references"]).partition(".")
                yield name, column, table, identifier


def _kind(source: Source, column: str) -> str:
    if column not in source.schema.names:
        raise SourceError(f"the table must have the column {column!r}, which another one refers to or which refers")
    kind = source.schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind):
        return "whole numbers"
    return "texts" if types.is_string(kind) or types.is_large_string(kind) else str(kind)


def _values(policy: Policy, batch: pa.RecordBatch | None, identifier: str) -> pa.Table:
    """The perturbed columns of some records, with their identifiers."""
    if batch is None:
        return pa.table({})
    return pa.Table.from_batches([batch.slice(0, _COMPARED)]).select([identifier, *_perturbed(policy, batch.schema)])


def _perturbed(policy: Policy, schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name in policy.columns and policy.columns[name].role not in PLAIN_ROLES]


def _agreements(policy: Policy, source: Source, column: str, known: pa.Table) -> Iterator[tuple[str, str, float]]:
    """How much each perturbed column agrees, record by record, with each of the table that it refers to."""
    own = _perturbed(policy, source.schema)
    if not known.num_rows or not own:
        return
    ids = known.column(0).cast(pa.string()).combine_chunks()
    parts = []
    for batch in source.batches([column, *own]):
        at = pc.index_in(batch.column(column).cast(pa.string()), value_set=ids)
        hit = pc.is_valid(at)
        parts.append(pa.Table.from_batches([batch.filter(hit)]).append_column("sfumato.at", at.filter(hit)))
        if sum(part.num_rows for part in parts) >= _COMPARED:
            break
    found = pa.concat_tables(parts) if parts else pa.table({"sfumato.at": pa.array([], pa.int32())})
    theirs = known.take(found.column("sfumato.at"))
    for mine in own:
        for other in known.column_names[1:]:
            yield mine, other, _agreement(found.column(mine), theirs.column(other))


def _agreement(first: pa.ChunkedArray, second: pa.ChunkedArray) -> float:
    """The rank correlation of two columns of numbers or times, however these are written; else their agreement."""
    values = [_numbers(one) for one in (first, second)]
    if values[0] is not None and values[1] is not None:
        both = np.isfinite(values[0]) & np.isfinite(values[1])
        ranks = [np.unique(one[both], return_inverse=True)[1] for one in values if one is not None]
        if both.sum() >= _FEWEST and all(one.std() > 0 for one in ranks):
            related: Floats = np.atleast_2d(np.corrcoef(ranks))
            if abs(related[0, -1]) > _RELATED:
                return 1.0
    return _kappa(first, second)


def _numbers(column: pa.ChunkedArray) -> Floats | None:
    """A column of numbers, of times, or of texts that are numbers; nothing for others."""
    plain = column.combine_chunks()
    plain = plain.dictionary_decode() if types.is_dictionary(plain.type) else plain
    try:
        if types.is_temporal(plain.type):
            plain = plain.cast(pa.int64() if plain.type.bit_width == 64 else pa.int32())
        found: Floats = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return found


def _kappa(first: pa.ChunkedArray, second: pa.ChunkedArray) -> float:
    """The agreement of two columns beyond that of independent ones; nothing for columns of different types."""
    try:
        pairs = pa.table({"a": first.cast(pa.string()), "b": second.cast(pa.string())}).drop_null()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return 0.0
    if not pairs.num_rows:
        return 0.0
    equal = pc.mean(pc.equal(pairs["a"], pairs["b"])).as_py()
    counts = [{one["values"]: one["counts"] for one in pc.value_counts(pairs[name]).to_pylist()} for name in "ab"]
    expected = sum(count * counts[1].get(value, 0) for value, count in counts[0].items()) / pairs.num_rows**2
    return 0.0 if np.isclose(expected, 1) else float((equal - expected) / (1 - expected))
