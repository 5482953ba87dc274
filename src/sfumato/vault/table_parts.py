"""Parts of a version's table: the rows that it began with, and those that later versions appended.

A version that appends rows stores these alone, and refers to the files of the version before. Small parts are stored
again together with later ones, as digits of a binary counter carry over, so that a year of daily appends is read from a
handful of files, and each row is stored a few times at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

StoredFile = dict[str, str]

_FILES = ("source", "records", "ids")


@dataclass(frozen=True)
class TablePart:
    """Some rows of a version's table, as the body of its entry records them."""

    number: int
    """The version that stored it; 0 for the rows that the table began with."""
    rows: int
    source: StoredFile
    records: StoredFile
    """The file of the record hashes."""
    ids: StoredFile | None = None
    """The filter of the record ids; a small part has none, nor has one of an earlier version of Sfumato."""

    def body(self) -> dict[str, Any]:
        """What the entry of a version records of it."""
        end = f" {self.number}" if self.number else ""
        files = {name: getattr(self, name) for name in _FILES if getattr(self, name) is not None}
        rows = {f"rows{end}": self.rows} if self.number else {}
        return {f"{name}{end}": file for name, file in files.items()} | rows


def parts_of(body: Mapping[str, Any]) -> list[TablePart]:
    """The parts of a version's table, in order."""
    numbers = sorted(int(name.removeprefix("source ")) for name in body if name.startswith("source "))
    later = [
        TablePart(
            number,
            int(body[f"rows {number}"]),
            body[f"source {number}"],
            body[f"records {number}"],
            body.get(f"ids {number}"),
        )
        for number in numbers
    ]
    first = int(body["rows"]) - sum(part.rows for part in later)
    return [TablePart(0, first, body["source"], body["records"], body.get("ids")), *later]


def carried(parts: list[TablePart], rows: int) -> tuple[list[TablePart], list[TablePart]]:
    """The parts that stay, and those that are stored again with so many new rows: no larger than what follows them.

    The rows that the table began with stay.
    """
    first, later, total = parts[:1], parts[1:], rows
    while later and later[-1].rows <= total:
        total += later.pop().rows
    return first + later, parts[1 + len(later) :]
