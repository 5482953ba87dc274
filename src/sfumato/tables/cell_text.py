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
    if name in dict(dialect.dates):
        return bool(types.is_date(kind) or types.is_timestamp(kind))
    return name in dialect.grouped or (_is_number(kind) and dialect.decimal != ".")


def read_cells(dialect: Dialect, name: str, cells: Any, kind: pa.DataType) -> Any:
    """Cells of a column, from text to a type."""
    trimmed = pc.utf8_trim_whitespace(cells)
    form = dict(dialect.dates).get(name)
    try:
        if form is not None:
            return _dates(trimmed, form, kind)
        return _plain(dialect, trimmed).cast(kind)
    except pa.ArrowInvalid as error:
        raise SourceError(
            f"column {name!r} must hold {kind} throughout: {str(error).splitlines()[0]}; correct the cell, or state "
            f'`text = ["{name}"]` in [file]'
        ) from None


def _dates(cells: Any, form: str, kind: pa.DataType) -> Any:
    """Dates of a format; strptime takes 30 February for a day in March, and this does not."""
    read = pc.strptime(cells, format=form, unit=kind.unit if types.is_timestamp(kind) else "s")
    before = re.split("%d", re.sub("%Y", "[0-9]{4}", re.sub("%m", "[0-9]{1,2}", form)))[0]
    days = pc.struct_field(pc.extract_regex(cells, f"^{before}(?P<day>[0-9]{{1,2}})"), "day").cast(pa.int64())
    if not pc.all(pc.equal(days, pc.day(read)), min_count=0).as_py():
        wrong = cells.filter(pc.not_equal(days, pc.day(read)))[0]
        raise pa.ArrowInvalid(f"there is no day {wrong}")
    return read.cast(kind)


def _plain(dialect: Dialect, cells: Any) -> Any:
    """Numbers without separators between thousands, and with a decimal point."""
    if dialect.thousands:
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


def quoted(dialect: Dialect, text: Any, kind: pa.DataType) -> Any:
    """Cells as they are in the file: quoted where they contain what has a meaning, and words for what is missing."""
    quote = dialect.quote
    special = "".join(re.escape(one) for one in (dialect.separator, quote, "\r", "\n"))
    needs = pc.match_substring_regex(text, f"[{special}]|^\\s|\\s$")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        needs = pc.or_(needs, pc.is_in(text, pa.array([*dialect.missing, ""])))
    if pc.any(needs).as_py():
        doubled = pc.replace_substring(text, quote, quote * 2)
        text = pc.if_else(needs, pc.binary_join_element_wise(quote, doubled, quote, ""), text)
    return pc.fill_null(text, dialect.missing[0])


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_floating(kind) or types.is_decimal(kind))
