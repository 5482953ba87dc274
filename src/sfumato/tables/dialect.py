"""Dialects of CSV: how a text file writes its cells; a schema carries it, so that copies are written alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.tables.file_options import DAY_FIRST, MONTH_FIRST, FileOptions

_KEY = b"sfumato.file"
"""Where the metadata of a schema keep a dialect."""

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


@dataclass(frozen=True)
class Dialect:
    """How a text file writes its cells; the defaults are those of plain CSV."""

    encoding: str = "utf-8"
    separator: str = ","
    quote: str = '"'
    newline: str = "\n"
    decimal: str = "."
    thousands: str = ""
    grouped: tuple[str, ...] = ()
    """The columns of numbers in which thousands are separated."""
    missing: tuple[str, ...] = ("",)
    """What stands for a missing value in all columns, where it is not quoted."""
    absent: tuple[tuple[str, str], ...] = ()
    """Columns of numbers or dates with further words for missing values, the most frequent first."""
    dates: tuple[tuple[str, str], ...] = ()
    """The columns of dates that are not written as 2026-12-31, each with its format."""

    def in_schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema, with this dialect where it is not that of plain CSV, and no other metadata."""
        stated = self._stated()
        return schema.with_metadata({_KEY: json.dumps(stated).encode()} if stated else None)

    @classmethod
    def of_schema(cls, schema: pa.Schema | None) -> Dialect | None:
        """The dialect that a schema carries, if any."""
        found = (schema.metadata or {}).get(_KEY) if schema is not None else None
        if found is None:
            return None
        try:
            stated: dict[str, Any] = json.loads(found)
            for key in {"missing", "grouped"} & set(stated):
                stated[key] = tuple(map(str, stated[key]))
            for key in {"dates", "absent"} & set(stated):
                stated[key] = tuple((str(name), str(text)) for name, text in stated[key])
            return cls(**stated)
        except (ValueError, TypeError, AttributeError):
            raise SourceError("the schema of the table says how its file is written, and is malformed") from None

    def words(self, name: str) -> list[str]:
        """The words for missing values of one column alone."""
        return [word for column, word in self.absent if column == name]

    def narrowed(self, names: list[str]) -> Dialect:
        """This dialect, for a file of these columns."""
        dates = tuple((name, form) for name, form in self.dates if name in names)
        absent = tuple((name, word) for name, word in self.absent if name in names)
        return replace(self, dates=dates, absent=absent, grouped=tuple(name for name in self.grouped if name in names))

    def options(self) -> FileOptions:
        """What a policy states to have a file read in this dialect."""
        stated = {
            key: value for key, value in self._stated().items() if key not in ("newline", "dates", "grouped", "absent")
        }
        orders = {_order(form) for _, form in self.dates} - {""}
        words = [word for word in self.missing if word]
        stated.pop("missing", None)
        return FileOptions.of(
            stated | ({"missing": words} if words else {}) | ({"dates": orders.pop()} if orders else {})
        )

    def sentence(self) -> str:
        """What is special about the file, for people; empty for plain CSV."""
        parts = []
        if self.separator != ",":
            parts.append(f"{_SEPARATORS.get(self.separator, repr(self.separator))} between columns")
        if self.decimal != ".":
            parts.append("decimal commas")
        if self.thousands:
            parts.append(f"{self.thousands!r} as thousands separator")
        if self.encoding != "utf-8":
            parts.append(f"encoded in {self.encoding}")
        if any(self.missing):
            parts.append(f"{', '.join(repr(word) for word in self.missing if word)} where a value is missing")
        columns = dict.fromkeys(name for name, _ in self.absent)
        parts += [f"{', '.join(map(repr, self.words(name)))} where a value of {name} is missing" for name in columns]
        for name, form in self.dates:
            parts.append(f"dates in {name} as {_example(form)}")
        return "; ".join(parts)

    def _stated(self) -> dict[str, Any]:
        plain = Dialect()
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names if getattr(self, name) != getattr(plain, name)}


PLAIN = Dialect()


def own_metadata(schema: pa.Schema) -> pa.Schema:
    """The schema with no other metadata of its own than a dialect."""
    return (Dialect.of_schema(schema) or PLAIN).in_schema(schema)


def _order(form: str) -> str:
    if form.startswith("%d") and "%m" in form:
        return DAY_FIRST
    return MONTH_FIRST if form.startswith("%m") else ""


def _example(form: str) -> str:
    """A format as people write it."""
    parts: Mapping[str, str] = {"%d": "31", "%m": "12", "%b": "Dec", "%Y": "2026", "%H": "23", "%M": "59", "%S": "58"}
    for code, text in parts.items():
        form = form.replace(code, text)
    return form
