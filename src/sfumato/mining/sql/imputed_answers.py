"""Answers to SQL queries from plausible originals: the query is run on each, and what they say is combined.

The estimand is the answer for the original table itself, so that the tables differ by what the copy leaves open alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.estimation import REHEARSED, Rehearsal, rehearsed
from sfumato.mining.copies.imputation import Combined, combine
from sfumato.mining.copies.plausible_originals import Original, PlausibleOriginals
from sfumato.mining.sql.syntax import new_session, run
from sfumato.mining.sql.whole_query import COUNTS, WholeQuery

IMPUTATIONS = 20
"""The number of plausible originals."""

_SEEN_IN = 0.5
"""The least share of plausible originals that have a group which is shown."""

_Group = tuple[Any, ...]


def imputed_answer(
    copy: Copy,
    sql: str,
    tables: Mapping[str, pa.Table],
    confidence: float,
    *,
    random_state: int = 0,
    smooth: bool = False,
) -> pa.Table:
    """The answer to a query from plausible originals; exact where it uses no perturbed column.

    Args:
        copy: the copy.
        sql: one SELECT.
        tables: other tables that the query joins, by their names.
        confidence: the confidence level of the intervals.
        random_state: the seed of the plausible originals.
        smooth: whether columns whose special values are not stated are taken to have none where it would matter.

    """
    query = WholeQuery.of(sql, copy.column_names, list(tables))
    if not smooth:
        _refuse_unstated(copy, query)
    if all(name in copy.public_columns for name in query.columns):
        some = list(query.columns) or copy.column_names[:1]
        found, method = _Answers([_run(query, pa.concat_tables(copy.tables(some)), tables)] * 2), "exact"
    else:
        originals = PlausibleOriginals.of(copy, query.columns)
        found, method = _Answers.of(originals, random_state, lambda one: _run(query, one, tables)), "imputation"
    answer = _combined(query, found, copy.rows, confidence)
    if query.ordering is not None:
        session = new_session()
        session.register("answer", answer)
        answer = run(session, query.ordering)
    shown = [f"{name}{end}" for name in query.selected for end in ("", "_low", "_high")]
    return with_method(answer.select([name for name in shown if name in answer.column_names]), method)


def with_method(answer: pa.Table, method: str) -> pa.Table:
    """An answer that tells how it was found."""
    return answer.replace_schema_metadata({"method": method})


def _refuse_unstated(copy: Copy, query: WholeQuery) -> None:
    """Refuse to compare noisy values of which many may be the same: no model tells on which side of an end they are."""
    for name in query.compared:
        model = copy.noise_model(name)
        if model is not None and model.special_values(name) is None:
            raise MiningError(
                f"many records may share one value of {name!r}, at which an answer would be wrong, and the owner does "
                "not state it (`special` in the policy); if none is near the values that you compare with, ask again "
                "with the method imputation"
            )


def _run(query: WholeQuery, table: Original, tables: Mapping[str, pa.Table]) -> pa.Table:
    session = new_session()
    for name, other in tables.items():
        session.register(name, other)
    session.register(query.alias, table)
    return run(session, query.sql)


@dataclass(frozen=True)
class _Answers:
    """The answers of plausible originals, and of rehearsals."""

    found: list[pa.Table]
    rehearsals: list[Rehearsal[pa.Table]] = field(default_factory=list)
    scale: float = 1.0
    """How many times as many records the copy has as a rehearsal."""

    @classmethod
    def of(cls, originals: PlausibleOriginals, random_state: int, work: Callable[[Any], pa.Table]) -> _Answers:
        scale = max(originals.copy.rows / REHEARSED, 1.0)
        return cls(*rehearsed(originals, IMPUTATIONS, random_state, work, REHEARSED), scale)

    def biases(self, query: WholeQuery, name: str, groups: list[_Group], estimates: Floats, empty: float) -> Floats:
        """By how much the rehearsals were off for each group, as for as many records as the copy has."""
        off, truths = [], []
        for one in self.rehearsals:
            tables = [one.truth, *one.answers]
            values = _found(tables, [_groups(query, table) for table in tables], groups, name, empty)
            off.append(values[1:].mean(axis=0) - values[0])
            truths.append(values[0])
        known = np.where(np.isnan(off), np.nan_to_num(_mean_of_known(np.array(off))), off)
        truth = _mean_of_known(np.array(truths))
        grows = np.abs(truth * self.scale - estimates) < np.abs(truth - estimates)  # as counts do with the records
        return np.asarray(known * np.where(grows, self.scale, 1.0), np.float64)


def _mean_of_known(values: Floats) -> Floats:
    """The mean of each column without what is not known; NaN where nothing is."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return means


def _combined(query: WholeQuery, answers: _Answers, rows: int, confidence: float) -> pa.Table:
    """The groups that most answers have, and every estimate with its interval."""
    keys = [_groups(query, answer) for answer in answers.found]
    groups, schema = _usual_groups(query, keys), answers.found[0].schema
    columns: dict[str, Any] = {}
    for i, name in enumerate(query.keys):
        columns[name] = pa.array([group[i] for group in groups], schema.field(name).type)
    for name, function in query.values.items():
        empty = 0.0 if function in {*COUNTS, "sum"} else np.nan
        found = _found(answers.found, keys, groups, name, empty)
        biases = answers.biases(query, name, groups, found.mean(axis=0), empty) if answers.rehearsals else ()
        limits = (0.0, float(rows)) if function in COUNTS else None
        columns |= _estimates(name, combine(found, None, confidence, biases), limits, schema.field(name).type)
    ordered = [f"{name}{end}" for name in (*query.selected, *query.values) for end in ("", "_low", "_high")]
    return pa.table({name: columns[name] for name in dict.fromkeys(ordered) if name in columns})


def _usual_groups(query: WholeQuery, keys: list[list[_Group]]) -> list[_Group]:
    """The groups that most answers have."""
    seen = Counter(group for part in keys for group in part)
    groups = sorted((one for one, count in seen.items() if count >= _SEEN_IN * len(keys)), key=_order)
    if seen and not groups:
        raise MiningError(
            "groups must be in most plausible originals, and none is: noisy numbers form no groups by themselves; "
            f"group by ranges of {' or '.join(query.keys)}, as in floor(age / 10)"
        )
    return groups


def _found(answers: list[pa.Table], keys: list[list[_Group]], groups: list[_Group], name: str, empty: float) -> Floats:
    """What each answer says of each group."""
    lines = [_numbers(answer, name, own) for answer, own in zip(answers, keys, strict=True)]
    return np.array([[line.get(group, empty) for group in groups] for line in lines])


def _groups(query: WholeQuery, answer: pa.Table) -> list[_Group]:
    if not query.keys:
        return [()] * answer.num_rows
    return list(zip(*(answer.column(name).to_pylist() for name in query.keys), strict=True))


def _order(group: _Group) -> list[tuple[bool, Any]]:
    return [(value is None, 0 if value is None else value) for value in group]


def _numbers(answer: pa.Table, name: str, groups: list[_Group]) -> dict[_Group, float]:
    """The number of each group in a column of an answer; times in the unit of their type."""
    column = answer.column(name).combine_chunks()
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    try:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise MiningError(
            f"{name} must be a number or a time to be estimated, got {kind}; use GROUP BY for it"
        ) from None
    return dict(zip(groups, values.tolist(), strict=True))


def _estimates(
    name: str, combined: Combined, limits: tuple[float, float] | None, kind: pa.DataType
) -> dict[str, pa.Array]:
    """One estimate per group, with the ends of its interval; unknown where some original has none."""
    out = {}
    for end, found_end in (("", combined.estimate), ("_low", combined.low), ("_high", combined.high)):
        values = found_end if limits is None else np.clip(found_end, *limits)
        array = pa.array(values, from_pandas=True)
        if pa.types.is_temporal(kind):
            array = pa.array(np.rint(np.nan_to_num(values)), mask=np.isnan(values)).cast(pa.int64())
            array = array.cast(pa.int32()).cast(kind) if kind.bit_width == 32 else array.cast(kind)
        out[f"{name}{end}"] = array
    return out
