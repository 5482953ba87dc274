"""Copies in a database: rows of a table that replaces an earlier one of its name when its transaction is committed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.release.encoders.encoder import Encoder
from sfumato.release.manifest import Manifest
from sfumato.tables.database import ROW, DatabaseTable, write_manifest


class DatabaseCopy(Encoder):
    """Writes rows, each with its number, since a database has no order of its own; no bytes come out."""

    def __init__(self, schema: pa.Schema, address: DatabaseTable, cursor: Any) -> None:
        super().__init__()
        fields = [pa.field(f.name, f.type.value_type if types.is_dictionary(f.type) else f.type) for f in schema]
        self._schema, self._address, self._cursor, self._rows = pa.schema(fields), address, cursor, 0
        cursor.execute(f"DROP TABLE IF EXISTS {address.quoted}")
        self._ingest(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in fields], schema=self._schema), "create")

    def _write(self, batch: pa.RecordBatch) -> None:
        self._ingest(batch.cast(self._schema), "append")

    def _ingest(self, batch: pa.RecordBatch, mode: str) -> None:
        numbers = pa.array(np.arange(self._rows, self._rows + batch.num_rows))
        self._rows += batch.num_rows
        *schema, name = self._address.name.split(".")
        where = {"db_schema_name": schema[0]} if schema else {}
        self._cursor.adbc_ingest(name, batch.append_column(ROW, numbers), mode=mode, **where)

    def close(self, manifest: Manifest) -> bytes:
        write_manifest(self._address, self._cursor, manifest.dumps())
        return b""
