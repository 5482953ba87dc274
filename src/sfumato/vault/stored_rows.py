"""Rows of a dataset as its vault stores them: their table, the hashes of their records, and the filter of their ids."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from sfumato.release.scheme import TableScheme
from sfumato.tables.source import Source
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.known_ids import store_filter
from sfumato.vault.record_changes import UNDIVIDED, write_records
from sfumato.vault.running_moments import RunningMoments
from sfumato.vault.table_parts import TablePart

Progress = Callable[[int], None]

MOMENTS = "moments"
"""The key, in the entry of a version, of the file with its running moments."""


def store_rows(
    prefix: str,
    scheme: TableScheme,
    source: Source,
    schema: pa.Schema,
    store: EncryptedStore,
    *,
    part: int = 0,
    progress: Progress | None = None,
) -> TablePart:
    """Store some rows of a table.

    Args:
        prefix: how the names of the files begin: the folder of the dataset and the number of the version.
        scheme: the scheme of the dataset.
        source: the rows.
        schema: the schema of the table.
        store: the store.
        part: the number of the part, which is 0 for the rows that a table begins with.
        progress: called with the number of rows that were stored.

    """
    rows = 0

    def write(target: Any) -> None:
        nonlocal rows
        with pyarrow.parquet.ParquetWriter(target, schema, compression="zstd", compression_level=1) as file:
            for batch in source.batches(schema.names):
                file.write_batch(batch.cast(schema))
                rows += batch.num_rows
                if progress:
                    progress(batch.num_rows)

    # errors in the table show in this first pass, before anything is stored
    records = store.put(f"{prefix}-{{}}.records", lambda file: write_records(scheme, source, file))
    table = store.put(f"{prefix}-{{}}.parquet", write)
    many = scheme.ids and rows > UNDIVIDED  # few are looked up in their records
    ids = store_filter(store, f"{prefix}-{{}}.ids", records, rows) if many else None
    return TablePart(part, rows, table, records, ids)


def store_moments(prefix: str, moments: RunningMoments | None, store: EncryptedStore) -> dict[str, Any]:
    """Store the running moments of a version, if it has some; what its entry records of them."""
    return {} if moments is None else {MOMENTS: store.put_text(f"{prefix}-{{}}.moments", moments.dumps())}


def encoded_schema(schema: pa.Schema) -> str:
    """A schema as the entry of a version records it."""
    return base64.b64encode(schema.serialize()).decode()
