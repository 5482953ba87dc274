"""Files as people have them, by kind: what spreadsheets, statistics packages, colleagues and national offices write.

Each has a table of records that the file must be read as, or a sentence with which it must be refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pyreadstat
import xlsxwriter

D = dt.date
AT = [dt.datetime(2025, 12, 31, 14, 30), dt.datetime(2026, 1, 2, 8, 15)]  # noqa: DTZ001 - as in the file


@dataclass(frozen=True)
class File:
    """A file, with what it holds or why it is refused."""

    name: str
    write: Callable[[Path], Any]
    columns: dict[str, list[Any]] = field(default_factory=dict)
    refused: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    normal: bool = False
    """Whether the copy writes the same values in another way, such as 03.04.2025 for 3.4.2025."""


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content.encode(encoding))


def sheet(rows: list[list[Any]], *more: str) -> Callable[[Path], Any]:
    """A workbook with a sheet called Data, and further ones with a cell each."""

    def write(path: Path) -> None:
        with xlsxwriter.Workbook(str(path)) as book:
            date = book.add_format({"num_format": "dd/mm/yyyy"})
            page = book.add_worksheet("Data")
            for at, row in enumerate(rows):
                for column, cell in enumerate(row):
                    if isinstance(cell, D):
                        page.write_datetime(at, column, cell, date)
                    elif isinstance(cell, str):
                        page.write_string(at, column, cell)
                    elif cell is not None:
                        page.write(at, column, cell)
            for name in more:
                book.add_worksheet(name).write_string(0, 0, "x")

    return write


def package(write: Any, columns: dict[str, list[Any]], **labels: Any) -> Callable[[Path], Any]:
    """A file of a statistics package."""
    return lambda path: write(pl.DataFrame(columns), str(path), **labels)


def feather(path: Path) -> None:
    table = pa.table(PATIENTS)
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table)


PATIENTS: dict[str, list[Any]] = {"age": [34, 71, 45], "weight": [71.5, 60.25, 82.0], "ward": ["Süd", "Nord", "Süd"]}
CODED: dict[str, list[Any]] = {
    "sex": [1, 2, 1],
    "score": [1.5, None, 2.5],
    "seen": [D(2025, 1, 31), None, D(2025, 2, 1)],
}
LABELS: dict[str, Any] = {
    "variable_value_labels": {"sex": {1: "male", 2: "female"}},
    "column_labels": {"sex": "Sex of the patient"},
}

NATIONAL = [
    File("plain.csv", text("age,weight,ward\n34,71.5,Süd\n71,60.25,Nord\n45,82.0,Süd\n"), PATIENTS, normal=True),
    File("german.csv", text("age;weight;ward\n34;71,5;Süd\n71;60,25;Nord\n45;82,0;Süd\n"), PATIENTS, normal=True),
    File("windows.csv", text("age;weight;ward\r\n34;71,5;Süd\r\n71;60,25;Nord\r\n45;82;Süd\r\n", "cp1252"), PATIENTS),
    File(
        "excel-utf8.csv",
        text("age;weight;ward\r\n34;71,5;Süd\r\n71;60,25;Nord\r\n45;82;Süd\r\n", "utf-8-sig"),
        PATIENTS,
    ),
    File("unicode.txt", text("age\tweight\tward\n34\t71,5\tSüd\n71\t60,25\tNord\n45\t82\tSüd\n", "utf-16"), PATIENTS),
    File(
        "no-signature.csv", text("age,ward\n34,Süd\n71,Nord\n", "utf-16-le"), {"age": [34, 71], "ward": ["Süd", "Nord"]}
    ),
    File("tabs.tsv", text("age\tweight\n34\t71.5\n71\t60.25\n"), {"age": [34, 71], "weight": [71.5, 60.25]}),
    File("bars.csv", text("age|weight\n34|71.5\n71|60.25\n"), {"age": [34, 71], "weight": [71.5, 60.25]}),
    File(
        "stated-separator.csv",
        text("sep=;\nage;weight\n34;71,5\n71;60,25\n"),
        {"age": [34, 71], "weight": [71.5, 60.25]},
        normal=True,
    ),
    File(
        "german-thousands.csv",
        text("paid\n1.234,56\n12,00\n1.000.000,00\n"),
        {"paid": [1234.56, 12.0, 1e6]},
        normal=True,
        options={"separator": ";"},
    ),
    File("french.csv", text("paid;n\n1 234,5;1\n12,25;2\n"), {"paid": [1234.5, 12.25], "n": [1, 2]}),
    File("french-narrow.csv", text("paid;n\n1\u202f234,5;1\n12,25;2\n"), {"paid": [1234.5, 12.25], "n": [1, 2]}),
    File("swiss.csv", text("paid;n\n1'234.5;1\n12.25;2\n"), {"paid": [1234.5, 12.25], "n": [1, 2]}),
    File("american.csv", text('paid,n\n"1,234",1\n"12,345,678",2\n'), {"paid": [1234, 12345678], "n": [1, 2]}),
    File("american-cents.csv", text('paid,n\n"1,234.5",1\n7.25,2\n'), {"paid": [1234.5, 7.25], "n": [1, 2]}),
    File("exponents.csv", text("x\n1.5e-05\n2e+20\n"), {"x": [1.5e-5, 2e20]}, normal=True),
    File(
        "cyrillic.csv",
        text("город,n\nМосква,1\nКазань,2\n", "cp1251"),
        {"город": ["Москва", "Казань"], "n": [1, 2]},
        options={"encoding": "cp1251"},
    ),
    File(
        "japanese.csv",
        text("市,n\n東京,1\n大阪,2\n", "shift_jis"),
        {"市": ["東京", "大阪"], "n": [1, 2]},
        options={"encoding": "shift_jis"},
    ),
]

MISSING = [
    File("empty-cells.csv", text("a,b\n1,x\n,\n3,y\n"), {"a": [1, None, 3], "b": ["x", None, "y"]}, normal=True),
    File("r.csv", text('a,b\n1,x\nNA,NA\n3,"NA"\n'), {"a": [1, None, 3], "b": ["x", "NA", "NA"]}, normal=True),
    File(
        "r-stated.csv",
        text('a,b\n1,x\nNA,NA\n3,"NA"\n'),
        {"a": [1, None, 3], "b": ["x", None, "NA"]},
        options={"missing": ["NA"]},
        normal=True,
    ),
    File(
        "strand.csv", text("strand,score\n+,1.5\n-,2.5\n+,-\n"), {"strand": ["+", "-", "+"], "score": [1.5, 2.5, None]}
    ),
    File(
        "age-99.csv",
        text("age,n\n99,1\n34,999\n"),
        {"age": [None, 34], "n": [1, 999]},
        options={"missing": ["99"]},
        normal=True,
    ),
    File("spaced-words.csv", text('a,n\n1,1\n NA,2\n"NA",3\n'), {"a": [1, None, None], "n": [1, 2, 3]}, normal=True),
    File("question-signs.csv", text("a,b\n1.5,x\n?,y\n"), {"a": [1.5, None], "b": ["x", "y"]}),
    File("stata-dots.csv", text("a,b\n1,x\n.,y\n"), {"a": [1, None], "b": ["x", "y"]}),
    File("excel-errors.csv", text("a;b\n1,5;x\n#N/A;y\n"), {"a": [1.5, None], "b": ["x", "y"]}),
    File(
        "codes.csv",
        text("a,b\n1,x\n-99,y\n"),
        {"a": [1, None], "b": ["x", "y"]},
        options={"missing": ["-99"]},
        normal=True,
    ),
    File("namibia.csv", text("country,n\nNA,1\nDE,2\n"), {"country": ["NA", "DE"], "n": [1, 2]}, normal=True),
]

CODES = [
    File("padded.csv", text("plz,n\n01067,1\n80331,2\n"), {"plz": ["01067", "80331"], "n": [1, 2]}, normal=True),
    File(
        "padded-late.csv",
        text("plz\n" + "80331\n" * 300_000 + "01067\n"),
        {"plz": ["80331"] * 300_000 + ["01067"]},
        normal=True,
    ),
    File(
        "long-numbers.csv",
        text("account,n\n12345678901234567890,1\n2,2\n"),
        {"account": ["12345678901234567890", "2"], "n": [1, 2]},
        normal=True,
    ),
    File(
        "phones.csv",
        text("tel,n\n+491701234567,1\n+33123456789,2\n"),
        {"tel": ["+491701234567", "+33123456789"], "n": [1, 2]},
        normal=True,
    ),
    File(
        "text-by-order.csv",
        text("code,n\n1,1\n2,2\n"),
        {"code": ["1", "2"], "n": [1, 2]},
        options={"text": ["code"]},
        normal=True,
    ),
    File(
        "quotes.csv",
        text('a,b\n"x, ""y""",1\n"two\nlines",2\n'),
        {"a": ['x, "y"', "two\nlines"], "b": [1, 2]},
        normal=True,
    ),
    File("single-quotes.csv", text("'a','b'\n'x,y',1\n'it''s',2\n"), {"a": ["x,y", "it's"], "b": [1, 2]}, normal=True),
    File("truth.csv", text("a,b\ntrue,1\nfalse,2\n"), {"a": [True, False], "b": [1, 2]}, normal=True),
]

HOSTILE = [
    File("visits.csv", text("a;b\n950;1,5\n1.234;2,5\n"), {"a": [950, 1234], "b": [1.5, 2.5]}),
    File("zero-led.csv", text("p;q\n0.125;1\n0.250;2\n"), {"p": [0.125, 0.25], "q": [1, 2]}, normal=True),
    File("zero-led.tsv", text("p\tq\n0,125\t1\n0,250\t2\n"), {"p": [0.125, 0.25], "q": [1, 2]}, normal=True),
    File("product-codes.csv", text("code,n\n1E5,1\n2E7,2\n"), {"code": ["1E5", "2E7"], "n": [1, 2]}, normal=True),
    File(
        "padded-decimals.csv",
        text("code,n\n01.10,1\n02.20,2\n"),
        {"code": ["01.10", "02.20"], "n": [1, 2]},
        normal=True,
    ),
    File(
        "many-digits.csv",
        text("a,b\n123456789012345678,1\n1.5,2\n"),
        {"a": ["123456789012345678", "1.5"], "b": [1, 2]},
        normal=True,
    ),
    File("spaced-numbers.csv", text("tel;n\n123 456;1\n234 567;2\n"), {"tel": ["123 456", "234 567"], "n": [1, 2]}),
    File(
        "comma-in-names.csv",
        text("Name, Vorname;Alter\nMeier, Hans;34\nKunz, Eva;35\n"),
        {"Name, Vorname": ["Meier, Hans", "Kunz, Eva"], "Alter": [34, 35]},
    ),
    File(
        "upper-encoding.csv",
        text("a;b\nx;1,5\ny;2,5\n", "utf-16"),
        {"a": ["x", "y"], "b": [1.5, 2.5]},
        options={"encoding": "UTF-16"},
    ),
    File(
        "stated-months.csv",
        text("d;n\n01.02.2026;1\n03.04.2026;2\n"),
        {"d": [D(2026, 1, 2), D(2026, 3, 4)], "n": [1, 2]},
        options={"dates": "month first"},
    ),
    File(
        "instants.jsonl",
        text('{"d": "2020-01-01", "t": "2020-01-01T10:00:00+02:00"}\n'),
        {"d": [D(2020, 1, 1)], "t": [dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC)]},
        normal=True,
    ),
    File("spaced-names.xlsx", sheet([["a", " b"], [1, 2], [3, 4]]), {"a": [1, 3], " b": [2, 4]}),
    File(
        "stated-missing.xlsx",
        sheet([["a", "plz"], [-99, 1067], [3, 80331]]),
        {"a": [None, 3], "plz": ["1067", "80331"]},
        options={"missing": ["-99"], "text": ["plz"]},
    ),
]
"""Found by somebody who tried to have files misread."""

DATES = [
    File(
        "iso.csv",
        text("seen,n\n2025-12-31,1\n2026-01-02,2\n"),
        {"seen": [D(2025, 12, 31), D(2026, 1, 2)], "n": [1, 2]},
        normal=True,
    ),
    File(
        "german-dates.csv",
        text("seen;n\n31.12.2025;1\n02.01.2026;2\n"),
        {"seen": [D(2025, 12, 31), D(2026, 1, 2)], "n": [1, 2]},
    ),
    File(
        "short-dates.csv",
        text("seen;n\n3.4.2025;1\n12.1.2026;2\n"),
        {"seen": [D(2025, 4, 3), D(2026, 1, 12)], "n": [1, 2]},
        normal=True,
    ),
    File(
        "british-dates.csv",
        text("seen,n\n31/12/2025,1\n02/01/2026,2\n"),
        {"seen": [D(2025, 12, 31), D(2026, 1, 2)], "n": [1, 2]},
    ),
    File(
        "american-dates.csv",
        text("seen,n\n12/31/2025,1\n01/02/2026,2\n"),
        {"seen": [D(2025, 12, 31), D(2026, 1, 2)], "n": [1, 2]},
    ),
    File(
        "decided-elsewhere.csv",
        text("born,seen\n25/12/1970,01/02/2026\n01/03/1980,03/04/2026\n"),
        {"born": [D(1970, 12, 25), D(1980, 3, 1)], "seen": [D(2026, 2, 1), D(2026, 4, 3)]},
    ),
    File(
        "named-months.csv",
        text("seen,n\n05-Jan-2024,1\n31-Dec-2024,2\n"),
        {"seen": [D(2024, 1, 5), D(2024, 12, 31)], "n": [1, 2]},
    ),
    File(
        "times.csv",
        text("seen;n\n31.12.2025 14:30;1\n02.01.2026 08:15;2\n"),
        {"seen": AT, "n": [1, 2]},
    ),
    File(
        "stated-order.csv",
        text("seen,n\n01/02/2026,1\n03/04/2026,2\n"),
        {"seen": [D(2026, 2, 1), D(2026, 4, 3)], "n": [1, 2]},
        options={"dates": "day first"},
    ),
    File("missing-dates.csv", text("seen;n\n31.12.2025;1\n-;2\n"), {"seen": [D(2025, 12, 31), None], "n": [1, 2]}),
]

WORKBOOKS = [
    File(
        "book.xlsx",
        sheet([["age", "weight", "ward"], [34, 71.5, "Süd"], [71, 60.25, "Nord"], [45, 82, "Süd"]]),
        PATIENTS,
    ),
    File(
        "dates.xlsx",
        sheet([["seen", "code"], [D(2025, 12, 31), "007"], [None, "012"]]),
        {"seen": [D(2025, 12, 31), None], "code": ["007", "012"]},
    ),
    File(
        "titled.xlsx",
        sheet([["Report of the ward"], [], ["age", "n"], [34, 1], [71, 2]]),
        {"age": [34, 71], "n": [1, 2]},
        options={"header": 3},
    ),
    File(
        "two-sheets.xlsx",
        sheet([["age", "n"], [34, 1], [71, 2]], "Notes"),
        {"age": [34, 71], "n": [1, 2]},
        options={"sheet": "Data"},
    ),
    File(
        "numbers-as-text.xlsx",
        sheet([["paid", "n"], ["1.234,50", 1], ["12,25", 2], ["NA", 3]]),
        {"paid": [1234.5, 12.25, None], "n": [1, 2, 3]},
    ),
    File("words-among-numbers.xlsx", sheet([["a", "b"], [1, "x"], ["n/a", "y"]]), {"a": [1, None], "b": ["x", "y"]}),
    File("mixed-codes.xlsx", sheet([["code"], [12], ["A7"]]), {"code": ["12", "A7"]}),
    File("truth.xlsx", sheet([["a"], [True], [False]]), {"a": [True, False]}),
]

OTHERS = [
    File("survey.sav", package(pyreadstat.write_sav, CODED, **LABELS), CODED),
    File("survey.zsav", package(pyreadstat.write_sav, CODED, compress=True, **LABELS), CODED),
    File("survey.dta", package(pyreadstat.write_dta, CODED, **LABELS), CODED),
    File("old.por", package(pyreadstat.write_por, {"AGE": [1.0, 2.5]}), {"AGE": [1.0, 2.5]}),
    File("transport.xpt", package(pyreadstat.write_xport, {"AGE": [1.0, 2.5]}), {"AGE": [1.0, 2.5]}),
    File(
        "titled.csv",
        text("Patients;2026\r\n\r\na;b\r\n1;x\r\n2;y\r\n"),
        {"a": [1, 2], "b": ["x", "y"]},
        options={"header": 3},
        normal=True,
    ),
    File(
        "one.csv", text('name\n"Doe, J"\n"Roe, R"\n"Poe, E"\n'), {"name": ["Doe, J", "Roe, R", "Poe, E"]}, normal=True
    ),
    File(
        "long.jsonl",
        text('{"n": 9007199254740993, "t": "a: 12345678901234567, b"}\n'),
        {"n": [2**53 + 1], "t": ["a: 12345678901234567, b"]},
        normal=True,
    ),
    File(
        "lines.jsonl",
        text('{"a": 1, "b": "x"}\n{"a": 2.5}\n{"b": "é", "a": null}\n'),
        {"a": [1.0, 2.5, None], "b": ["x", None, "é"]},
        normal=True,
    ),
    File("table.parquet", lambda path: pq.write_table(pa.table(PATIENTS), path), PATIENTS),
    File("table.feather", feather, PATIENTS),
    File("table.orc", lambda path: pyarrow.orc.write_table(pa.table(PATIENTS), str(path)), PATIENTS),
]

READ = [*NATIONAL, *MISSING, *CODES, *HOSTILE, *DATES, *WORKBOOKS, *OTHERS]
