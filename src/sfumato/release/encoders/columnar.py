"""Columnar copies: Parquet and Arrow, with the manifest inside, and ORC.

The manifest ends with the copy's row count and digest, which are known only when all rows are written. Parquet keeps
its metadata at the end, where a slot of the manifest's length is filled; an Arrow file has its schema in front too, so
that slot is filled in the finished file; an Arrow stream ends with an empty batch that carries the manifest.
"""

from __future__ import annotations

import base64
import mmap
import secrets
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.release.encoders.encoder import Encoder
from sfumato.release.manifest import METADATA, Manifest
from sfumato.tables.formats import BATCH

_GROUP = 16 * BATCH
"""Rows per row group of a Parquet copy."""


class _Slot:
    """Room for a manifest in the metadata of a schema."""

    def __init__(self, draft: Manifest) -> None:
        longest = len(replace(draft.filled(2**62, []), signature="0" * 128).dumps().encode())
        self.text = secrets.token_hex(16).encode().ljust(longest)

    def filled(self, manifest: Manifest) -> bytes:
        """The manifest in the length of the slot."""
        return manifest.dumps().encode().ljust(len(self.text))


class Parquet(Encoder):
    """A Parquet file, which has its metadata at the end."""

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


class Arrow(Encoder):
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


class ArrowStream(Encoder):
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


class Orc(Encoder):
    """An ORC file; it has no room for a manifest that we could fill."""

    def __init__(self, schema: pa.Schema) -> None:
        from pyarrow import orc  # noqa: PLC0415 - few need it, and it takes a while

        super().__init__()
        plain = [f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
        self._schema = pa.schema(plain)
        self._file = orc.ORCWriter(pa.PythonFile(self._out, mode="w"), compression="zstd")

    def _write(self, batch: pa.RecordBatch) -> None:
        self._file.write(pa.Table.from_batches([batch.cast(self._schema)]))

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002
        self._file.close()
        return self._out.take()
