"""Pseudonyms of identifiers: keyed texts, other ones for each recipient, so that copies cannot be joined by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.keys.key import Key
from sfumato.keys.stream import Stream
from sfumato.policy.formats import Format
from sfumato.policy.roles import PSEUDONYM
from sfumato.release.kept_formats import same_format
from sfumato.tables.record_ids import record_ids

_BYTES = 10
"""Of whole numbers, two of ten million share a pseudonym with probability 4e-11; of texts, which are hashed to 64 bits
as record ids are, with 3e-6."""

_DIGITS = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


@dataclass(frozen=True)
class PseudonymKind:
    """How the identifiers of a column are replaced."""

    domain: tuple[str, ...]
    """What names the identifiers: columns of one domain have the same pseudonyms, in whichever table they are."""
    form: Format | None = None
    """The format that they have, if one is stated."""


def pseudonyms(batch: pa.RecordBatch, column: str, kind: PseudonymKind, key: Key, owner: str) -> pa.Array:
    """The pseudonyms of the identifiers in a column, as texts of hexadecimal digits, or in their own format.

    Args:
        batch: rows of the original.
        column: the identifiers; nulls stay.
        kind: how they are replaced.
        key: the key of the dataset.
        owner: whose pseudonyms they are: the name of a recipient, or of a level.

    """
    secret, array = key.derive(PSEUDONYM, *kind.domain, owner), batch.column(column)
    if kind.form is not None:
        return same_format(array, column, kind.form, secret.derive("format", kind.form.text))
    name = kind.domain[-1]
    known = pa.RecordBatch.from_arrays([array.drop_null()], [name])
    rows = record_ids(known, (name,), np.zeros(known.num_rows, np.uint64), secret)
    stream = Stream(secret)
    words = stream.bits(PSEUDONYM, stream.addresses(rows, [np.zeros(len(rows), np.uint64)]))
    drawn = words.view(np.uint8).reshape(len(rows), 16)[:, :_BYTES]
    text = np.ascontiguousarray(_DIGITS[drawn].reshape(len(rows), 2 * _BYTES))
    ends = pa.py_buffer(np.arange(len(rows) + 1, dtype=np.int32) * (2 * _BYTES))
    made = pa.Array.from_buffers(pa.string(), len(rows), [None, ends, pa.py_buffer(text.tobytes())])
    if not array.null_count:
        return made
    present = np.asarray(array.is_valid())
    return made.take(pa.array(np.cumsum(present) - 1, mask=~present))
