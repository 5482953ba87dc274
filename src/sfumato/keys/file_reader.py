"""Binary files that are computed while they are read, at any position, such as decrypted ones."""

from __future__ import annotations

import abc
import io
from typing import IO, Any


class FileReader(io.RawIOBase, abc.ABC):
    """A read-only binary file; a subclass says how many bytes it has, and what they are."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self._position = size, 0

    @abc.abstractmethod
    def _bytes_at(self, position: int, most: int) -> memoryview | bytes:
        """Some bytes from a position on, at least one and at most so many."""

    def _read_into(self, view: memoryview, position: int) -> int:
        """Read some bytes from a position on into a buffer, and return their number, at least one."""
        piece = self._bytes_at(position, len(view))
        view[: len(piece)] = piece
        return len(piece)

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it can be read at any position: always."""
        return True

    def tell(self) -> int:
        """The position from which the next bytes are read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Continue to read at another position."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise ValueError(f"a position in a file must not be negative, got {start + offset}")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as many bytes as it has and the file still holds."""
        view, done = memoryview(buffer).cast("B"), 0
        view = view[: max(0, self.size - self._position)]
        while done < len(view):
            count = self._read_into(view[done:], self._position)
            self._position += count
            done += count
        return done

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, by default all that are left."""
        return b"".join(self._pieces(self.size if size is None or size < 0 else size))

    def read_buffer(self, size: int) -> Any:
        """The next bytes in memory that Arrow, which calls this, reuses: fresh memory costs as much as decryption."""
        import pyarrow as pa  # noqa: PLC0415 - only where Arrow reads

        buffer = pa.allocate_buffer(max(0, min(size, self.size - self._position)))
        self.readinto(buffer)
        return buffer

    def readall(self) -> bytes:
        """All bytes that are left."""
        return self.read()

    def _pieces(self, size: int) -> list[memoryview | bytes]:
        pieces, end = [], min(self._position + size, self.size)
        while self._position < end:
            pieces.append(self._bytes_at(self._position, end - self._position))
            self._position += len(pieces[-1])
        return pieces


BinaryFile = IO[bytes] | FileReader
"""A binary file to read from at any position."""
