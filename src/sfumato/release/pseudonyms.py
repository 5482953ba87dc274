"""Pseudonyms of identifiers: keyed texts, other ones for each recipient, so that copies cannot be joined by them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.levels import Level
from sfumato.policy.roles import PSEUDONYM
from sfumato.tables.record_ids import record_ids

_BYTES = 10
"""Of whole numbers, two of ten million share a pseudonym with probability 4e-11; of texts, which are hashed to 64 bits
as record ids are, with 3e-6."""

_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


def pseudonyms(batch: pa.RecordBatch, column: str, key: Key, recipient: str, level: Level) -> pa.Array:
    """The pseudonyms of the identifiers in a column, as texts of hexadecimal digits.

    Args:
        batch: rows of the original.
        column: the identifiers.
        key: the key of the dataset.
        recipient: who gets the copy; without a name, recipients of one level share their pseudonyms.
        level: the level of the copy.

    """
    secret = key.derive(PSEUDONYM, column, recipient or f"level {level.fidelity!r}")
    rows = record_ids(batch, (column,), np.zeros(batch.num_rows, np.uint64), secret)
    stream = Stream(secret)
    words = stream.bits(PSEUDONYM, stream.addresses(rows, [np.zeros(len(rows), np.uint64)]))
    drawn = words.view(np.uint8).reshape(len(rows), 16)[:, :_BYTES]
    text = np.ascontiguousarray(_DIGITS[drawn].reshape(len(rows), 2 * _BYTES))
    ends = pa.py_buffer(np.arange(len(rows) + 1, dtype=np.int32) * (2 * _BYTES))
    return pa.Array.from_buffers(pa.string(), len(rows), [None, ends, pa.py_buffer(text.tobytes())])
