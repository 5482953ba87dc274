"""The columns of a table and of its copies: which there must be, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import PolicyError, SourceError, nearest
from sfumato.policy.document import Policy


def in_place(columns: Sequence[str], fields: list[pa.Field], source: pa.Schema) -> dict[str, list[pa.Field]]:
    """The fields of a copy by the column of the source in whose place they stand; all in the first, if renamed."""
    if [field.name for field in fields] == list(columns):
        return {field.name: [field] for field in fields}
    first = min(columns, key=source.names.index)
    return {name: fields if name == first else [] for name in columns}


def bare_type(kind: pa.DataType) -> pa.DataType:
    """The type of a public column in a copy."""
    return kind.value_type if types.is_dictionary(kind) else kind


def bare(array: pa.Array) -> pa.Array:
    """A public column without what only its buffers show: values under nulls, and entries that no row uses."""
    array = array.dictionary_decode() if types.is_dictionary(array.type) else array
    return array.take(pa.array(np.arange(len(array)))) if array.null_count else array


def check_columns(policy: Policy, schema: pa.Schema) -> None:
    """Refuse a table that lacks a column of the policy, or has one that the policy does not speak of."""
    for name, column in policy.columns.items():
        if name not in schema.names and column.role != "drop":
            raise SourceError(f"the table must have the policy's column {name!r}; {nearest(name, schema.names)}")
    strange = [name for name in schema.names if name not in policy.columns]
    if strange and policy.default is None:
        raise PolicyError(
            f"the policy must say what becomes of every column, and is silent on {', '.join(map(repr, strange))}; give "
            'each a role, or set `default = "drop"`'
        )
