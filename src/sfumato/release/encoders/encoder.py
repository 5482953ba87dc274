"""The interface of encoders: batches go in, bytes come out, and a copy can be written or sent while it is made."""

from __future__ import annotations

import abc
import io
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.release.manifest import Manifest


class _Buffer(io.RawIOBase):
    """A file object that keeps what is written to it until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, content: Any) -> int:
        self._parts.append(bytes(content))
        self._at += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        taken, self._parts = b"".join(self._parts), []
        return taken


class Encoder(abc.ABC):
    """Takes batches of `BATCH` rows, then the finished manifest; returns the bytes of the file so far."""

    def __init__(self) -> None:
        self._out = _Buffer()

    def write(self, batch: pa.RecordBatch) -> bytes:
        """Append a batch."""
        self._write(batch)
        return self._out.take()

    @abc.abstractmethod
    def _write(self, batch: pa.RecordBatch) -> None:
        """Append a batch to the buffer."""

    @abc.abstractmethod
    def close(self, manifest: Manifest) -> bytes:
        """The end of the copy."""

    def insert_manifest(self, part: Path, manifest: Manifest) -> None:  # noqa: B027 - most formats need nothing
        """Put the manifest into a finished file, where the format has it in front."""
