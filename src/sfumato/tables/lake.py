"""Tables of lakes: Delta Lake and Iceberg, read without Java, at one version.

A folder with `_delta_log` is a table of Delta Lake, one with `metadata/*.metadata.json` a table of Iceberg; a version
is named as in `folder?version=3`. What such a table removed stays in its files, so that these must not be read as a
folder. A table of Delta Lake can be written: a folder whose name ends in `.delta`, or one that is such a table already.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import SfumatoError, SourceError, install_hint
from sfumato.tables.filesystem import is_folder, join, list_files
from sfumato.tables.formats import TableReader
from sfumato.tables.formats.columnar import without_views

_VERSION = re.compile(r"(?P<folder>.+)\?version=(?P<version>\d+)")
_NOTE = "sfumato.manifest"
"""The key of the manifest of a copy, in the commit that made its version."""

_MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES")
"""Commits that leave the rows of a version what they are."""

_METADATA = re.compile(r"(?P<number>\d+)-.*\.metadata\.json|v(?P<old>\d+)\.metadata\.json")


def is_lake(table: Any) -> bool:
    """Whether this is the path or URL of a table of Delta Lake or Iceberg."""
    if not isinstance(table, str | Path):
        return False
    folder, _ = _parts(table)
    return is_folder(folder) and (is_folder(join(folder, "_delta_log")) or bool(_metadata_files(folder)))


def is_delta_name(output: str | Path) -> bool:
    """Whether an output is a table of Delta Lake: by its name, or since there is one."""
    name = str(output).rstrip("/")
    return name.endswith(".delta") or is_folder(join(name, "_delta_log"))


def require_delta() -> None:
    """Refuse an output of Delta Lake before any work, where its library is missing."""
    with _errors("", "written"):
        import deltalake  # noqa: F401, PLC0415 - an extra


def commit_file(folder: str, name: str, size: int, rows: int, schema: pa.Schema, note: str) -> None:
    """Let a Parquet file in the folder be the whole of the table's next version, with a note in its commit."""
    with _errors(folder, "written"):
        from deltalake import CommitProperties, DeltaTable, Schema  # noqa: PLC0415 - an extra
        from deltalake.transaction import AddAction, create_table_with_add_actions  # noqa: PLC0415

        stats = json.dumps({"numRecords": rows})
        added = [AddAction(name, size, {}, int(time.time() * 1000), data_change=True, stats=stats)]
        stored, about = Schema.from_arrow(schema), CommitProperties(custom_metadata={_NOTE: note})
        if is_folder(join(folder, "_delta_log")):
            table = DeltaTable(folder)
            table.create_write_transaction(added, "overwrite", stored, [], commit_properties=about)
        else:
            create_table_with_add_actions(folder, stored, added, "error", [], commit_properties=about)


def committed_note(table: str | Path) -> str | None:
    """The manifest in the commit that made the version of a table of Delta Lake that is asked for."""
    folder, version = _parts(table)
    if not is_folder(join(folder, "_delta_log")):
        return None
    with _errors(folder, "read"):
        from deltalake import DeltaTable  # noqa: PLC0415 - an extra

        opened = DeltaTable(folder)  # the history of an earlier version would be that of this one, misnumbered
        asked = opened.version() if version is None else version
        for commit in opened.history():  # the latest first
            if commit["version"] > asked or (_NOTE not in commit and commit.get("operation") in _MAINTENANCE):
                continue
            return str(commit[_NOTE]) if _NOTE in commit else None
        return None


def read_lake(table: str | Path) -> TableReader:
    """The table at the version that it has now, or at the one that its address names."""
    folder, version = _parts(table)
    with _errors(folder, "read"):
        return _delta(folder, version) if is_folder(join(folder, "_delta_log")) else _iceberg(folder, version)


@contextlib.contextmanager
def _errors(folder: str, done: str) -> Iterator[None]:
    """Says in a sentence what the libraries raise, which have errors of many types."""
    try:
        yield
    except ImportError as error:
        raise SourceError(f"tables of lakes need {error.name}; {install_hint('lakes')}") from None
    except SfumatoError:
        raise
    except Exception as error:
        causes = " ".join(str(error).split()) or type(error).__name__  # a line each, and the first says least
        raise SourceError(f"the table in {folder} could not be {done}: {causes[:400]}") from None


def _parts(table: str | Path) -> tuple[str, int | None]:
    """The folder of a table, and the version that is asked for."""
    found = _VERSION.fullmatch(str(table))
    return (found["folder"], int(found["version"])) if found else (str(table), None)


def _delta(folder: str, version: int | None) -> TableReader:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    opened = DeltaTable(folder, version=version)
    data = opened.to_pyarrow_dataset()
    schema = without_views(data.schema.remove_metadata())

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        return (batch.cast(wanted) for batch in data.to_batches(columns=names) if batch.num_rows)

    return TableReader(schema, data.count_rows(), batches)


def _iceberg(folder: str, version: int | None) -> TableReader:
    from pyiceberg.table import StaticTable  # noqa: PLC0415 - an extra

    _, name = _metadata_files(folder)[-1]
    opened = StaticTable.from_metadata(join(folder, f"metadata/{name}"))
    if version is not None and version not in {one.snapshot_id for one in opened.snapshots()}:
        known = ", ".join(str(one.snapshot_id) for one in opened.snapshots())
        raise SourceError(f"a version of a table of Iceberg is one of its snapshots, {known}, got {version}")
    current = opened.current_snapshot()
    chosen = version if version is not None else None if current is None else current.snapshot_id
    scan = opened.scan(snapshot_id=chosen)
    schema = without_views(scan.to_arrow_batch_reader().schema.remove_metadata())
    schema = pa.schema([pa.field(field.name, field.type) for field in schema])

    def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([schema.field(name) for name in names])
        reader = opened.scan(snapshot_id=chosen, selected_fields=tuple(names)).to_arrow_batch_reader()
        return (batch.select(names).cast(wanted) for batch in reader if batch.num_rows)

    return TableReader(schema, scan.count(), batches)


def _metadata_files(folder: str) -> list[tuple[int, str]]:
    """The metadata files of a table of Iceberg, by their numbers."""
    if not is_folder(join(folder, "metadata")):
        return []
    names = [file.name for file in list_files(join(folder, "metadata"))]
    found = [(name, _METADATA.fullmatch(name)) for name in names]
    return sorted((int(match["number"] or match["old"]), name) for name, match in found if match)
