"""Copies as text: CSV in the dialect of the original, compressed or not, and JSON lines."""

from __future__ import annotations

import codecs
import json
import zlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow import types

from sfumato.errors import ReleaseError
from sfumato.release.encoders.encoder import Encoder
from sfumato.release.manifest import Manifest
from sfumato.tables.cell_text import quoted, write_cells
from sfumato.tables.dialect import Dialect

_NOT_IN_TEXT = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)


def _plain(schema: pa.Schema, what: str) -> pa.Schema:
    """The columns without dictionaries; refuses those that text cannot hold."""
    plain = [pa.field(f.name, f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
    odd = [f.name for f in plain if any(is_odd(f.type) for is_odd in _NOT_IN_TEXT)]
    if odd:
        raise ReleaseError(f"a {what} file holds no lists or bytes, and column {odd[0]!r} does; write Parquet")
    return pa.schema(plain)


class Csv(Encoder):
    """Plain CSV, which has no room for a manifest."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = _plain(schema, "CSV")
        self._file = pyarrow.csv.CSVWriter(self._out, self._schema)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch.cast(self._schema))

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002
        self._file.close()
        return self._out.take()


class DialectCsv(Encoder):
    """CSV as the original was written: separators, decimal signs, dates, words for missing values, encoding."""

    def __init__(self, schema: pa.Schema, dialect: Dialect) -> None:
        super().__init__()
        self._schema, self._dialect = _plain(schema, "CSV"), dialect
        names = pa.array(schema.names)
        head = quoted(dialect, "", names, pa.string()).to_pylist()
        self._codec = codecs.getincrementalencoder(dialect.encoding)()
        self._put(dialect.separator.join(head) + dialect.newline)

    def _write(self, batch: pa.RecordBatch) -> None:
        dialect = self._dialect
        cells = [
            quoted(dialect, field.name, write_cells(dialect, field.name, column), field.type)
            for field, column in zip(self._schema, batch.cast(self._schema).columns, strict=True)
        ]
        lines = pc.binary_join_element_wise(*cells, pa.scalar(dialect.separator))
        self._put("".join(line + dialect.newline for line in lines.to_pylist()))

    def _put(self, text: str) -> None:
        """Append text; an encoder puts the signature of the byte order, where there is one, at the start alone."""
        try:
            self._out.write(self._codec.encode(text))
        except UnicodeEncodeError as error:
            raise ReleaseError(
                f"a copy is written in the encoding of the original, {self._dialect.encoding}, which has no "
                f"{error.object[error.start : error.end]!r}; write Parquet, or state `encoding` in [file] of the policy"
            ) from None

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002
        return self._out.take()


class Gzip(Encoder):
    """A compressed file without a time or a name, so that equal copies have equal bytes."""

    def __init__(self, content: Encoder) -> None:
        super().__init__()
        self._content = content
        self._press = zlib.compressobj(level=1, wbits=31)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._out.write(self._press.compress(self._content.write(batch)))

    def close(self, manifest: Manifest) -> bytes:
        rest = self._press.compress(self._content.close(manifest)) + self._press.flush()
        return self._out.take() + rest


class JsonLines(Encoder):
    """An object on each line; dates, times and decimals are texts."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = _plain(schema, "JSON")

    def _write(self, batch: pa.RecordBatch) -> None:
        lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in batch.to_pylist())
        self._out.write("".join(lines).encode())

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002
        return self._out.take()
