"""Content digests: a hash of a copy's values that does not depend on file format, batches or widths of types.

A hash over the digests of the batches of `tables.readers.BATCH` rows, each over the columns' names, kinds, nulls and
values. Batches are hashed where they are made, in parallel. The hash is BLAKE3, which a digest names; one without a
name is of SHA-256, as copies had until version 0.3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

BLAKE3, SHA256 = "blake3", "sha256"
"""The hashes, by their names."""

_DIGEST = re.compile(r"((?P<blake3>blake3:)?[0-9a-f]{64})?")


def of_batch(batch: pa.RecordBatch, algorithm: str = BLAKE3) -> bytes:
    """The digest of one batch."""
    digest = _hash(algorithm)
    for field, array in zip(batch.schema, batch.columns, strict=True):
        plain = _widest(array.dictionary_decode() if types.is_dictionary(array.type) else array)
        digest.update(f"{field.name}\0{_kind(plain.type)}\0{len(plain)}\0{plain.null_count}\0".encode())
        if plain.null_count:
            digest.update(np.packbits(plain.is_valid().to_numpy(zero_copy_only=False)).tobytes())
            plain = plain.drop_null()
        for part in _bytes(plain):
            digest.update(part)
    found: bytes = digest.digest()
    return found


def of_batches(digests: Iterable[bytes], algorithm: str = BLAKE3) -> str:
    """The digest of a copy, from the digests of its batches."""
    found = _hash(algorithm)
    found.update(b"".join(digests))
    return found.hexdigest() if algorithm == SHA256 else f"{algorithm}:{found.hexdigest()}"


def algorithm_of(digest: str) -> str:
    """The hash that a digest is of, an empty one included; `ValueError` if it is no digest, or of another hash."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ValueError(f"the digest of a copy must be of {BLAKE3} or {SHA256}, got {digest!r}")
    return BLAKE3 if found["blake3"] else SHA256


def as_bytes(digest: str) -> bytes:
    """The bytes of a digest, without the name of its hash."""
    return bytes.fromhex(digest.rpartition(":")[2])


def _hash(algorithm: str) -> Any:
    if algorithm == SHA256:
        return hashlib.sha256()
    from blake3 import blake3  # noqa: PLC0415 - most commands make and read no copy

    return blake3()


def _widest(array: pa.Array) -> pa.Array:
    """The column in the widest type of its kind, since a file format may not keep the width."""
    kind = array.type
    if types.is_float64(kind) or types.is_int64(kind) or types.is_nested(kind):
        return array
    if types.is_floating(kind):
        return array.cast(pa.float64())
    if types.is_boolean(kind) or (types.is_integer(kind) and not types.is_uint64(kind)):
        return array.cast(pa.int64())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    if types.is_null(kind):
        return pa.nulls(len(array), pa.large_string())
    if types.is_date64(kind) or types.is_time(kind):
        array = array.cast(pa.date32() if types.is_date64(kind) else pa.time64("ns"))
    return array.cast(pa.large_string())


def _kind(kind: pa.DataType) -> str:
    return "nested" if types.is_nested(kind) else str(kind)


def _bytes(array: pa.Array) -> Iterable[memoryview | bytes]:
    """The values of a column without nulls, as bytes that do not depend on its offset in memory."""
    if not len(array):
        return []
    if types.is_nested(array.type):
        return [repr(array.to_pylist()).encode()]
    if types.is_primitive(array.type):
        return [memoryview(array.buffers()[1])[array.offset * 8 : (array.offset + len(array)) * 8]]
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = memoryview(data)[bounds[0] : bounds[-1]] if data is not None else b""
    return [np.diff(bounds).tobytes(), content]
