"""Audit of files: copies outside a vault, and the table that they were made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.audit.alignment import are_aligned, match_records, require_identifiers, shared_identifiers
from sfumato.audit.audit import audit
from sfumato.audit.checks import Check
from sfumato.audit.outliers import singling_out_risk
from sfumato.audit.result import Audit
from sfumato.errors import ManifestError
from sfumato.kernels import Words
from sfumato.models import of_type
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
    without: Sequence[str] = (),
    quasi: Sequence[str] = (),
    stage: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Audit copies in files; if there are more than `rows` records, a random sample of them is attacked."""
    stage("reading the copies")
    manifests = [Manifest.of(copy) for copy in copies]
    sources = [Source.of(original), *(m.source(copy) for m, copy in zip(manifests, copies, strict=True))]
    ids = require_identifiers(sources[0].schema.names, shared_identifiers(manifests))
    table, *tables = _sampled(sources, rows, ids)
    named = {name: attach(t, m) for name, t, m in zip(_names(copies), tables, manifests, strict=True)}
    best = max(manifests, key=lambda manifest: manifest.fidelity)
    stage("searching for outliers")
    noise = of_type(best.models, GaussianNoise)
    outliers = singling_out_risk(lambda: _numbered(sources[0]), noise[0], tuple(ids)) if noise else None
    faults = [check for copy, manifest in zip(copies, manifests, strict=True) for check in _integrity(copy, manifest)]
    count = max(manifest.rows for manifest in manifests)
    return audit(
        *(table, named),
        attacks=attacks,
        singling_out=outliers,
        faults=faults,
        rows=count,
        without=without,
        quasi=quasi,
        stage=stage,
    )


def _integrity(copy: str | Path, manifest: Manifest) -> list[Check]:
    """A failed check if the content of a file does not match the digest in its manifest."""
    try:
        manifest.verify(copy)
    except ManifestError:
        return [Check(Path(copy).name, "the file has been changed since it was released", 0.0)]
    return []


def _sampled(sources: Sequence[Source], rows: int, ids: list[str]) -> list[pa.Table]:
    """The same rows of all tables; tables of the same records in the same order are not read into memory."""
    tables = [sampled(_numbered(source), rows)[1] for source in sources]
    if are_aligned(tables, ids):
        return tables
    matched = match_records([pa.Table.from_batches(source.batches(), source.schema) for source in sources], ids)
    return [sampled(_numbered(Source.of(table)), rows)[1] for table in matched]


def _numbered(source: Source) -> Iterator[tuple[Words, pa.RecordBatch]]:
    """The batches of a table with the row number of each row."""
    first = 0
    for batch in source.batches():
        yield np.arange(first, first + batch.num_rows, dtype=np.uint64), batch
        first += batch.num_rows


def _names(copies: Sequence[str | Path]) -> list[str]:
    """The names of the files, numbered where several have the same name."""
    names = [Path(copy).stem for copy in copies]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]
