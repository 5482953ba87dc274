"""Running a release from file to file: constant memory, all cores, and an output that appears whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import ReleaseError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.copying import Copying, Issuer, Progress
from sfumato.release.manifest import Manifest, attach, sidecar
from sfumato.release.scheme import TableScheme
from sfumato.tables.atomic import replace_text, replacing
from sfumato.tables.readers import format_of
from sfumato.tables.source import Source


def release_file(
    scheme: TableScheme,
    table: Any,
    target: str | Path,
    level: Level | float | str,
    key: Key,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    seal: Issuer | None = None,
    beside: Sequence[tuple[Level, Key]] = (),
) -> Manifest:
    """Write a copy of a table, and its manifest beside it.

    The same request gives the same bytes, so an interrupted run is finished by running it again.

    Args:
        beside: copies that were given under other keys; the policy's thresholds are tested on all of them together.

    """
    source, target = Source.of(table), Path(target)
    _check_target(source, target)
    asked = scheme.policy.ladder.level(level)
    scheme.check(source, key)
    scheme.check_motion(source)
    scheme.check_targets(source, [asked], key, beside)
    copying = Copying(scheme, source, format_of(target), asked, key, seal=seal, threads=threads, progress=progress)
    with replacing(target) as part:
        manifest = copying.write(part)
        replace_text(sidecar(target), manifest.dumps() + "\n")  # first, so that a copy never lacks it
    return manifest


def read_copy(path: str | Path) -> pa.Table:
    """Read a copy from any format, with the types and the manifest it was released with."""
    manifest = Manifest.of(path)
    source = manifest.source(path)
    return attach(pa.Table.from_batches(source.batches(), schema=source.schema), manifest)


def _check_target(source: Source, target: Path) -> None:
    format_of(target)
    if not target.parent.is_dir() or target.is_dir():
        raise ReleaseError(
            f"{target} must name a file in a folder that exists; make the folder, or choose another name"
        )
    if source.path is not None and target.exists() and target.samefile(source.path):
        raise ReleaseError(f"a copy must not replace its source {source.path}; choose another name")
