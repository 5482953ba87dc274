"""Known record ids of a dataset: whether rows to be appended have ids that it has already, without reading them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet

from sfumato.errors import SourceError
from sfumato.kernels import Words
from sfumato.kernels.id_filter import Bits, empty_filter, insert, may_contain, probes
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.table_parts import StoredFile, TablePart


def store_filter(store: EncryptedStore, name: str, records: StoredFile, rows: int) -> StoredFile:
    """Store the filter of the ids in a file of record hashes."""
    bits = empty_filter(rows)
    with store.open(records) as opener, opener() as content:
        for ids in _ids(pyarrow.parquet.ParquetFile(content)):
            insert(bits, ids, probes(len(bits), rows))
    return store.put(name, lambda file: file.write(bits.tobytes()))


def ensure_new(store: EncryptedStore, parts: Sequence[TablePart], ids: Words) -> None:
    """Refuse ids of which one is in some part of a table."""
    for part in parts:
        suspect = ids
        if part.ids is not None:
            bits = _read_filter(store, part.ids)
            suspect = ids[may_contain(bits, ids, probes(len(bits), part.rows))]
        known = _known(store, part.records, suspect)
        if known.size:
            raise SourceError(
                f"rows to be appended must have new ids, and {int(known[0].astype(np.int64))} (an integer id, or the "
                f"hash of another one) occurs in the dataset already, as {known.size - 1:,} others do; leave these "
                "rows out, or state the whole table as its next version (update)"
            )


def _read_filter(store: EncryptedStore, file: StoredFile) -> Bits:
    with store.open(file) as opener, opener() as content:
        return np.frombuffer(content.read(), np.uint8)


def _known(store: EncryptedStore, records: StoredFile, suspect: Words) -> Words:
    """Those of some ids that a file of record hashes has."""
    if not suspect.size:
        return suspect
    with store.open(records) as opener, opener() as content:
        return np.concatenate([np.intersect1d(suspect, ids) for ids in _ids(pyarrow.parquet.ParquetFile(content))])


def _ids(file: Any) -> Iterator[Words]:
    for group in range(file.num_row_groups):
        yield file.read_row_group(group, columns=["record"]).column(0).to_numpy()
