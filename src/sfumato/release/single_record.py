"""Single records: their copies without the arrays of batches, from lanes that are ready, with the same bits."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.keys.key import Key
from sfumato.keys.stream import Lane
from sfumato.levels import Level
from sfumato.mechanisms._single_records import Unusual, record_id
from sfumato.release.layout import TableLayout

_WORD = (1 << 64) - 1

ColumnType = tuple[str, Any, tuple[int, int] | None]
"""A column, the type that its values have outside of a batch, and the ends of whole numbers."""


class SingleRecord:
    """Perturbs one record after the other without arrays. It must not be shared between threads."""

    def __init__(
        self,
        types_of: Sequence[ColumnType],
        parts: Sequence[tuple[tuple[str, ...], Callable[[int, Sequence[Any]], list[Any]]]],
        names: Sequence[str],
    ) -> None:
        self._types, self._parts, self._names = types_of, parts, names
        self._read = {name for columns, _ in parts for name in columns} | set(names)

    @classmethod
    def of(cls, layout: TableLayout, source: pa.Schema, level: Level, key: Key) -> SingleRecord | None:
        """Nothing where some column needs the code for batches."""
        secret, shown = layout.table_key(key), layout.schema(source).names
        parts = [(scheme.columns, scheme.single_record(source, level, secret)) for scheme in layout.schemes]
        found = [(columns, one) for columns, one in parts if one is not None]
        typed = _types_of(layout, source)
        hidden = layout.view.where is not None or any(map(layout.has_pseudonyms, shown))
        if typed is None or len(found) < len(parts) or hidden:
            return None
        return cls(typed, found, shown)

    @classmethod
    def remembered(cls, layout: TableLayout, source: pa.Schema, level: Level, key: Key) -> SingleRecord | None:
        """The same, which the key remembers for each thread, as long as it lives itself."""
        purpose = ("single record", threading.get_ident(), id(layout), level.fidelity, source.serialize().to_pybytes())
        owner, found = key.prepared(purpose, lambda: (weakref.ref(layout), cls.of(layout, source, level, key)))
        if owner() is not layout:  # another one that was at the same address in memory
            return cls.of(layout, source, level, key)
        return found

    def check(self, values: Mapping[str, Any]) -> None:
        """Leave a record that has values of other types to the code for batches."""
        for name, kind, ends in self._types:
            value: Any = values[name]
            if value is None:
                continue
            if type(value) is not kind or (ends is not None and not ends[0] <= value <= ends[1]):
                raise Unusual
            if kind is str and not value.isascii():
                _text(value)

    def __call__(self, record: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """The copy of a record of this id, by the names of its columns."""
        found = dict(values)
        for columns, perturb in self._parts:
            found.update(zip(columns, perturb(record, [values[name] for name in columns]), strict=True))
        return {name: found[name] for name in self._names}

    def of_batch(self, record: int, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """The copy of a batch of one row, as a batch of this schema."""
        copy = self(record, {name: batch.column(name)[0].as_py() for name in self._read})
        try:
            arrays = [pa.array([copy[one.name]], one.type) for one in schema]
        except (OverflowError, pa.ArrowException):
            raise Unusual from None  # which the code for batches refuses
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _types_of(layout: TableLayout, source: pa.Schema) -> list[ColumnType] | None:
    """The types of the columns that are looked at; nothing where one of them has none outside of a batch."""
    perturbed = {name for scheme in layout.schemes for name in scheme.columns}
    used = perturbed | set(layout.schema(source).names) | set(layout.ids)
    typed = [(name, *_python_type(source.field(name).type)) for name in source.names if name in used]
    found = [(name, kind, ends) for name, kind, ends in typed if kind is not None]
    return found if len(found) == len(typed) else None


def identifier(layout: TableLayout, source: pa.Schema, secret: Key) -> Callable[[Mapping[str, Any]], int] | None:
    """The id of a record from its values; nothing for ids that are neither whole numbers nor texts."""
    names, kinds = layout.ids, [source.field(name).type for name in layout.ids]
    if len(names) == 1 and types.is_integer(kinds[0]):
        return lambda values: _whole(values[names[0]]) & _WORD
    if not all(types.is_string(kind) for kind in kinds):
        return None
    lane = Lane(secret.derive("identity", *names))
    return lambda values: record_id(lane, [_text(values[name]) for name in names])


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise Unusual
    return value


def _text(value: Any) -> bytes:
    if type(value) is not str:
        raise Unusual
    try:
        return value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no table can hold
        raise Unusual from None


def _python_type(kind: pa.DataType) -> tuple[type[Any] | None, tuple[int, int] | None]:
    """The type that values of a column have outside of a batch, and the ends of whole numbers; none for other types."""
    if types.is_integer(kind):
        bits = kind.bit_width
        ends = (0, 2**bits - 1) if types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return int, ends
    found = [one for test, one in _PYTHON if test(kind)]
    return (found[0] if found else None), None


_PYTHON = ((types.is_string, str), (types.is_float64, float), (types.is_boolean, bool))
