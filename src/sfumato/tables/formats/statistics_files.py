"""Files of statistics packages: SPSS (`.sav`, `.zsav`, `.por`), Stata (`.dta`) and SAS (`.sas7bdat`, `.xpt`).

Codes stay codes; their labels, and those of columns, are in the metadata of the fields. Values that SPSS or Stata
declare as missing are null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.errors import SourceError, install_hint
from sfumato.tables.formats import BATCH, Open, TableReader
from sfumato.tables.formats.python_cells import column
from sfumato.tables.labels import Code, with_labels

READERS = {
    "spss": "read_sav",
    "spss portable": "read_por",
    "stata": "read_dta",
    "sas": "read_sas7bdat",
    "sas transport": "read_xport",
}
"""The function of pyreadstat for each format."""


def read_statistics_file(opened: Open, file_format: str) -> TableReader:
    """A file of a statistics package; it is read into memory."""
    try:
        import pyreadstat  # noqa: PLC0415 - an extra
    except ImportError:
        raise SourceError(f"files of SPSS, Stata and SAS need pyreadstat; {install_hint('files')}") from None
    try:
        with opened() as file:
            cells, about = getattr(pyreadstat, READERS[file_format])(file, output_format="dict")
    except (pyreadstat.PyreadstatError, pyreadstat.ReadstatError, ValueError) as error:
        raise SourceError(f"the file could not be read as {file_format}: {error}") from None
    columns = {name: column(name, list(values)) for name, values in cells.items()}
    fields = [_field(name, array, about) for name, array in columns.items()]
    table = pa.table(list(columns.values()), schema=pa.schema(fields))
    return TableReader(table.schema, table.num_rows, lambda names: table.select(names).to_batches(max_chunksize=BATCH))


def _field(name: str, array: pa.Array, about: Any) -> pa.Field:
    labels = about.variable_value_labels.get(name, {})
    return with_labels(pa.field(name, array.type), about.column_names_to_labels.get(name), _codes(labels))


def _codes(labels: dict[Any, str]) -> dict[Code, str]:
    """The labels, with whole numbers as such."""
    return {int(c) if isinstance(c, float) and c.is_integer() else c: text for c, text in labels.items()}
