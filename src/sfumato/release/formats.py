"""Writing copies: one writer a format, each with the manifest inside the file where the format has room for it.

The manifest ends with the copy's row count and digest, which are known only when all rows are written, but a file's
schema is written first. So the schema carries a slot of the manifest's length, which is filled at last.
"""

from __future__ import annotations

import abc
import base64
import mmap
import secrets
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from pyarrow import types

from sfumato.errors import ReleaseError
from sfumato.release.manifest import METADATA, Manifest
from sfumato.schema.table import BATCH, format_of

_GROUP = 16 * BATCH
"""Rows a row group of a Parquet copy."""


_NOT_IN_CSV = (types.is_nested, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)


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
        return _Parquet(part, schema, draft)
    return _Arrow(part, schema, draft) if kind == "arrow" else _Csv(part, schema)


class _Slot:
    """Room for a manifest in the metadata of a schema."""

    def __init__(self, draft: Manifest) -> None:
        longest = len(replace(draft.filled(2**62, []), signature="0" * 128).dumps().encode())
        self.text = secrets.token_hex(16).encode().ljust(longest)

    def fill(self, part: Path, manifest: Manifest) -> None:
        """Put the manifest into a finished file."""
        final = manifest.dumps().encode().ljust(len(self.text))
        with part.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
            if content[:4] == b"PAR1":  # beside the plain text, Parquet keeps the Arrow schema in base64
                held = pyarrow.parquet.read_metadata(part).metadata[b"ARROW:schema"]
                _overwrite(content, held, base64.b64encode(base64.b64decode(held).replace(self.text, final)))
            else:  # an Arrow file has its schema at both ends
                _overwrite(content, self.text, final, at=content.find(self.text))
            _overwrite(content, self.text, final)


def _overwrite(content: mmap.mmap, old: bytes, new: bytes, at: int | None = None) -> None:
    """Replace the last occurrence, or the one at a place, by as many bytes."""
    at = content.rfind(old) if at is None else at
    content[at : at + len(old)] = new


class _Parquet(Writer):
    def __init__(self, part: Path, schema: pa.Schema, draft: Manifest) -> None:
        self._part, self._slot = part, _Slot(draft)
        self._schema = schema.with_metadata({METADATA: self._slot.text})
        # Noise does not repeat, so a dictionary only costs; on the lattice its low bytes do, once they lie together.
        noisy = [field.name for field in schema if types.is_float64(field.type)]
        self._file = pyarrow.parquet.ParquetWriter(
            part,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in schema.names if name not in noisy],
            column_encoding=dict.fromkeys(noisy, "BYTE_STREAM_SPLIT"),
            write_statistics=False,
        )
        self._held: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        if len(self._held) * BATCH >= _GROUP:
            self._flush()

    def close(self, manifest: Manifest | None) -> None:
        if manifest is not None:
            self._flush()
        self._file.close()
        if manifest is not None:
            self._slot.fill(self._part, manifest)

    def _flush(self) -> None:
        if self._held:
            self._file.write_table(
                pa.Table.from_batches(self._held).replace_schema_metadata(self._schema.metadata), row_group_size=_GROUP
            )
            self._held = []


class _Arrow(Writer):
    def __init__(self, part: Path, schema: pa.Schema, draft: Manifest) -> None:
        self._part, self._slot = part, _Slot(draft)
        self._file = pyarrow.ipc.new_file(str(part), schema.with_metadata({METADATA: self._slot.text}))

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch)

    def close(self, manifest: Manifest | None) -> None:
        self._file.close()
        if manifest is not None:
            self._slot.fill(self._part, manifest)


class _Csv(Writer):
    def __init__(self, part: Path, schema: pa.Schema) -> None:
        plain = [pa.field(f.name, f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
        odd = [f.name for f in plain if any(is_odd(f.type) for is_odd in _NOT_IN_CSV)]
        if odd:
            raise ReleaseError(f"a CSV file holds no lists or bytes, and column {odd[0]!r} does; write Parquet")
        self._schema = pa.schema(plain)
        self._file = pyarrow.csv.CSVWriter(str(part), self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write_batch(batch.cast(self._schema))

    def close(self, manifest: Manifest | None) -> None:  # noqa: ARG002 - a CSV file has no room for it
        self._file.close()
