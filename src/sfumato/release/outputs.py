"""Where copies are written: a file, here or in an object store, a table in a database, or a table of Delta Lake.

Wherever it is, a copy appears whole or not at all, with its manifest.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.release.copying import CopyStream, Progress
from sfumato.release.encoders import check_written
from sfumato.release.encoders.database import DatabaseCopy
from sfumato.release.encoders.delta import DeltaFile
from sfumato.release.gate import Clearance
from sfumato.release.manifest import Manifest, sidecar
from sfumato.tables.atomic import atomic_path, atomic_upload, remove, upload_text, write_text
from sfumato.tables.database import MANIFESTS, ROW, DatabaseTable, is_database, read_manifest, write_manifest
from sfumato.tables.filesystem import is_remote, join
from sfumato.tables.lake import commit_file, committed_note, is_delta_name, is_lake, require_delta
from sfumato.tables.readers import format_of
from sfumato.tables.source import Source


def check_output(source: Source, output: str | Path) -> None:
    """Refuse an output that cannot be written, that is the source itself, or a table that is no copy."""
    if is_database(output) or is_delta_name(output):
        if not is_database(output):
            require_delta()
        if _is_other_table(output):
            raise ReleaseError("a copy replaces only a copy, and the table of that name is none; choose another name")
        return
    if source.uri and str(output) == source.uri:
        raise ReleaseError(f"a copy must not replace its source {source.uri}; choose another name")
    check_written(format_of(output))
    if not is_remote(output):
        _check_file(source, Path(output))
    elif format_of(output) == "arrow":
        raise ReleaseError("an Arrow file is not written in one go, as an object store needs it; choose Parquet")


def _is_other_table(output: str | Path) -> bool:
    """Whether a table of this name is there that is no copy."""
    if is_database(output):
        columns = DatabaseTable.of(str(output)).columns()  # a manifest may be of a copy that was there before
        return bool(columns) and (ROW not in columns or read_manifest(str(output)) is None)
    return is_lake(output) and committed_note(output) is None


def _check_file(source: Source, path: Path) -> None:
    if not path.parent.is_dir() or path.is_dir():
        raise ReleaseError(f"{path} must name a file in a folder that exists; make the folder, or choose another name")
    if source.path is not None and path.exists() and path.samefile(source.path):
        raise ReleaseError(f"a copy must not replace its source {source.path}; choose another name")
    if source.path is not None and source.path.is_dir() and path.resolve().is_relative_to(source.path.resolve()):
        raise ReleaseError(f"a copy must not be written into its source {source.path}; choose another folder")
    if path.exists() and not _is_copy(path):
        raise ReleaseError(f"a copy replaces only a copy, and {path} is none; choose another name, or delete it")


def _is_copy(path: Path) -> bool:
    try:
        Manifest.of(path)
    except SfumatoError:
        return False
    return True


def write_copy(
    clearance: Clearance[Source], output: str | Path, *, threads: int | None = None, progress: Progress | None = None
) -> Manifest:
    """Write a cleared copy, and its manifest inside or beside it."""
    if is_database(output):
        return _write_to_database(clearance, str(output), threads, progress)
    if is_delta_name(output):
        return _write_to_delta(clearance, str(output), threads, progress)
    stream = CopyStream(clearance, format_of(output), threads=threads, progress=progress)
    if is_remote(output):
        with atomic_upload(str(output)) as file:
            file.writelines(stream)
            upload_text(sidecar(str(output)), stream.manifest.dumps() + "\n")
        return stream.manifest
    with atomic_path(Path(output)) as part:
        manifest = stream.write(part)
        write_text(sidecar(Path(output)), manifest.dumps() + "\n")  # first, so that a copy never lacks it
    return manifest


def write_beside(table: str | Path, manifest: Manifest) -> str:
    """Write a manifest beside a table that is there already, and say where."""
    if not is_database(table):
        upload_text(sidecar(str(table)), manifest.dumps())
        return sidecar(str(table))
    address = DatabaseTable.of(str(table))
    with address.cursor() as cursor:
        write_manifest(address, cursor, manifest.dumps())
    return f"it into the table {MANIFESTS}"


def _write_to_database(
    clearance: Clearance[Source], uri: str, threads: int | None, progress: Progress | None
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


def _write_to_delta(
    clearance: Clearance[Source], folder: str, threads: int | None, progress: Progress | None
) -> Manifest:
    """Write a cleared copy as the next version of a table of Delta Lake, whose commit has the manifest."""
    stream = CopyStream(clearance, DeltaFile, threads=threads, progress=progress)
    name = f"part-{secrets.token_hex(16)}.parquet"
    size = 0
    with atomic_upload(join(folder, name)) as file:
        for chunk in stream:
            size += file.write(chunk)
    manifest, schema = stream.manifest, clearance.layout.schema(clearance.table.schema)
    try:
        commit_file(folder, name, size, manifest.rows, DeltaFile.stored(schema), manifest.dumps())
    except BaseException:
        remove([join(folder, name)])
        raise
    return manifest
