"""Audits of loose files: copies, and the table they were made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.alignment import are_aligned, matched, needed, shared_ids
from sfumato.audit.audit import audit
from sfumato.audit.checks import Check
from sfumato.audit.outliers import exposure
from sfumato.audit.result import Audit
from sfumato.errors import ManifestError
from sfumato.kernels import Words
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.manifest import Manifest, attach
from sfumato.tables.sampling import sampled
from sfumato.tables.source import Source


def audit_files(
    original: Any,
    copies: Sequence[str | Path],
    *,
    attacks: Sequence[str] | None = None,
    rows: int = 100_000,
    stage: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit copies as they lie there; a part of the records, evenly spread, if there are more than `rows`."""
    stage("reading the copies")
    manifests = [Manifest.of(copy) for copy in copies]
    sources = [Source.of(original), *(m.source(copy) for m, copy in zip(manifests, copies, strict=True))]
    ids = needed(sources[0].schema.names, shared_ids(manifests))
    table, *found = _sampled(sources, rows, ids)
    some = {n: attach(t, m) for n, t, m in zip(_names(copies), found, manifests, strict=True)}
    best = max(manifests, key=lambda manifest: manifest.fidelity)
    stage("looking for outliers")
    noise = [model for model in best.models if isinstance(model, GaussianNoise)]
    exposed = exposure(lambda: _numbered(sources[0]), noise[0], tuple(ids)) if noise else None
    faults = [check for copy, manifest in zip(copies, manifests, strict=True) for check in _changed(copy, manifest)]
    count = max(manifest.rows for manifest in manifests)
    return audit(table, some, attacks=attacks, exposure=exposed, faults=faults, rows=count, stage=stage)


def _changed(copy: str | Path, manifest: Manifest) -> list[Check]:
    """Whether a file is not as it was released."""
    try:
        manifest.verify(copy)
    except ManifestError:
        return [Check(Path(copy).name, "the file has been changed since it was released", 0.0)]
    return []


def _sampled(sources: Sequence[Source], rows: int, ids: list[str]) -> list[pa.Table]:
    """The same rows of all tables: where they hold the same records in the same order, without reading them whole."""
    parts = [sampled(_numbered(source), rows) for source in sources]
    tables = [table for _, table in parts]
    if are_aligned(tables, ids):
        return tables
    whole = matched([pa.Table.from_batches(source.batches(), source.schema) for source in sources], ids)
    return [sampled(_numbered(Source.of(table)), rows)[1] for table in whole]


def _numbered(source: Source) -> Iterator[tuple[Words, pa.RecordBatch]]:
    first = 0
    for batch in source.batches():
        yield np.arange(first, first + batch.num_rows, dtype=np.uint64), batch
        first += batch.num_rows


def _names(copies: Sequence[str | Path]) -> list[str]:
    """The files' names; told apart where they are the same."""
    names = [Path(copy).stem for copy in copies]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
