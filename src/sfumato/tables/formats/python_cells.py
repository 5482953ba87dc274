"""Columns from cells that are Python values, as workbooks and statistics files have them, with the narrowest type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.tables.formats.csv_detection import MISSING

_EXACT = 2**53
"""Whole numbers up to here are exact as floats."""

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "truth values"),
    ((int, float), "numbers"),
    (dt.datetime, "times"),
    (dt.date, "dates"),
    (dt.time, "times of day"),
    (str, "text"),
)


def column(name: str, cells: Sequence[Any]) -> pa.Array:
    """The cells of a column; empty ones are null, and so are words for missing values among numbers or dates."""
    cells = _without_words([None if cell == "" else cell for cell in cells])
    known = {_kind(cell) for cell in cells if cell is not None}
    if not known:
        return pa.nulls(len(cells))
    if known <= {"times", "dates"} and "times" in known:
        return _times([_time(cell) for cell in cells])
    if len(known) > 1 and known <= {"text", "numbers", "truth values"}:
        return pa.array([None if cell is None else as_text(cell) for cell in cells], pa.string())
    if len(known) > 1:
        raise SourceError(
            f"a column must hold values of one kind, and {name!r} holds {' and '.join(sorted(known))}; correct the "
            "cells of the rarer kind"
        )
    return _numbers(cells) if known == {"numbers"} else pa.array(cells)


def _without_words(cells: Sequence[Any]) -> Sequence[Any]:
    """The cells without words for missing values, if there are others than words."""
    words = {cell.strip() for cell in cells if isinstance(cell, str)}
    others = any(cell is not None and not isinstance(cell, str) for cell in cells)
    if not (words and others and words <= MISSING):
        return cells
    return [None if isinstance(cell, str) else cell for cell in cells]


def _kind(cell: Any) -> str:
    for kinds, name in _KINDS:
        if isinstance(cell, kinds):
            return name
    return type(cell).__name__


def _numbers(cells: Sequence[Any]) -> pa.Array:
    """Numbers, as whole ones where all are."""
    null = np.array([cell is None or cell != cell for cell in cells])  # noqa: PLR0124 - NaN
    values = np.array([0.0 if missing else cell for cell, missing in zip(cells, null, strict=True)], np.float64)
    whole = bool((np.abs(values) < _EXACT).all() and (values == np.rint(values)).all())
    return pa.array(values.astype(np.int64) if whole else values, mask=null)


def _times(cells: Sequence[Any]) -> pa.Array:
    """Points in time; in seconds where none is finer, and as dates where all are at midnight."""
    present = [cell for cell in cells if cell is not None]
    if all(cell.time() == dt.time() for cell in present):
        return pa.array([None if cell is None else cell.date() for cell in cells], pa.date32())
    finer = any(cell.microsecond for cell in present)
    return pa.array(cells, pa.timestamp("us" if finer else "s"))


def _time(cell: Any) -> Any:
    """A date as its midnight."""
    return dt.datetime.combine(cell, dt.time()) if _kind(cell) == "dates" else cell


def as_text(cell: Any) -> str:
    """A cell as text; whole numbers without decimals."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
