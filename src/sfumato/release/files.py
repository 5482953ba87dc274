"""Releases of tables to files and other outputs: constant memory, all cores, and a copy that is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.copying import Progress
from sfumato.release.gate import Request, clear
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import METADATA, Manifest, attach
from sfumato.release.outputs import check_output, write_copy


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
    check_output(source, target)
    cleared = clear(Request.of(scheme, source, key), [scheme.policy.ladder.level(level)], key)
    return write_copy(cleared, target, threads=threads, progress=progress)


def to_pandas(copy: Any) -> Any:
    """A copy as a pandas data frame that keeps its manifest in `attrs`, from where all estimators read it.

    Args:
        copy: a pyarrow table as it was released, or the path of a file.

    """
    table = read_copy(copy) if isinstance(copy, str | Path) else copy
    frame = table.to_pandas()
    frame.attrs[METADATA.decode()] = Manifest.of(table).dumps()
    return frame


def read_copy(path: str | Path) -> pa.Table:
    """Read a copy from any format, with the types and the manifest it was released with."""
    manifest = Manifest.of(path)
    source = manifest.source(path)
    return attach(pa.Table.from_batches(source.batches(), schema=source.schema), manifest)
