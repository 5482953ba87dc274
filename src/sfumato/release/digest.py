"""The content digest of a copy: of its values, whatever file format or batches they lie in.

SHA-256 over the digests of the batches of `schema.table.BATCH` rows, each over the columns' names, types, nulls and
values. Batches are digested where they are made, in parallel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from pyarrow import types


def of_batch(batch: pa.RecordBatch) -> bytes:
    """The digest of one batch."""
    digest = hashlib.sha256()
    for field, array in zip(batch.schema, batch.columns, strict=True):
        plain = array.dictionary_decode() if types.is_dictionary(array.type) else array
        digest.update(f"{field.name}\0{plain.type}\0{len(plain)}\0{plain.null_count}\0".encode())
        if plain.null_count:
            digest.update(np.packbits(plain.is_valid().to_numpy(zero_copy_only=False)).tobytes())
            plain = plain.drop_null()
        for part in _bytes(plain):
            digest.update(part)
    return digest.digest()


def of_batches(digests: Iterable[bytes]) -> str:
    """The digest of a copy, from those of its batches."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _bytes(array: pa.Array) -> Iterable[memoryview | bytes]:
    """The values of a column without nulls, as bytes that do not depend on where it lies in memory."""
    kind = array.type
    if types.is_boolean(kind):
        array = array.cast(pa.uint8())
        kind = array.type
    if types.is_nested(kind) or types.is_null(kind):
        return [repr(array.to_pylist()).encode()]
    if types.is_primitive(kind) or types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        width = kind.bit_width // 8
        held = array.buffers()[1]
        return [memoryview(held)[array.offset * width : (array.offset + len(array)) * width]] if len(array) else []
    if not types.is_binary(kind) and not types.is_large_binary(kind):
        array = array.cast(pa.large_string())
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1] if len(array) else None
    if bounds is None:
        return []
    content = memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""
    return [np.diff(bounds).tobytes(), content]
