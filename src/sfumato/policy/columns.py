"""Checks of a table's columns against its policy, and how a copy shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import PolicyError, SourceError, nearest
from sfumato.policy.document import PolicyDocument
from sfumato.policy.roles import DROP, PLAIN_ROLES


def fields_by_source(columns: Sequence[str], fields: list[pa.Field], source: pa.Schema) -> dict[str, list[pa.Field]]:
    """The fields of a copy by the column of the source that they replace; renamed ones all replace the first."""
    if [field.name for field in fields] == list(columns):
        return {field.name: [field] for field in fields}
    first = min(columns, key=source.names.index)
    return {name: fields if name == first else [] for name in columns}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a public column in a copy: dictionaries are decoded."""
    return kind.value_type if types.is_dictionary(kind) else kind


def without_buffers(array: pa.Array) -> pa.Array:
    """A public column without what only its buffers show: values under nulls, and dictionary entries of no row."""
    array = array.dictionary_decode() if types.is_dictionary(array.type) else array
    return array.take(pa.array(np.arange(len(array)))) if array.null_count else array


def check_columns(policy: PolicyDocument, schema: pa.Schema) -> None:
    """Refuse a table that lacks a column of the policy, or has one that the policy does not mention."""
    for name, column in policy.columns.items():
        if name not in schema.names and column.role != DROP:
            raise SourceError(f"the table must have the policy's column {name!r}; {nearest(name, schema.names)}")
    if all(_is_hidden(policy, name) for name in schema.names):
        raise PolicyError(
            "a copy must show at least one column, and the policy drops or hides all of them; give one another role"
        )
    unknown = [name for name in schema.names if name not in policy.columns]
    if unknown and policy.default is None:
        raise PolicyError(
            f"the policy must give every column a role, and does not mention {', '.join(map(repr, unknown))}; give "
            f'each a role, or set `default = "{DROP}"`'
        )
    _check_read(policy)


def _check_read(policy: PolicyDocument) -> None:
    """Refuse a role for a column that is read for the noise of another one, and must never be shown."""
    readers = Counter(name for mechanism in policy.mechanisms() for name in mechanism.columns)
    for name, count in readers.items():
        column = policy.columns.get(name)
        role = policy.default if column is None else column.role
        if count > 1 or (role in PLAIN_ROLES and role != DROP):
            raise PolicyError(
                f"column {name!r} is what was released earlier of another one: it is read, and must not be shown; "
                f'write `{name} = "{DROP}"`'
            )


def _is_hidden(policy: PolicyDocument, name: str) -> bool:
    """Whether no copy shows a column: one that is dropped, or an id that is not published."""
    column = policy.columns.get(name)
    return policy.default == DROP if column is None else column.role == DROP or column.options.get("publish") is False
