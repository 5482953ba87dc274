"""Writing copies: one writer a format, each with the manifest inside the file where the format has room for it.

The manifest ends with the copy's row count and digest, which are known only when all rows are written. Parquet keeps
its metadata at the end of the file. An Arrow file keeps it at the beginning, so a slot is held free and filled at last.
"""

from __future__ import annotations

import abc
import mmap
import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.release.manifest import METADATA, Manifest
from sfumato.schema.table import BATCH, format_of

_GROUP = 16 * BATCH
"""Rows a row group of a Parquet copy."""


class Writer(abc.ABC):
    """Takes batches of `BATCH` rows, then the finished manifest."""

    @abc.abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""

    @abc.abstractmethod
    def close(self, manifest: Manifest | None) -> None:
        """Finish the file; without a manifest, give it up."""


def writer(target: Path, part: Path, schema: pa.Schema, draft: Manifest) -> Writer:
    """The writer for a target's format, into the file `part`; `draft` is the manifest as far as it is known."""
    kind = format_of(target)
    if kind == "parquet":
        return _Parquet(part, schema)
    return _Arrow(part, schema, draft) if kind == "arrow" else _Csv(part, schema)


class _Parquet(Writer):
    def __init__(self, part: Path, schema: pa.Schema) -> None:
        # Noise does not repeat, so a dictionary only costs; on the lattice its low bytes do, once they lie together.
        noisy = [field.name for field in schema if types.is_float64(field.type)]
        self._file = pyarrow.parquet.ParquetWriter(
            part,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in noisy],
            column_encoding=dict.fromkeys(noisy, "BYTE_STREAM_SPLIT"),
            write_statistics=False,
        )
        self._held: list[pa.RecordBatch] = []
        self._schema = schema

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        if len(self._held) * BATCH >= _GROUP:
            self._flush()

    def close(self, manifest: Manifest | None) -> None:
        if manifest is not None:
            self._flush()
            self._file.add_key_value_metadata({METADATA: manifest.dumps()})
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            self._file.write_table(pa.Table.from_batches(self._held, self._schema), row_group_size=_GROUP)
            self._held = []


class _Arrow(Writer):
    def __init__(self, part: Path, schema: pa.Schema, draft: Manifest) -> None:
        longest = len(draft.filled(2**62, []).dumps().encode())
        self._slot = secrets.token_hex(16).encode().ljust(longest)
        self._part = part
        self._file = pyarrow.ipc.new_file(str(part), schema.with_metadata({METADATA: self._slot}))

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch)

    def close(self, manifest: Manifest | None) -> None:
        self._file.close()
        if manifest is not None:
            with self._part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
                at = content.find(self._slot)  # once at the head, once in the footer
                while at >= 0:
                    content[at : at + len(self._slot)] = manifest.dumps().encode().ljust(len(self._slot))
                    at = content.find(self._slot, at + len(self._slot))


class _Csv(Writer):
    def __init__(self, part: Path, schema: pa.Schema) -> None:
        plain = [pa.field(f.name, f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
        self._schema = pa.schema(plain)
        self._file = pyarrow.csv.CSVWriter(str(part), self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch.cast(self._schema))

    def close(self, manifest: Manifest | None) -> None:  # noqa: ARG002 - a CSV file has no room for it
        self._file.close()
