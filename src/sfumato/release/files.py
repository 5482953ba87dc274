"""Releases from file to file: constant memory, all cores, and a copy that appears whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import ReleaseError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.copying import CopyStream, Progress
from sfumato.release.encoders import check_written
from sfumato.release.encoders.database import DatabaseCopy
from sfumato.release.gate import Clearance, Request, clear
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import Manifest, attach, sidecar
from sfumato.tables.atomic import atomic_path, write_text
from sfumato.tables.database import DatabaseTable, is_database
from sfumato.tables.readers import format_of
from sfumato.tables.source import Source


def release_file(
    scheme: TableLayout,
    table: Any,
    target: str | Path,
    level: Level | float | str,
    key: Key,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a copy of a table, and its manifest beside it.

    The same request gives the same bytes, so an interrupted run is finished by running it again.
    """
    source = scheme.policy.source(table)
    check_target(source, target)
    cleared = clear(Request.of(scheme, source, key), [scheme.policy.ladder.level(level)], key)
    if is_database(target):
        return _write_to_database(cleared, str(target), threads=threads, progress=progress)
    return write_copy(cleared, Path(target), threads=threads, progress=progress)


def write_copy(
    clearance: Clearance[Source], target: Path, *, threads: int | None = None, progress: Progress | None = None
) -> Manifest:
    """Write a cleared copy to a file, and its manifest beside it."""
    stream = CopyStream(clearance, format_of(target), threads=threads, progress=progress)
    with atomic_path(target) as part:
        manifest = stream.write(part)
        write_text(sidecar(target), manifest.dumps() + "\n")  # first, so that a copy never lacks it
    return manifest


def _write_to_database(
    clearance: Clearance[Source], uri: str, *, threads: int | None, progress: Progress | None
) -> Manifest:
    """Write a cleared copy to a table, which appears with its manifest when all is written."""
    address = DatabaseTable.of(uri)
    with address.cursor() as cursor:
        stream = CopyStream(
            clearance, lambda schema: DatabaseCopy(schema, address, cursor), threads=threads, progress=progress
        )
        for _ in stream:
            pass
    return stream.manifest


def read_copy(path: str | Path) -> pa.Table:
    """Read a copy from any format, with the types and the manifest it was released with."""
    manifest = Manifest.of(path)
    source = manifest.source(path)
    return attach(pa.Table.from_batches(source.batches(), schema=source.schema), manifest)


def check_target(source: Source, target: str | Path) -> None:
    """Refuse a target that is no file, or the source itself."""
    if is_database(target):
        DatabaseTable.of(str(target))
        return
    target = Path(target)
    check_written(format_of(target))
    if not target.parent.is_dir() or target.is_dir():
        raise ReleaseError(
            f"{target} must name a file in a folder that exists; make the folder, or choose another name"
        )
    if source.path is not None and target.exists() and target.samefile(source.path):
        raise ReleaseError(f"a copy must not replace its source {source.path}; choose another name")
