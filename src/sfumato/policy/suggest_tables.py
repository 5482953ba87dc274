"""Suggestions for a dataset of several tables: a draft of each, with the columns that refer to other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import PolicyError
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC
from sfumato.policy.roles import PSEUDONYM
from sfumato.policy.suggest import Examined, head
from sfumato.policy.suggested_roles import Suggestion, is_entity
from sfumato.tables.file_options import NOTHING_STATED, FileOptions

_FOUND = 0.95
"""The share of a column's values that must be identifiers of another table for it to refer to them."""

_IDENTIFIES = "identifies the records; other tables refer to it, with the same pseudonyms."
_REFERS = "refers to {}, with its pseudonyms, so that the tables can be joined."
_SHARED = " Several rows have it in common, and share a part of their noise."

References = dict[tuple[str, str], tuple[str, str]]
"""Table and column that refer, with the table and the identifier that they refer to."""


def draft_tables(
    tables: Mapping[str, Any],
    *,
    dataset: str,
    plain_noise: bool = False,
    file: FileOptions = NOTHING_STATED,
    gains: Mapping[str, Mapping[str, Sequence[float]]] = MappingProxyType({}),
) -> str:
    """The draft in TOML for the tables of a dataset, by their names.

    Args:
        tables: the tables.
        dataset: the name of the dataset.
        plain_noise: whether all columns are to have the roles `gaussian` and `uniform` rather than `copula`.
        file: how the files of the tables are to be read, where their content does not tell.
        gains: for each table, the share of columns that the best attack on a sample recovers at each level.

    """
    seen = {name: Examined.of(table, file) for name, table in tables.items()}
    refers = _references({name: one.rows for name, one in seen.items()})
    parts = []
    for name, one in seen.items():
        lines, has_id = one.lines(plain_noise, fixed=_fixed(name, one.rows, refers), gains=gains.get(name, {}))
        if not has_id:
            raise PolicyError(f"each table needs a column that identifies its records, and {name} seems to have none")
        stated = [line.replace("[file]", f"[tables.{name}.file]") for line in one.file(file)]
        parts += [f"# {name}: {one.share} rows.\n[tables.{name}.columns]\n", *lines, *stated]
    return "\n".join([head(dataset, gained=bool(gains)), *parts])


def _references(tables: Mapping[str, pa.Table]) -> References:
    """The columns that have the name of another table's identifier, and its values."""
    keys = {
        column: name
        for name, rows in reversed(list(tables.items()))
        for column in rows.column_names
        if rows.num_rows and pc.count_distinct(rows[column]).as_py() == rows.num_rows - rows[column].null_count > 1
    }
    found: References = {}
    for name, rows in tables.items():
        for column in rows.column_names:
            if keys.get(column, name) != name and _is_within(rows[column], tables[keys[column]][column]):
                found[name, column] = keys[column], column
    return found


def _is_within(values: pa.ChunkedArray, keys: pa.ChunkedArray) -> bool:
    if values.type != keys.type:
        return False
    known = pc.is_in(values.unique().drop_null(), value_set=keys.combine_chunks())
    return len(known) > 0 and pc.mean(known).as_py() >= _FOUND


def _fixed(name: str, rows: pa.Table, refers: References) -> dict[str, Suggestion]:
    """The roles of a table's columns that refer to others, or that others refer to."""
    fixed: dict[str, Suggestion] = {
        column: (IDENTIFIER, {"publish": PSEUDONYM}, _IDENTIFIES) for table, column in refers.values() if table == name
    }
    has_entity = False
    for (table, column), (other, identifier) in refers.items():
        if table != name:
            continue
        shared = not has_entity and is_entity(column, rows[column])
        has_entity |= shared
        options = {"publish": PSEUDONYM, "references": f"{other}.{identifier}"}
        reason = _REFERS.format(f"{other}.{identifier}") + (_SHARED if shared else "")
        fixed[column] = (ENTITY if shared else PUBLIC, options, reason)
    return fixed
