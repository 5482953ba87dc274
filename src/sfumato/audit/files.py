"""Audits of loose files: copies, and the table they were made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.audit import audit
from sfumato.audit.exposure import exposure
from sfumato.audit.matching import matched, shared_ids
from sfumato.audit.result import Audit
from sfumato.models import GaussianNoise
from sfumato.release.manifest import Manifest, attach
from sfumato.release.sampling import sampled
from sfumato.schema.table import Source


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
    tables = [_read(manifest, copy) for manifest, copy in zip(manifests, copies, strict=True)]
    source = Source.of(original)
    table = pa.Table.from_batches(source.batches(), source.schema)
    ids = [name for name in shared_ids(manifests) if name in table.column_names]
    whole, *found = matched([table, *tables], ids)
    places, part = sampled(_numbered(whole), rows)
    chosen = pa.array(places)
    names = _names(copies, manifests)
    some = {n: attach(t.take(chosen), m) for n, t, m in zip(names, found, manifests, strict=True)}
    best = max(manifests, key=lambda manifest: manifest.given)
    stage("looking for outliers")
    noise = [model for model in best.models if isinstance(model, GaussianNoise)]
    exposed = exposure(lambda: _numbered(whole), noise[0], tuple(ids)) if noise else None
    return audit(part, some, attacks=attacks, exposure=exposed, rows=whole.num_rows, stage=stage)


def _read(manifest: Manifest, copy: Any) -> pa.Table:
    source = manifest.source(copy)
    return pa.Table.from_batches(source.batches(), source.schema)


def _numbered(table: pa.Table) -> Any:
    first = 0
    for batch in Source.of(table).batches():
        yield np.arange(first, first + batch.num_rows, dtype=np.uint64), batch
        first += batch.num_rows


def _names(copies: Sequence[str | Path], manifests: Sequence[Manifest]) -> list[str]:
    """Who holds each copy: the recipient it was made for, else the file's name; told apart where they are the same."""
    names = [manifest.recipient or Path(copy).stem for manifest, copy in zip(manifests, copies, strict=True)]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
