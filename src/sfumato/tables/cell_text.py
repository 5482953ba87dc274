"""Text of cells: numbers and dates as a dialect writes them, read into Arrow's types and written back."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import SourceError
from sfumato.tables.dialect import Dialect

_GROUPS = 6
"""The most separators between thousands in a number of 18 digits, and one more."""


def is_own_text(dialect: Dialect, name: str, kind: pa.DataType) -> bool:
    """Whether a dialect writes cells of this column in a way that Arrow does not read."""
    if types.is_string(kind) or types.is_large_string(kind):
        return False
    if name in dict(dialect.dates):
        return bool(types.is_date(kind) or types.is_timestamp(kind))
    words = name in dict(dialect.absent)
    return words or name in dialect.grouped or (_is_number(kind) and dialect.decimal != ".")


def read_cells(dialect: Dialect, name: str, cells: Any, kind: pa.DataType) -> Any:
    """Cells of a column, from text to a type."""
    trimmed = pc.utf8_trim_whitespace(cells)
    words = dialect.words(name)
    if words:
        trimmed = pc.if_else(pc.is_in(trimmed, pa.array(words)), pa.scalar(None, pa.string()), trimmed)
    form = dict(dialect.dates).get(name)
    try:
        if form is not None:
            return _dates(trimmed, form, kind)
        number = _is_number(kind) or types.is_integer(kind)
        return (_plain(dialect, name, trimmed) if number else trimmed).cast(kind)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"column {name!r} must hold {kind} throughout: {str(error).splitlines()[0]}; correct the cell, or state "
            f'`text = ["{name}"]` in [file]'
        ) from None


def _dates(cells: Any, form: str, kind: pa.DataType) -> Any:
    """Dates of a format; strptime takes 30 February for a day in March, and 10:61 for 11:01, and this does not."""
    read = pc.strptime(cells, format=form, unit="s")
    padded = cells
    for _ in range(2):  # neighbours share the character between them
        padded = pc.replace_substring_regex(padded, r"(^|[^0-9])([0-9])([^0-9]|$)", r"\10\2\3")
    same = pc.and_(pc.equal(pc.strftime(read, format=form), padded), pc.greater(pc.year(read), 0))
    if not pc.all(same, min_count=0).as_py():
        raise pa.ArrowInvalid(f"there is no day {cells.filter(pc.invert(same))[0]}")
    return read.cast(kind)


def _plain(dialect: Dialect, name: str, cells: Any) -> Any:
    """Numbers without separators between thousands, and with a decimal point."""
    if name in dialect.grouped:
        cells = pc.replace_substring(cells, dialect.thousands, "")
    return pc.replace_substring(cells, dialect.decimal, ".") if dialect.decimal != "." else cells


def write_cells(dialect: Dialect, name: str, cells: Any) -> Any:
    """Cells of a column as text, without quotes; a missing value stays null."""
    kind = cells.type
    form = dict(dialect.dates).get(name)
    if types.is_dictionary(kind):
        return write_cells(dialect, name, cells.dictionary_decode())
    if form is not None and (types.is_date(kind) or types.is_timestamp(kind)):
        return pc.strftime(cells.cast(pa.timestamp("s"), safe=False), format=form)
    text = cells.cast(pa.string())
    if _is_number(kind) and dialect.decimal != ".":
        text = pc.replace_substring(text, ".", dialect.decimal)
    if name in dialect.grouped:
        for _ in range(_GROUPS):
            text = pc.replace_substring_regex(text, r"^([+-]?\d+)(\d{3})", rf"\1{dialect.thousands}\2")
    return text


def quoted(dialect: Dialect, name: str, text: Any, kind: pa.DataType) -> Any:
    """Cells as they are in the file: quoted where they contain what has a meaning, and words for what is missing."""
    quote = dialect.quote
    special = "".join(re.escape(one) for one in (dialect.separator, quote, "\r", "\n"))
    needs = pc.match_substring_regex(text, f"[{special}]|^\\s|\\s$")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        needs = pc.or_(needs, pc.is_in(text, pa.array([*dialect.missing, ""])))
    if pc.any(needs).as_py():
        doubled = pc.replace_substring(text, quote, quote * 2)
        text = pc.if_else(needs, pc.binary_join_element_wise(quote, doubled, quote, ""), text)
    return pc.fill_null(text, next(iter(dialect.words(name)), dialect.missing[0]))


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_floating(kind) or types.is_decimal(kind))
