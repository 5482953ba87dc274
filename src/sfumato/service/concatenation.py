"""Several files read as one, without a copy of their content."""

from __future__ import annotations

import bisect
import io
import itertools
from collections.abc import Callable, Sequence

from sfumato.keys.file_reader import BinaryFile, FileReader


class ConcatenatedFile(FileReader):
    """The content of several files, one after the other; one of them is open at a time."""

    def __init__(self, openers: Sequence[Callable[[], BinaryFile]]) -> None:
        self._openers = openers
        self._starts = [0, *itertools.accumulate(map(_size, openers))]
        self._opened: tuple[int, BinaryFile] | None = None
        super().__init__(self._starts[-1])

    def close(self) -> None:
        """Close the file that is open."""
        if self._opened is not None:
            self._opened[1].close()
        super().close()

    def _bytes_at(self, position: int, most: int) -> bytes:
        number = bisect.bisect_right(self._starts, position) - 1
        if self._opened is None or self._opened[0] != number:
            if self._opened is not None:
                self._opened[1].close()
            self._opened = number, self._openers[number]()
        part = self._opened[1]
        part.seek(position - self._starts[number])
        return part.read(most)


def _size(opener: Callable[[], BinaryFile]) -> int:
    with opener() as file:
        return file.seek(0, io.SEEK_END)
