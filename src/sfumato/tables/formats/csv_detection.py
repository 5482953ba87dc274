"""Detection of a CSV file's dialect and types, from every cell of the file.

A cell is reduced to its shape, with a 9 for every digit: a column has few shapes where it holds numbers or dates, and
they tell which. What two readings would fit, and nothing decides between them, is refused rather than guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
"""Decimal signs with separators between thousands."""

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
    first: int = 0
    second: int = 0
    """The largest first and second numbers of dates."""
    is_text: bool = False
    nulls: int = 0

    def add(self, cells: Any) -> None:
        """Look at more cells."""
        self.nulls += cells.null_count
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
        if any(map(_NATIONAL.fullmatch, self.counts)):
            parts = pc.extract_regex(cells, r"^\s*(?P<a>[0-9]{1,2})[./-](?P<b>[0-9]{1,2})[./-]")
            self.first = max(self.first, _largest(parts, "a"))
            self.second = max(self.second, _largest(parts, "b"))

    def values(self, missing: tuple[str, ...]) -> set[str]:
        """The shapes of cells that are not missing."""
        words = {word.translate(_DIGITS) for word in missing}
        return {shape for shape in self.counts if shape not in words}

    @property
    def has_signs(self) -> bool:
        """Whether points or commas are in the cells."""
        return any(re.search("[.,]", shape) for shape in self.counts)

    def words(self) -> list[str]:
        """Words that may stand for missing values here."""
        return [shape for shape in self.counts if shape in MISSING]


_DIGITS = str.maketrans("012345678", "9" * 9)


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
    return re.compile(rf"-?({whole}({sign}9*)?|{sign}9+)([eE][+-]?9+)?")


@dataclass(frozen=True)
class Decided:
    """The types of a file's columns, and what is particular about its cells."""

    types: dict[str, pa.DataType]
    dialect: Dialect


def decide(columns: list[ColumnShapes], dialect: Dialect, options: FileOptions) -> Decided:
    """Decide the types of all columns, decimal signs, missing words and the order of dates."""
    examined = {one: one.values((*options.missing, *MISSING)) for one in columns if _may_be_typed(one, options)}
    decimal, thousands = _convention(examined, dialect.separator, options)
    number, order = number_pattern(decimal, thousands), _order(columns, options)
    read = {one: _type(one, shapes, number, decimal, order) for one, shapes in examined.items()}
    typed = [one for one, (kind, _) in read.items() if kind is not None and examined[one]]
    found = {one.name: read.get(one, (None, ""))[0] or pa.string() for one in columns}
    dates = [(one.name, read[one][1]) for one in typed if read[one][1]]
    grouped = [one.name for one in typed if thousands and any(thousands in shape for shape in examined[one])]
    cells = replace(dialect, decimal=decimal, thousands=thousands, missing=_missing(columns, typed, options))
    return Decided(found, replace(cells, dates=tuple(dates), grouped=tuple(grouped)))


def _may_be_typed(column: ColumnShapes, options: FileOptions) -> bool:
    return not column.is_text and column.name not in options.text


def _missing(columns: list[ColumnShapes], typed: list[ColumnShapes], options: FileOptions) -> tuple[str, ...]:
    """What stands for a missing value, the most frequent first: empty cells, stated words, and those among numbers."""
    words: Counter[str] = Counter({"": sum(one.nulls for one in columns)})
    words.update(dict.fromkeys(options.missing, 1))
    for one in typed:
        words.update({word: one.counts[word] for word in one.words()})
    return tuple(word for word, _ in words.most_common())


def _type(
    column: ColumnShapes, shapes: set[str], number: re.Pattern[str], decimal: str, order: str
) -> tuple[pa.DataType | None, str]:
    """The type of a column, and the format of its dates; none where it is text."""
    if not shapes:
        return (None if column.counts else pa.null()), ""
    if all(map(number.fullmatch, shapes)):
        whole = not any(re.search(rf"[eE{re.escape(decimal)}]", shape) for shape in shapes)
        digits = max(shape.count("9") for shape in shapes)
        if not whole:
            return pa.float64(), ""
        return (None if column.padded or digits > 18 else pa.int64()), ""
    for pattern, kind in _ISO:
        if all(map(pattern.fullmatch, shapes)):
            return kind, ""
    return _date(column, shapes, order)


def _date(column: ColumnShapes, shapes: set[str], order: str) -> tuple[pa.DataType | None, str]:
    """The type and the format of dates in national orders."""
    for pattern in (_NATIONAL, _YEAR_FIRST, _NAMED):
        matches = [pattern.fullmatch(shape) for shape in shapes]
        found = [match for match in matches if match]
        ends = {(match[1], _time(match[0])) for match in found}
        if len(found) < len(matches) or len(ends) > 1:
            continue
        [(sign, time)] = ends
        kind = pa.timestamp("s") if time else pa.date32()
        if pattern is _YEAR_FIRST:
            return kind, f"%Y{sign}%m{sign}%d{time}"
        if pattern is _NAMED:
            return kind, f"%d{sign}%b{sign}%Y{time}"
        order = _own_order(column, sign) or order
        if not order:
            raise SourceError(
                f"the dates of column {column.name!r} could have the day or the month first, and no cell of the file "
                f"decides it; state it: `dates = {DAY_FIRST!r}` in [file] of the policy, or --file dates='{DAY_FIRST}'"
            )
        if order == "neither":
            return None, ""
        return kind, (f"%d{sign}%m{sign}%Y{time}" if order == DAY_FIRST else f"%m{sign}%d{sign}%Y{time}")
    return None, ""


def _time(shape: str) -> str:
    colons = shape.count(":")
    return ("", " %H:%M", " %H:%M:%S")[colons]


def _own_order(column: ColumnShapes, sign: str) -> str:
    """The order of day and month that the values of a column allow."""
    if column.first > 12 and column.second > 12:
        return "neither"
    if column.first > 12:
        return DAY_FIRST
    if column.second > 12:
        return MONTH_FIRST
    return DAY_FIRST if sign == "." else ""


def _order(columns: list[ColumnShapes], options: FileOptions) -> str:
    """The order that is stated, or that all other columns agree on."""
    if options.dates:
        return options.dates
    found = {_own_order(one, "") for one in columns if one.first} - {"", "neither"}
    return found.pop() if len(found) == 1 else ""


def _convention(columns: dict[ColumnShapes, set[str]], separator: str, options: FileOptions) -> tuple[str, str]:
    """The decimal sign and the separator between thousands that most columns of numbers have."""
    allowed = _allowed(options)
    readings = {one: _readings(shapes, allowed) for one, shapes in columns.items()}
    signs = {one: {sign for sign, _ in pairs} for one, pairs in readings.items()}
    decided = Counter(sign for found in signs.values() if len(found) == 1 for sign in found)
    if not decided and separator == ";" and not options.decimal:
        _refuse_unclear(signs)
    decimal = max(decided, key=lambda sign: (decided[sign], sign == "."), default=allowed[0][0])
    return _most_fitting([pair for pair in allowed if pair[0] == decimal], readings.values())


def _most_fitting(allowed: list[tuple[str, str]], readings: Iterable[list[tuple[str, str]]]) -> tuple[str, str]:
    """The convention by which most columns are numbers; the plainest of several."""
    fits = Counter(pair for pairs in readings for pair in pairs)
    return max(allowed, key=lambda pair: (fits[pair], -allowed.index(pair)))


def _refuse_unclear(signs: Mapping[ColumnShapes, set[str]]) -> None:
    """Refuse numbers that could be read in two ways."""
    for one, found in signs.items():
        if len(found) > 1 and one.has_signs:
            raise SourceError(
                f"the signs in numbers of column {one.name!r} could be before decimals or between thousands, and no "
                'cell of the file decides it; state it: `decimal = ","` in [file] of the policy, or --file decimal=,'
            )


def _allowed(options: FileOptions) -> list[tuple[str, str]]:
    """The conventions that the options leave."""
    stated = options.thousands
    found = [pair for pair in _CONVENTIONS if options.decimal in ("", pair[0]) and stated in (None, pair[1])]
    return found or [(options.decimal or (".", ",")[stated == "."], stated or "")]


def _readings(shapes: set[str], allowed: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The conventions by which all of some shapes are numbers."""
    return [pair for pair in allowed if shapes and all(map(number_pattern(*pair).fullmatch, shapes))]
