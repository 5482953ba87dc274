"""Workbooks (`.xlsx`, `.xls`, `.ods`): one sheet is a table, whose first row that is not empty names the columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.errors import SourceError, install_hint
from sfumato.tables.cell_text import read_cells
from sfumato.tables.dialect import PLAIN
from sfumato.tables.file_options import FileOptions
from sfumato.tables.formats import BATCH, Open, TableReader
from sfumato.tables.formats.csv_detection import ColumnShapes, decide
from sfumato.tables.formats.python_cells import as_text, column


def read_excel(opened: Open, options: FileOptions) -> TableReader:
    """One sheet of a workbook; it is read into memory."""
    table = _table(opened, options)
    return TableReader(table.schema, table.num_rows, lambda names: table.select(names).to_batches(max_chunksize=BATCH))


def _table(opened: Open, options: FileOptions) -> pa.Table:
    try:
        import python_calamine  # noqa: PLC0415 - an extra
    except ImportError:
        raise SourceError(f"workbooks need python-calamine; {install_hint('files')}") from None
    try:
        with opened() as file:
            book = python_calamine.CalamineWorkbook.from_filelike(file)
            rows = book.get_sheet_by_name(_sheet(book, options)).to_python(skip_empty_area=False)
    except python_calamine.CalamineError as error:
        raise SourceError(f"the workbook could not be read: {error}; open it and save it again as .xlsx") from None
    names, cells = _parted(rows, options)
    unknown = [name for name in options.text if name not in names.values()]
    if unknown:
        raise SourceError(f"`text` in [file] must name columns of the sheet, and {unknown[0]!r} is none")
    found = {name: column(name, _stated(name, [row[at] for row in cells], options)) for at, name in names.items()}
    if len(found) < len(names):
        raise SourceError("the columns of a sheet must have different names; rename one")
    return _with_text_read(pa.table(found), options)


def _sheet(book: Any, options: FileOptions) -> str:
    """The sheet that is stated, or the only one that is not empty."""
    names = list(book.sheet_names)
    if options.sheet:
        if options.sheet not in names:
            raise SourceError(f"`sheet` must be one of {', '.join(map(repr, names))}, got {options.sheet!r}")
        return options.sheet
    filled = [name for name in names if book.get_sheet_by_name(name).to_python(nrows=2)]
    if len(filled) != 1:
        raise SourceError(
            f"a workbook must have one sheet, or it must be stated which one is the table, and this one has "
            f"{', '.join(map(repr, filled)) or 'none'}; state it: `sheet = ...` in [file] of the policy, or --file "
            "sheet=..."
        )
    return str(filled[0])


def _parted(rows: list[list[Any]], options: FileOptions) -> tuple[dict[int, str], list[list[Any]]]:
    """The positions and names of the columns, and the rows below them."""
    filled = [number for number, row in enumerate(rows) if _is_filled(row)]
    first = options.header - 1 if options.header else next(iter(filled), 0)
    if first not in filled:
        raise SourceError(f"row {first + 1} of the sheet must name the columns, and it is empty; state `header`")
    names, body = rows[first], [rows[number] for number in filled if number > first]
    used = [at for at in range(len(names)) if _is_filled([names[at], *(row[at] for row in body)])]
    nameless = [at for at in used if names[at] == ""]
    if nameless:
        raise SourceError(
            f"row {first + 1} of the sheet must name all columns, and column {nameless[0] + 1} has no name; add it, or "
            "state in which row the names are: `header = ...` in [file] of the policy, or --file header=..."
        )
    return {at: as_text(names[at]) for at in used}, body


def _is_filled(cells: list[Any]) -> bool:
    return any(cell != "" for cell in cells)


def _stated(name: str, cells: list[Any], options: FileOptions) -> list[Any]:
    """The cells of a column without those that are stated as missing, and as text where that is stated."""
    if options.missing:
        cells = ["" if as_text(cell) in options.missing else cell for cell in cells]
    return [as_text(cell) for cell in cells] if name in options.text else cells


def _with_text_read(table: pa.Table, options: FileOptions) -> pa.Table:
    """The table, with numbers and dates that the workbook holds as text read as such; codes stay text."""
    texts = [ColumnShapes(field.name) for field in table.schema if field.type == pa.string()]
    for one in texts:
        one.add(table.column(one.name).combine_chunks())
    decided = decide(texts, PLAIN, options)
    for one in texts:
        kind = decided.types[one.name]
        if kind not in (pa.float64(), pa.date32(), pa.timestamp("s")):
            continue
        at, cells = table.column_names.index(one.name), table.column(one.name).combine_chunks()
        read = read_cells(decided.dialect, one.name, cells, kind)
        table = table.set_column(at, one.name, read)
    return table
