"""File formats: one module for each that a table can be read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pyarrow as pa

BATCH = 1 << 16
"""Rows per batch, except in the last one."""

Open = Callable[[], pa.NativeFile]
"""Opens a file anew, to be read from at any position."""


class TableReader(NamedTuple):
    """A table that can be read more than once."""

    schema: pa.Schema
    rows: int | None
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]]
    """Reads some columns."""
