"""Copies in a table of Delta Lake: a Parquet file with the types that such a table has."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet
from pyarrow import types

from sfumato.errors import ReleaseError
from sfumato.release.encoders.encoder import Encoder
from sfumato.release.manifest import Manifest

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Delta Lake has no unsigned numbers."""


class DeltaFile(Encoder):
    """Writes the one file of a version; its manifest is in the commit."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = self.stored(schema)
        self._file = pyarrow.parquet.ParquetWriter(self._out, self._schema, compression="zstd", write_statistics=False)

    @staticmethod
    def stored(schema: pa.Schema) -> pa.Schema:
        """The types of a copy in a table of Delta Lake."""
        return pa.schema([pa.field(field.name, _stored_type(field)) for field in schema])

    def _write(self, batch: pa.RecordBatch) -> None:
        try:
            self._file.write_batch(batch.cast(self._schema))
        except pa.ArrowInvalid:
            raise ReleaseError(
                "Delta Lake keeps times to the microsecond, and some of the copy are finer; write another format"
            ) from None

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002 - the commit has it
        self._file.close()
        return self._out.take()


def _stored_type(field: pa.Field) -> pa.DataType:
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if types.is_time(kind) or types.is_duration(kind) or kind == pa.uint64():
        raise ReleaseError(f"Delta Lake has no type for {field.name!r}, which is {kind}; write another format")
    if types.is_date(kind):
        return pa.date32()
    return _SIGNED.get(kind, pa.float32() if types.is_float16(kind) else kind)
