"""Copies in formats that are written whole: Excel workbooks, SPSS and Stata files.

They are made in memory, and read back before they leave: what such a format would change is refused.
"""

from __future__ import annotations

import abc
import datetime as dt
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release.encoders.encoder import Encoder
from sfumato.release.manifest import Manifest
from sfumato.tables.labels import label_of, labels_of
from sfumato.tables.readers import TableFile, read_opened

_EXACT = 2**53
"""Whole numbers up to here are exact in a format that has floats alone."""

_MOST_ROWS = (1 << 20) - 1
"""The rows of a sheet, without the names."""

_TIMES = re.compile(rb"<timestamp>.(\d\d \w{3} \d{4} \d\d:\d\d)</timestamp>")
"""Where a Stata file says when it was written."""

_NO_TIME = b"01 Jan 1980 00:00"


class _Whole(Encoder):
    """Keeps all rows until the end."""

    ending: str
    what: str

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        zoned = [f.name for f in schema if types.is_timestamp(f.type) and f.type.tz is not None]
        if zoned:
            raise ReleaseError(f"{self.what} has no time zones, and column {zoned[0]!r} does; write Parquet or CSV")
        fields = [f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in schema]
        self._schema, self._rows = pa.schema(fields), list[pa.RecordBatch]()

    def _write(self, batch: pa.RecordBatch) -> None:
        self._rows.append(batch.cast(self._schema))

    def close(self, manifest: Manifest) -> bytes:  # noqa: ARG002 - it is beside the copy
        table = pa.Table.from_batches(self._rows, self._schema)
        try:
            content = self._written(table)
        except TypeError as error:  # of a type that the format does not have
            raise ReleaseError(f"{self.what} cannot hold this copy: {error}; write Parquet or CSV") from None
        self._check(table, content)
        return content

    @abc.abstractmethod
    def _written(self, table: pa.Table) -> bytes:
        """The bytes of the file."""

    def _check(self, table: pa.Table, content: bytes) -> None:
        """Refuse to write what would be read as something else."""
        try:
            read = read_opened(TableFile(f"copy{self.ending}", lambda: io.BytesIO(content)), self._schema)
            back = pa.Table.from_batches(read.batches(table.column_names), read.schema)
        except SfumatoError as error:
            raise ReleaseError(f"{self.what} cannot hold this copy; write Parquet or CSV ({error})") from None
        for name in table.column_names:
            whole = types.is_integer(table.column(name).type) and _largest(table.column(name)) > _EXACT
            if whole or not table.column(name).combine_chunks().equals(back.column(name).combine_chunks()):
                raise ReleaseError(
                    f"{self.what} must hold every value as it is, and would change some of column {name!r}; write "
                    "Parquet or CSV"
                )


class Excel(_Whole):
    """A workbook of one sheet."""

    ending, what = ".xlsx", "an Excel workbook"

    def _written(self, table: pa.Table) -> bytes:
        import xlsxwriter  # noqa: PLC0415 - an extra, which was checked
        from xlsxwriter.worksheet import Worksheet  # noqa: PLC0415

        class Exact(Worksheet):  # type: ignore[misc] # it has no types
            """Writes all digits of a number, of which the format itself has no limit."""

            def _xml_number_element(self, number: float, attributes: tuple[Any, ...] = ()) -> None:
                text = "".join(f' {key}="{value}"' for key, value in attributes)
                self.fh.write(f"<c{text}><v>{number!r}</v></c>")

        if table.num_rows > _MOST_ROWS:
            raise ReleaseError(f"a sheet holds {_MOST_ROWS:,} rows, and the copy has {table.num_rows:,}; write Parquet")
        out = io.BytesIO()
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
        with xlsxwriter.Workbook(out, options) as book:
            book.set_properties({"created": dt.datetime(1980, 1, 1, tzinfo=dt.UTC)})
            formats = {key: book.add_format({"num_format": text}) for key, text in _FORMATS.items()}
            sheet = book.add_worksheet("copy", worksheet_class=Exact)
            sheet.write_row(0, 0, table.column_names)
            row = 0
            for batch in _in_microseconds(table).to_batches():
                for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    row += 1
                    for at, cell in enumerate(cells):
                        _write(sheet, row, at, cell, formats)
        return out.getvalue()


def _largest(column: pa.ChunkedArray) -> int:
    ends = pc.min_max(column).as_py()
    return int(max(abs(ends["min"] or 0), abs(ends["max"] or 0)))


_FORMATS = {dt.date: "yyyy-mm-dd", dt.datetime: "yyyy-mm-dd hh:mm:ss", dt.time: "hh:mm:ss"}


def _write(sheet: Any, row: int, at: int, cell: Any, formats: dict[type, Any]) -> None:
    if cell is None or cell != cell:  # noqa: PLR0124 - NaN
        return
    if isinstance(cell, dt.date | dt.time):
        sheet.write_datetime(row, at, cell, formats[type(cell)])
    elif isinstance(cell, str):
        sheet.write_string(row, at, cell)
    elif isinstance(cell, bool):
        sheet.write_boolean(row, at, cell)
    else:
        sheet.write_number(row, at, float(cell))


def _in_microseconds(table: pa.Table) -> pa.Table:
    """The table with points in time that Python has; finer ones are refused when the file is read back."""
    fine = [f.with_type(pa.timestamp("us")) if types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fine), safe=False)


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type of a column in a statistics file, which has numbers instead of truth values and decimals."""
    if types.is_boolean(kind):
        return pa.int8()
    return pa.float64() if types.is_decimal(kind) else kind


class StatisticsFile(_Whole):
    """A file of SPSS or Stata, with the labels of columns and codes."""

    def __init__(self, schema: pa.Schema, file_format: str) -> None:
        self._function = {"spss": "write_sav", "stata": "write_dta"}[file_format]
        self.ending, self.what = {"spss": (".sav", "an SPSS file"), "stata": (".dta", "a Stata file")}[file_format]
        super().__init__(schema)

    def _written(self, table: pa.Table) -> bytes:
        import polars as pl  # noqa: PLC0415 - an extra, which was checked
        import pyreadstat  # noqa: PLC0415

        frame = pl.from_arrow(table.cast(pa.schema([f.with_type(_stored(f.type)) for f in self._schema])))
        labels = {f.name: labels_of(f) for f in self._schema if labels_of(f)}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"copy{self.ending}"
            try:
                getattr(pyreadstat, self._function)(
                    frame,
                    str(path),
                    column_labels={f.name: label_of(f) for f in self._schema if label_of(f)},
                    variable_value_labels=labels,
                )
            except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError) as error:
                raise ReleaseError(f"{self.what} cannot hold this copy: {error}; write Parquet or CSV") from None
            return self._without_time(path.read_bytes())

    def _without_time(self, content: bytes) -> bytes:
        """The file without the time at which it was written, so that equal copies have equal bytes."""
        if self.ending == ".sav":
            return content[:92] + b"01 Jan 80" + b"00:00:00" + content[109:]
        return _TIMES.sub(lambda match: match[0].replace(match[1], _NO_TIME), content)
