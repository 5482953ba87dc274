"""Record ids: 64 bits that identify a record for ever, in whichever row it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.kernels import Rows, Words
from sfumato.kernels.compiled import njit
from sfumato.keys.key import Key
from sfumato.keys.stream import Lane

Bytes = npt.NDArray[np.uint8]


def record_ids(batch: pa.RecordBatch, columns: tuple[str, ...], row_numbers: Words, key: Key) -> Words:
    """The ids of the rows of a batch.

    One integer column is used as it is; other types, and several columns together, through a keyed hash; without
    columns the id is the row's number.
    """
    if not columns:
        return row_numbers
    for name in columns:
        if batch.column(name).null_count:
            raise SourceError(f"every record must have an id, and column {name!r} has nulls; fill or drop those rows")
    only = batch.column(columns[0])
    if len(columns) == 1 and types.is_integer(only.type):
        wide = pa.uint64() if types.is_uint64(only.type) else pa.int64()
        ids: Words = only.cast(wide).to_numpy(zero_copy_only=False).view(np.uint64)
        return ids
    lane = Lane(key.derive("identity", *columns))
    state = np.zeros(2 * batch.num_rows, np.uint64)
    for name in columns:
        state = _absorb(state, _text(batch.column(name), name), lane)
    return np.ascontiguousarray(state[::2])


def hashed(batch: pa.RecordBatch, columns: Sequence[str], key: Key) -> Words:
    """A keyed hash of some columns of each row, of any type, nulls included."""
    lane = Lane(key.derive("hashed"))
    state = np.zeros(2 * batch.num_rows, np.uint64)
    for name in columns:
        array = batch.column(name)
        try:
            texts = _text(array, name)
        except SourceError:  # lists, structures
            texts = pa.array([repr(value).encode() for value in array.to_pylist()], pa.large_binary())
        state[1::2] ^= np.asarray(array.is_null()).astype(np.uint64)
        state = _absorb(state, texts.fill_null(b""), lane)
    return np.ascontiguousarray(state[::2])


def _text(array: pa.Array, name: str) -> pa.Array:
    """The column as byte strings with 64-bit offsets."""
    try:
        plain = array.dictionary_decode() if types.is_dictionary(array.type) else array
        if not types.is_binary(plain.type) and not types.is_large_binary(plain.type):
            plain = plain.cast(pa.large_string())
        return plain.cast(pa.large_binary())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise SourceError(f"an id must be a number, a text or a time, and column {name!r} holds {array.type}") from None


def _absorb(state: Words, texts: pa.Array, lane: Lane) -> Words:
    """CBC-MAC over each row's length and bytes; the length comes first, so that no text is a prefix of another."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    lengths = np.diff(bounds)
    state = state.copy()
    state[::2] ^= lengths.view(np.uint64)
    state = lane.bits(state)
    rows = np.flatnonzero(lengths > 0)
    block = 0
    while rows.size:
        mixed = lane.bits(_mix(state, content, bounds, rows, block))
        state[2 * rows], state[2 * rows + 1] = mixed[::2], mixed[1::2]
        block += 1
        rows = rows[lengths[rows] > 16 * block]
    return state


@njit(cache=True, nogil=True)
def _mix(state: Words, content: Bytes, bounds: Rows, rows: Rows, block: int) -> Words:  # pragma: no cover
    """The state of the listed rows, xor their next 16 bytes."""
    out = np.empty(2 * rows.shape[0], np.uint64)
    for i in range(rows.shape[0]):
        row = rows[i]
        start = bounds[row] + 16 * block
        for half in range(2):
            word = np.uint64(0)
            for byte in range(8):
                at = start + 8 * half + byte
                if at < bounds[row + 1]:
                    word |= np.uint64(content[at]) << np.uint64(8 * byte)
            out[2 * i + half] = state[2 * row + half] ^ word
    return out
