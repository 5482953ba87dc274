"""A copy as bytes, made while they are asked for: constant memory, whoever takes them and however slowly."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from pathlib import Path

from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.encoders import encoder
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme
from sfumato.tables.source import Source

Progress = Callable[[int], None]
"""Told the number of rows that were just done."""


class Issuer(abc.ABC):
    """Whoever answers for copies, and is asked before one is whole."""

    @abc.abstractmethod
    def begin(self, draft: Manifest) -> Manifest:
        """The manifest with what is known beforehand of who answers for the copy."""

    @abc.abstractmethod
    def finish(self, manifest: Manifest) -> Manifest:
        """The signed manifest; by an error, the copy is held back."""


class Copying:
    """Iterate over it for the bytes of a copy; then its manifest is there."""

    manifest: Manifest

    def __init__(
        self,
        scheme: TableScheme,
        source: Source,
        form: str,
        level: Level,
        key: Key,
        *,
        seal: Issuer | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._scheme, self._source, self._level, self._key = scheme, source, level, key
        self._seal, self._threads, self._progress = seal, threads, progress
        draft = scheme.manifest(source.schema, level, key)
        self._draft = seal.begin(draft) if seal else draft
        self._encoder = encoder(form, scheme.schema(source.schema), self._draft)

    def __iter__(self) -> Iterator[bytes]:
        rows, digests = 0, []
        for [(copy, mark)] in self._scheme.blurred(self._source, [self._level], self._key, self._threads):
            yield self._encoder.write(copy)
            rows += copy.num_rows
            digests.append(mark)
            if self._progress:
                self._progress(copy.num_rows)
        filled = self._draft.filled(rows, digests)
        self.manifest = self._seal.finish(filled) if self._seal else filled
        yield self._encoder.close(self.manifest)

    def write(self, path: Path) -> Manifest:
        """Write the copy to a file."""
        with path.open("wb") as file:
            file.writelines(self)
        self._encoder.mend(path, self.manifest)
        return self.manifest
