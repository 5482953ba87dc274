"""Copying: a cleared copy as a stream of bytes, made while they are read, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sfumato.release.encoders import encoder
from sfumato.release.encoders.encoder import Encoder
from sfumato.release.gate import Clearance
from sfumato.release.manifest import Manifest, attach
from sfumato.release.perturbation import perturb_table
from sfumato.tables.content_digest import BLAKE3
from sfumato.tables.read_ahead import read_ahead
from sfumato.tables.source import Source

Progress = Callable[[int], None]
"""Called with the number of rows that were just done."""


class CopyStream:
    """The bytes of a copy in a format, or of an encoder: iterate over it once; then its manifest is there."""

    manifest: Manifest

    def __init__(
        self,
        clearance: Clearance[Source],
        encoding: str | Callable[[pa.Schema], Encoder],
        *,
        part_of: Manifest | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._clearance, self._threads, self._progress = clearance, threads, progress
        self._key = clearance.secret()
        layout, schema = clearance.layout, clearance.table.schema
        draft = layout.manifest(schema, clearance.level, self._key)
        if part_of is not None:  # made by a worker, whose key is that of the dataset alone
            draft = replace(draft, key=part_of.key, scheme=part_of.scheme)
        self._draft = clearance.issuer.begin(draft) if clearance.issuer else draft
        shown = layout.schema(schema)
        self._encoder = encoder(encoding, shown, self._draft) if isinstance(encoding, str) else encoding(shown)

    def __iter__(self) -> Iterator[bytes]:
        cleared, rows, digests = self._clearance, 0, []
        algorithm = cleared.issuer.digest_algorithm() if cleared.issuer else BLAKE3
        copies = perturb_table(cleared.layout, cleared.table, cleared.levels, self._key, self._threads, algorithm)
        for [(copy, digest)] in copies if self._threads == 1 else read_ahead(copies):
            yield self._encoder.write(copy)
            rows += copy.num_rows
            digests.append(digest)
            if self._progress:
                self._progress(copy.num_rows)
        filled = self._draft.filled(rows, digests, algorithm)
        self.manifest = cleared.issuer.finish(filled) if cleared.issuer else filled
        yield self._encoder.close(self.manifest)

    def write(self, path: Path) -> Manifest:
        """Write the copy to a file."""
        with path.open("wb") as file:
            file.writelines(self)
        self._encoder.insert_manifest(path, self.manifest)
        return self.manifest


def copy_tables(clearance: Clearance[Source], *, threads: int | None = None) -> list[pa.Table]:
    """The cleared copies as tables in memory, each with its manifest; levels share their common draws."""
    clearance.require_no_issuer()
    layout, source, key = clearance.layout, clearance.table, clearance.secret()
    batches = list(perturb_table(layout, source, clearance.levels, key, threads, in_memory=True))
    copies, schema = [], layout.schema(source.schema)
    for i, level in enumerate(clearance.levels):
        copy = pa.Table.from_batches([batch[i][0] for batch in batches], schema=schema)
        manifest = layout.manifest(source.schema, level, key)
        copies.append(attach(copy, manifest.filled(copy.num_rows, [batch[i][1] for batch in batches])))
    return copies
