"""File options: what an owner states about how a file is to be read, where the file itself does not tell."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sfumato.errors import SourceError, nearest

DAY_FIRST, MONTH_FIRST = "day first", "month first"


@dataclass(frozen=True)
class FileOptions:
    """How a text file or a workbook is to be read; what is not stated is detected."""

    encoding: str = ""
    """The encoding of a text file, such as `cp1252`."""
    separator: str = ""
    """The character between columns."""
    quote: str = ""
    """The character around cells that contain separators."""
    decimal: str = ""
    """The decimal separator, `.` or `,`."""
    thousands: str | None = None
    """The character between groups of three digits; an empty one for none."""
    missing: tuple[str, ...] = ()
    """Words that stand for a missing value, such as `NA`, in all columns."""
    dates: str = ""
    """`day first` or `month first`, as in 3/4/2026."""
    text: tuple[str, ...] = ()
    """Columns that are text, whatever they look like."""
    sheet: str = ""
    """The sheet of a workbook."""
    header: int = 0
    """The row of a sheet, or the line of a text, that names the columns, counted from 1; else the first not empty."""

    @classmethod
    def of(cls, stated: Any) -> FileOptions:
        """The options of a policy's table `[file]`."""
        if not isinstance(stated, Mapping):
            raise SourceError(f'[file] must be a table, as in `decimal = ","`, got {stated!r}')
        known = [field.name for field in fields(cls)]
        for key, value in stated.items():
            if key not in known:
                raise SourceError(f"[file] has no key {key!r}; {nearest(key, known)}")
            _check(key, value)
        if stated.get("separator") is not None and stated.get("separator") == stated.get("quote", '"'):
            raise SourceError("`separator` and `quote` in [file] must be different")
        if stated.get("thousands") and stated.get("thousands") == stated.get("decimal"):
            raise SourceError("`thousands` and `decimal` in [file] must be different")
        values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in stated.items()}
        return cls(**values)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> FileOptions:
        """The options of a command line, as in `decimal=,`; a list is stated by repeating its key."""
        stated: dict[str, Any] = {}
        for text in texts:
            key, equals, value = text.partition("=")
            if not equals:
                raise SourceError(f"a file option must be KEY=VALUE, such as sheet=Patients, got {text!r}")
            if key in ("missing", "text"):
                stated.setdefault(key, []).append(value)
            else:
                stated[key] = int(value) if key == "header" and value.isdecimal() else value
        return cls.of(stated)

    def stated(self) -> dict[str, Any]:
        """What is stated, as in a policy."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, (v, default) in values.items() if v != default}


NOTHING_STATED = FileOptions()


_WHAT: dict[str, tuple[type, str]] = {
    "encoding": (str, "the name of an encoding, such as cp1252"),
    "separator": (str, "one character"),
    "quote": (str, "one character"),
    "decimal": (str, "a point or a comma"),
    "thousands": (str, "one character or none"),
    "dates": (str, f"{DAY_FIRST!r} or {MONTH_FIRST!r}"),
    "sheet": (str, "the name of a sheet"),
    "header": (int, "the number of a row, from 1"),
    "missing": (list, 'a list of texts, as in ["NA"]'),
    "text": (list, "a list of columns"),
}
"""The type of each option, and what it must be."""

_FITS: dict[str, Callable[[Any], bool]] = {
    "separator": lambda value: len(value.encode()) == 1,
    "quote": lambda value: len(value.encode()) == 1,
    "decimal": lambda value: value in (".", ","),
    "thousands": lambda value: len(value) <= 1,
    "dates": lambda value: value in (DAY_FIRST, MONTH_FIRST),
    "header": lambda value: value >= 1,
    "missing": lambda value: all(isinstance(one, str) for one in value),
    "text": lambda value: all(isinstance(one, str) for one in value),
}


def _check(key: str, value: Any) -> None:
    """Refuse a value that an option cannot have."""
    kind, what = _WHAT[key]
    if not isinstance(value, kind) or isinstance(value, bool) or not _FITS.get(key, bool)(value):
        raise SourceError(f"`{key}` in [file] must be {what}, got {value!r}")
    if key == "encoding":
        _check_encoding(str(value))


def _check_encoding(name: str) -> None:
    try:
        known = codecs.lookup(name)
    except LookupError:
        raise SourceError(f"`encoding` in [file] must be one that Python knows, such as cp1252, got {name!r}") from None
    if not getattr(known, "_is_text_encoding", True):
        raise SourceError(f"`encoding` in [file] must be one of text, such as cp1252, got {name!r}")
