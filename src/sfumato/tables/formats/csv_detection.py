"""Detection of a CSV file's dialect and types, from every cell of the file.

A cell is reduced to its shape, with a 9 for every digit: a column has few shapes where it holds numbers or dates, and
they tell which. What two readings would fit, and nothing decides between them, is refused rather than guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import SourceError
from sfumato.tables.dialect import Dialect
from sfumato.tables.file_options import DAY_FIRST, MONTH_FIRST, FileOptions

_MOST_SHAPES = 2000
"""A column with more shapes is text."""

MISSING = frozenset(("NA", "N/A", "n/a", "na", "NaN", "nan", "<NA>", "#N/A", "#NA", "#NV", "#NULL!", "NULL", "null"))
MISSING |= {"None", "none", "-", "--", ".", "..", "?", "missing", "Missing", "MISSING", "k.A.", "unknown", "Unknown"}
"""Words that stand for a missing value in a column of numbers or dates."""

_SPACES = (" ", "\u00a0", "\u202f", "'", "’")
_CONVENTIONS: tuple[tuple[str, str], ...] = (
    *((".", ""), (",", ""), (".", ","), (",", ".")),
    *((sign, space) for sign in ",." for space in _SPACES),
)
"""Decimal separators with thousands separators."""

_TIME = r"( 9{1,2}:99(:99)?)?"
_NATIONAL = re.compile(rf"9{{1,2}}([./-])9{{1,2}}\1(9999){_TIME}")
_YEAR_FIRST = re.compile(rf"9999([./])9{{1,2}}\1(9{{1,2}}){_TIME}")
_MONTH = r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_NAMED = re.compile(rf"9{{1,2}}([ -]){_MONTH}\1(9999){_TIME}")

_ISO: tuple[tuple[re.Pattern[str], pa.DataType], ...] = (
    (re.compile("true|false|True|False|TRUE|FALSE"), pa.bool_()),
    (re.compile("9999-99-99"), pa.date32()),
    (re.compile("99:99(:99)?"), pa.time32("s")),
    (re.compile("9999-99-99[ T]99:99(:99)?"), pa.timestamp("s")),
    (re.compile(r"9999-99-99[ T]99:99:99(\.9{1,9})?"), pa.timestamp("ns")),
    (re.compile("9999-99-99[ T]99:99(:99)?(Z|[+-]99:?(99)?)"), pa.timestamp("s", "UTC")),
    (re.compile(r"9999-99-99[ T]99:99:99(\.9{1,9})?(Z|[+-]99:?(99)?)"), pa.timestamp("ns", "UTC")),
)
"""What Arrow reads itself, the narrower types first."""

_TO_NINE = np.arange(256, dtype=np.uint8)
_TO_NINE[ord("0") : ord("9") + 1] = ord("9")


@dataclass(eq=False)
class ColumnShapes:
    """What the cells of a column look like."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    padded: bool = False
    """Whether some number has leading zeros, as codes have."""
    after_zero: frozenset[str] = frozenset()
    """The signs that follow a single zero, as in 0,5: they are before decimals."""
    first: int = 0
    second: int = 0
    """The largest first and second numbers of dates."""
    is_text: bool = False

    def add(self, cells: Any) -> None:
        """Look at more cells."""
        if self.is_text or cells.null_count == len(cells):
            return
        shapes = _shapes(cells).dictionary_encode()
        found = np.bincount(shapes.indices.drop_null().to_numpy(), minlength=len(shapes.dictionary))
        for shape, count in zip(shapes.dictionary.to_pylist(), found.tolist(), strict=True):
            self.counts[shape.strip()] += count
        if len(self.counts) > _MOST_SHAPES:
            self.is_text = True
            return
        self.padded = self.padded or bool(pc.any(pc.match_substring_regex(cells, r"^\s*-?0[0-9]")).as_py())
        for sign in ".,":
            if pc.any(pc.match_substring_regex(cells, rf"^\s*-?0[{sign}]")).as_py():
                self.after_zero |= {sign}
        if any(map(_NATIONAL.fullmatch, self.counts)):
            parts = pc.extract_regex(cells, r"^\s*(?P<a>[0-9]{1,2})[./-](?P<b>[0-9]{1,2})[./-]")
            self.first = max(self.first, _largest(parts, "a"))
            self.second = max(self.second, _largest(parts, "b"))

    @cached_property
    def values(self) -> frozenset[str]:
        """The shapes of cells that are not missing; asked for when all cells were looked at."""
        return frozenset(self.counts) - MISSING

    @property
    def words(self) -> list[str]:
        """Words that may stand for missing values here, the most frequent first."""
        return [shape for shape, _ in self.counts.most_common() if shape in MISSING]

    def may_be_typed(self, options: FileOptions) -> bool:
        """Whether the column is not text already."""
        return not self.is_text and self.name not in options.text

    def has(self, sign: str) -> bool:
        """Whether a sign is in some value."""
        return bool(sign) and any(sign in shape for shape in self.values)

    def fits(self, decimal: str, thousands: str) -> bool:
        """Whether all values are numbers by a convention, and none speaks against it."""
        number = number_pattern(decimal, thousands)
        return bool(self.values) and thousands not in self.after_zero and all(map(number.fullmatch, self.values))

    def is_grouped(self, sign: str) -> bool:
        """Whether a sign is evidently between thousands: before decimals, twice, or in large numbers alone."""
        one = re.escape(sign)
        several = any(re.search(rf"{one}999{one}999|{one}999[.,]9", shape) for shape in self.values)
        small = any(re.fullmatch(r"-?9{1,3}([.,]9{1,2})?", shape) for shape in self.values)
        return several or (small and sign not in self.after_zero)

    def is_unclear(self, sign: str) -> bool:
        """Whether all numbers have this sign before three digits, so that they could be thousands or decimals."""
        only = all(re.fullmatch(rf"-?9{{1,3}}{re.escape(sign)}999", shape) for shape in self.values)
        return only and bool(self.values) and sign not in self.after_zero


def _shapes(cells: Any) -> Any:
    """The cells with a 9 for every digit: digits are bytes of their own in UTF-8."""
    array = cells.cast(pa.string())
    validity, offsets, data = array.buffers()
    digits = _TO_NINE[np.frombuffer(data, np.uint8)] if data is not None else np.zeros(0, np.uint8)
    return pa.StringArray.from_buffers(len(array), offsets, pa.py_buffer(digits), validity, offset=array.offset)


def _largest(parts: Any, name: str) -> int:
    numbers = pc.struct_field(parts, name).cast(pa.int64())
    return int(pc.max(numbers).as_py() or 0)


def number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """The shapes of numbers."""
    whole = rf"(9{{1,3}}({re.escape(thousands)}999)+|9+)" if thousands else "9+"
    sign = re.escape(decimal)
    # codes such as 1E5 are no numbers: programs write a sign of the exponent, or decimals
    return re.compile(rf"-?(({whole}({sign}9*)?|{sign}9+)([eE][+-]9+)?|9{sign}9+[eE]9+)")


@dataclass(frozen=True)
class Decided:
    """The types of a file's columns, and what is particular about its cells."""

    types: dict[str, pa.DataType]
    dialect: Dialect


def decide(columns: list[ColumnShapes], dialect: Dialect, options: FileOptions) -> Decided:
    """Decide the types of all columns, their separators, words for missing values and the order of dates."""
    examined = [one for one in columns if one.may_be_typed(options)]
    decimal, thousands = _convention(examined, dialect.separator, options)
    number = number_pattern(decimal, thousands)
    read = {one: _type(one, number, decimal, examined, options) for one in examined}
    found = {one.name: read.get(one, (None, ""))[0] or pa.string() for one in columns}
    typed = {one: form for one, (kind, form) in read.items() if kind not in (None, pa.null())}
    cells = replace(
        dialect,
        decimal=decimal,
        thousands=thousands,
        dates=tuple((one.name, form) for one, form in typed.items() if form),
        grouped=tuple(one.name for one in typed if one.has(thousands)),
        absent=tuple((one.name, word) for one in typed for word in one.words),
    )
    return Decided(found, cells)


def _type(
    column: ColumnShapes, number: re.Pattern[str], decimal: str, columns: list[ColumnShapes], options: FileOptions
) -> tuple[pa.DataType | None, str]:
    """The type of a column, and the format of its dates; none where it is text."""
    if not column.values:
        return (None if column.counts else pa.null()), ""
    if all(map(number.fullmatch, column.values)):
        return _number(column, decimal), ""
    kind = iso_type(column)
    return (kind, "") if kind is not None else _date(column, columns, options)


def iso_type(column: ColumnShapes) -> pa.DataType | None:
    """The type of dates and times that are written as ISO 8601 does, and of truth values."""
    found = (kind for pattern, kind in _ISO if all(map(pattern.fullmatch, column.values)))
    return next(found, None) if column.values else None


def _number(column: ColumnShapes, decimal: str) -> pa.DataType | None:
    """The type of numbers; codes with leading zeros, and numbers with more digits than a type has, are text."""
    whole = not any(re.search(rf"[eE{re.escape(decimal)}]", shape) for shape in column.values)
    digits = max(re.split(rf"[eE{re.escape(decimal)}]", shape)[0].count("9") for shape in column.values)
    if column.padded or digits > (18 if whole else 15):
        return None
    return pa.int64() if whole else pa.float64()


def _date(column: ColumnShapes, columns: list[ColumnShapes], options: FileOptions) -> tuple[pa.DataType | None, str]:
    """The type and the format of dates in national orders."""
    for pattern in (_NATIONAL, _YEAR_FIRST, _NAMED):
        ends = {_sign_and_time(pattern.fullmatch(shape)) for shape in column.values}
        if len(ends) > 1 or None in ends:
            continue
        [(sign, time)] = [end for end in ends if end is not None]
        kind = pa.timestamp("s") if time else pa.date32()
        if pattern is _YEAR_FIRST:
            return kind, f"%Y{sign}%m{sign}%d{time}"
        if pattern is _NAMED:
            return kind, f"%d{sign}%b{sign}%Y{time}"
        order = _order(column, sign, columns, options)
        if not order:
            return None, ""
        return kind, (f"%d{sign}%m{sign}%Y{time}" if order == DAY_FIRST else f"%m{sign}%d{sign}%Y{time}")
    return None, ""


def _sign_and_time(match: re.Match[str] | None) -> tuple[str, str] | None:
    """The sign between the parts of a date, and the format of the time after it."""
    return None if match is None else (match[1], ("", " %H:%M", " %H:%M:%S")[match[0].count(":")])


def _order(column: ColumnShapes, sign: str, columns: list[ColumnShapes], options: FileOptions) -> str:
    """Whether days or months come first: as stated, as the column's values say, or those of like columns of dates.

    It is empty for dates that have neither.
    """
    own = _own_order(column)
    if options.dates and own not in (None, options.dates):
        raise SourceError(
            f"the dates of column {column.name!r} must have the {options.dates.split()[0]} first, as [file] states, "
            "and some have not; correct them, or state `text` for the column"
        )
    like = {_own_order(one) for one in columns if one.first and _has_dates(one, sign)} - {None, ""}
    shared = like.pop() if len(like) == 1 else None
    usual = DAY_FIRST if sign == "." else None
    found = next((one for one in (options.dates or None, own, shared, usual) if one is not None), None)
    if found is None:
        raise SourceError(
            f"the dates of column {column.name!r} could have the day or the month first, and no cell of the file "
            f"decides it; state it: `dates = {DAY_FIRST!r}` in [file] of the policy, or --file dates='{DAY_FIRST}'"
        )
    return found


def _has_dates(column: ColumnShapes, sign: str) -> bool:
    """Whether all values of a column are dates with this sign."""
    ends = [_sign_and_time(_NATIONAL.fullmatch(shape)) for shape in column.values]
    return all(end is not None and end[0] == sign for end in ends)


def _own_order(column: ColumnShapes) -> str | None:
    """The order of day and month that the values of a column say: empty if there is none, nothing if both fit."""
    if column.first > 12 and column.second > 12:
        return ""
    if column.first > 12:
        return DAY_FIRST
    return MONTH_FIRST if column.second > 12 else None


def _convention(columns: list[ColumnShapes], separator: str, options: FileOptions) -> tuple[str, str]:
    """The decimal separator and the thousands separator that most columns of numbers have."""
    allowed = _allowed(options)
    readings = {one: _readings(one, allowed, separator, options) for one in columns}
    decimal = _decimal_sign(readings, separator) or allowed[0][0]
    fits = Counter(pair for pairs in readings.values() for pair in pairs)
    best = [pair for pair in allowed if pair[0] == decimal]
    return max(best, key=lambda pair: (fits[pair], -best.index(pair)))


def _decimal_sign(readings: dict[ColumnShapes, list[tuple[str, str]]], separator: str) -> str:
    """The decimal separator of most columns that have one alone; empty where no column needs one."""
    signs = {one: {sign for sign, _ in pairs} for one, pairs in readings.items()}
    decided = Counter(sign for found in signs.values() if len(found) == 1 for sign in found)
    undecided = [one for one, found in signs.items() if len(found) > 1 and (one.has(".") or one.has(","))]
    if undecided and not decided and separator != ",":
        raise _unclear(undecided[0])
    return max(decided, key=lambda sign: (decided[sign], sign == "."), default="")


def _unclear(column: ColumnShapes) -> SourceError:
    return SourceError(
        f"the points or commas in numbers of column {column.name!r} could be decimal or thousands separators, and no "
        'cell decides it; state it: `decimal = ","` in [file] of the policy, or --file decimal=,'
    )


def _allowed(options: FileOptions) -> list[tuple[str, str]]:
    """The conventions that the options leave."""
    stated = options.thousands
    found = [pair for pair in _CONVENTIONS if options.decimal in ("", pair[0]) and stated in (None, pair[1])]
    return found or [(options.decimal or (".", ",")[stated == "."], stated or "")]


def _readings(
    column: ColumnShapes, allowed: list[tuple[str, str]], separator: str, options: FileOptions
) -> list[tuple[str, str]]:
    """The conventions by which all values of a column are numbers, and that its values do not speak against."""
    found = [pair for pair in allowed if column.fits(*pair)]
    if options.decimal or options.thousands is not None:
        return found
    unclear = "".join(sign for sign in ".," if column.is_unclear(sign))
    if unclear and separator == ",":  # plain CSV: points are before decimals, and quoted commas between thousands
        return [(".", unclear.strip("."))]
    if unclear:
        raise _unclear(column)
    spaced = [space for space in _SPACES if column.has(space)]
    return found if all(map(column.is_grouped, spaced)) else []
