"""CSV files with quotes: well-formed ones are read, and a quote that is not closed is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import SourceError
from sfumato.tables.source import Source


def _read(path: Path, text: str) -> list[dict[str, object]]:
    path.write_bytes(text.encode())
    return [row for batch in Source.of(path).batches() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', 2),
        ('a,b\n1,x\n2,"y\n3,"z"\n', 3),
        ('a,b\n1,x\n2,y\n3,"z', 4),
        ('a;b\r\n1;"x"\r\n2;"y""\r\n', 3),
        ('a\tb\n1\t"x"y\n', 2),
        ("a,b\n" + "1,x\n" * 300_000 + '2,"y\n' + "3,z\n" * 9, 300_002),
    ],
)
def test_a_quote_that_is_not_closed_is_an_error(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(SourceError, match=f"begins in line {line:,} does not; close it, or double|could not be read"):
        _read(tmp_path / "t.csv", text)


def test_closed_quotes_are_read(tmp_path: Path) -> None:
    rows = _read(
        tmp_path / "t.csv", 'a,"b, c"\r\n1,"x ""y"""\r\n2,"two\nlines, ""and"" more"\r\n3,5" pipe\r\n4,""\r\n5,'
    )
    assert [row["b, c"] for row in rows] == ['x "y"', 'two\nlines, "and" more', '5" pipe', "", None]
