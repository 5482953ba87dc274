"""Encoders of copies (Parquet, CSV, gzipped CSV, Arrow), each with the manifest inside where the format has room.

Batches go in and bytes come out, so that a copy can be written to a file or sent while it is made. The manifest ends
with the copy's row count and digest, which are known only when all rows are written. Parquet keeps its metadata at the
end, where a slot of the manifest's length is filled; an Arrow file has its schema in front too, so that slot is filled
in the finished file; an Arrow stream ends with an empty batch that carries the manifest.
"""

from __future__ import annotations

import abc
import base64
import io
import mmap
import secrets
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.errors import ReleaseError
from sfumato.release.manifest import METADATA, Manifest
from sfumato.tables.readers import BATCH

_GROUP = 16 * BATCH
"""Rows per row group of a Parquet copy."""

_NOT_IN_CSV = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)


class _Buffer(io.RawIOBase):
    """A file object that keeps what is written to it until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any) -> int:
        self._parts.append(bytes(content))
        self._at += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class Encoder(abc.ABC):
    """Takes batches of `BATCH` rows, then the finished manifest; returns the bytes of the file so far."""

    def __init__(self) -> None:
        self._out = _Buffer()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Append a batch."""
        self._write(batch)
        return self._out.take()

    @abc.abstractmethod
    def _write(self, batch: pa.RecordBatch) -> None:
        """Append a batch to the buffer."""

    @abc.abstractmethod
    def close(self, manifest: Manifest) -> bytes:
        """The end of the copy."""

    def insert_manifest(self, part: Path, manifest: Manifest) -> None:  # noqa: B027 - most formats need nothing
        """Put the manifest into a finished file, where the format has it in front."""


def encoder(file_format: str, schema: pa.Schema, draft: Manifest) -> Encoder:
    """The encoder of a format; `draft` is the manifest as far as it is known."""
    if file_format == "csv":
        return _Csv(schema)
    if file_format == "csv.gz":
        return _Gzip(schema)
    if file_format == "arrows":
        return _ArrowStream(schema)
    return _Parquet(schema, draft) if file_format == "parquet" else _Arrow(schema, draft)


class _Slot:
    """Room for a manifest in the metadata of a schema."""

    def __init__(self, draft: Manifest) -> None:
        longest = len(replace(draft.filled(2**62, []), signature="0" * 128).dumps().encode())
        self.text = secrets.token_hex(16).encode().ljust(longest)

    def filled(self, manifest: Manifest) -> bytes:
        """The manifest in the length of the slot."""
        return manifest.dumps().encode().ljust(len(self.text))


class _Parquet(Encoder):
    def __init__(self, schema: pa.Schema, draft: Manifest) -> None:
        super().__init__()
        self._slot = _Slot(draft)
        self._schema = schema.with_metadata({METADATA: self._slot.text})
        # Noise does not repeat, so a dictionary only costs; on the lattice its low bytes do, once stored together.
        noisy = [field.name for field in schema if types.is_float64(field.type)]
        self._file = pyarrow.parquet.ParquetWriter(
            self._out,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in noisy],
            column_encoding=dict.fromkeys(noisy, "BYTE_STREAM_SPLIT"),
            write_statistics=False,
        )
        self._pending: list[pa.RecordBatch] = []

    def _write(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        if len(self._pending) * BATCH >= _GROUP:
            self._flush()

    def close(self, manifest: Manifest) -> bytes:
        self._flush()
        rows = self._out.take()
        self._file.close()
        return rows + self._footer(self._out.take(), self._slot.filled(manifest))

    def _footer(self, footer: bytes, final: bytes) -> bytes:
        """All metadata are at the end: as plain text, and within the Arrow schema in base64."""
        schema = base64.b64encode(self._schema.serialize().to_pybytes())
        ours = base64.b64encode(base64.b64decode(schema).replace(self._slot.text, final))
        return footer.replace(schema, ours).replace(self._slot.text, final)

    def _flush(self) -> None:
        if self._pending:
            self._file.write_table(
                pa.Table.from_batches(self._pending).replace_schema_metadata(self._schema.metadata),
                row_group_size=_GROUP,
            )
            self._pending = []


class _Arrow(Encoder):
    """An Arrow file, which has its schema at both ends."""

    def __init__(self, schema: pa.Schema, draft: Manifest) -> None:
        super().__init__()
        self._slot = _Slot(draft)
        self._file = pyarrow.ipc.new_file(self._out, schema.with_metadata({METADATA: self._slot.text}))

    def _write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch)

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002 - it is inserted when the file is complete
        self._file.close()
        return self._out.take()

    def insert_manifest(self, part: Path, manifest: Manifest) -> None:
        final = self._slot.filled(manifest)
        with part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            for at in (content.find(self._slot.text), content.rfind(self._slot.text)):
                content[at : at + len(final)] = final


class _ArrowStream(Encoder):
    """An Arrow stream; an empty batch at its end carries the manifest, as the batch's own metadata."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._file = pyarrow.ipc.new_stream(self._out, schema)
        self._empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch)

    def close(self, manifest: Manifest) -> bytes:
        self._file.write_batch(self._empty, custom_metadata={METADATA: manifest.dumps().encode()})
        self._file.close()
        return self._out.take()


class _Csv(Encoder):
    """Text, which has no room for a manifest."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        plain = [pa.field(f.name, f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
        odd = [f.name for f in plain if any(is_odd(f.type) for is_odd in _NOT_IN_CSV)]
        if odd:
            raise ReleaseError(f"a CSV file holds no lists or bytes, and column {odd[0]!r} does; write Parquet")
        self._schema = pa.schema(plain)
        self._file = pyarrow.csv.CSVWriter(self._out, self._schema)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch.cast(self._schema))

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002
        self._file.close()
        return self._out.take()


class _Gzip(_Csv):
    """Compressed CSV: a gzip file without a time or a name, so that equal copies have equal bytes."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._press = zlib.compressobj(level=1, wbits=31)

    def write(self, batch: pa.RecordBatch) -> bytes:
        return self._press.compress(super().write(batch))

    def close(self, manifest: Manifest) -> bytes:
        return self._press.compress(super().close(manifest)) + self._press.flush()
