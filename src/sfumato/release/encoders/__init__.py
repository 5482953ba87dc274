"""Encoders of copies: one for each file format that a copy can have, with the manifest inside where there is room."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from sfumato.errors import ReleaseError, install_hint
from sfumato.release.encoders.columnar import Arrow, ArrowStream, Orc, Parquet
from sfumato.release.encoders.encoder import Encoder
from sfumato.release.encoders.text import Csv, DialectCsv, Gzip, JsonLines
from sfumato.release.encoders.whole import Excel, StatisticsFile
from sfumato.release.manifest import Manifest
from sfumato.tables.dialect import PLAIN, Dialect

WRITTEN = ("parquet", "csv", "tsv", "arrow", "orc", "json lines", "excel", "spss", "stata")
"""The formats of files that a copy can have."""


def check_written(file_format: str) -> None:
    """Refuse a format that can be read alone, or that needs what is not installed."""
    if file_format not in WRITTEN:
        raise ReleaseError(f"a copy is written as {', '.join(WRITTEN)}, not as {file_format}; choose another ending")
    try:
        if file_format == "excel":
            import python_calamine  # noqa: F401, PLC0415 - an extra
            import xlsxwriter  # noqa: F401, PLC0415
        elif file_format in ("spss", "stata"):
            import polars  # noqa: F401, ICN001, PLC0415
            import pyreadstat  # noqa: F401, PLC0415
    except ImportError as error:
        raise ReleaseError(f"to write {file_format}, {error.name} is needed; {install_hint('files')}") from None


def encoder(file_format: str, schema: pa.Schema, draft: Manifest) -> Encoder:
    """The encoder of a format; `draft` is the manifest as far as it is known."""
    dialect = Dialect.of_schema(schema) or PLAIN
    if file_format == "csv.gz":
        return Gzip(encoder("csv", schema, draft))
    if file_format in ("csv", "tsv"):
        return _csv(schema, replace(dialect, separator="\t") if file_format == "tsv" else dialect)
    if file_format == "excel":
        return Excel(schema)
    if file_format in ("spss", "stata"):
        return StatisticsFile(schema, file_format)
    if file_format in ("parquet", "arrow"):
        return (Parquet if file_format == "parquet" else Arrow)(schema, draft)
    if file_format == "arrows":
        return ArrowStream(schema)
    return Orc(schema) if file_format == "orc" else JsonLines(schema)


def _csv(schema: pa.Schema, dialect: Dialect) -> Encoder:
    return Csv(schema.remove_metadata()) if dialect == PLAIN else DialectCsv(schema, dialect)
