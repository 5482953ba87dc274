"""Quotes in CSV files: a file in which a quote is not closed would lose the rows that follow it."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import SourceError
from sfumato.kernels.compiled import njit

_START, _PLAIN, _QUOTED, _CLOSED, _BAD = range(5)
"""At the start of a cell, within a plain one, within quotes, after a quote that ends them or begins a pair, refused."""

_RETURN, _NEWLINE = b"\r\n"


class QuoteCheck(io.RawIOBase):
    """Reads a CSV file through, and knows at its end whether every quoted cell was closed."""

    def __init__(self, file: Any, separator: str, quote: str = '"') -> None:
        super().__init__()
        self._file, self._signs = file, (ord(separator), ord(quote))
        self._state, self._line, self._opened = _START, 1, 0

    def readable(self) -> bool:
        """Whether this can be read, as it can."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        content: bytes = self._file.read(None if size < 0 else size)
        codes = np.frombuffer(content, np.uint8)
        self._state, self._line, self._opened = _scan(codes, *self._signs, self._state, self._line, self._opened)
        return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def check(self) -> None:
        """Refuse a file, read to its end, in which a quote is not closed or text follows one that is."""
        if self._state in (_QUOTED, _BAD):
            raise SourceError(
                f"a quoted cell must end with a quote and then a separator or a line, and the one that begins in line "
                f"{self._opened:,} does not; close it, or double the quotes within it"
            )


@njit(cache=True, nogil=True)
def _scan(  # pragma: no cover - compiled
    codes: npt.NDArray[np.uint8], separator: int, quote: int, state: int, line: int, opened: int
) -> tuple[int, int, int]:
    """The state after some bytes, the number of the line, and of the line where the last quoted cell began."""
    for i in range(codes.shape[0]):
        code = codes[i]
        if state == _BAD:
            break
        if code == _NEWLINE:
            line += 1
        if state == _QUOTED:
            if code == quote:
                state = _CLOSED
        elif code in (separator, _NEWLINE, _RETURN):
            state = _START
        elif state == _START and code == quote:
            state, opened = _QUOTED, line
        elif state == _CLOSED:
            state = _QUOTED if code == quote else _BAD
        else:
            state = _PLAIN
    return state, line, opened
