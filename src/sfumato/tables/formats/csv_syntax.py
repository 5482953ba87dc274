"""The syntax of a CSV file: its encoding, its separator and quotes, and a view of it as UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from typing import Any

from sfumato.errors import SourceError
from sfumato.tables.dialect import Dialect
from sfumato.tables.file_options import FileOptions
from sfumato.tables.formats import Open

_CHUNK = 1 << 20

_SIGNATURES = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Byte order signatures, with the encodings that they stand for."""

_START = 16
"""More bytes than such a line and the signature have."""

_LINES = 50
"""The number of lines that are compared."""

_SEPARATORS = ";\t|,"

_FEWEST_BELOW = 3
"""The fewest lines below a first line that may be taken for a title."""

_ALIKE = 0.8
"""The share of the lines below a title that have the same number of cells."""

_STATED = re.compile(r"sep=(.)\r?\n")
"""A first line by which spreadsheets state the separator."""


def syntax(opened: Open, options: FileOptions) -> Dialect:
    """What the bytes of a file and its first line tell, and what is stated."""
    encoding = codecs.lookup(options.encoding).name if options.encoding else _encoding(opened)
    with opened() as file:
        head = _decoded(file.read(_CHUNK), encoding)
    stated = _STATED.match(head)
    first = head[stated.end() :] if stated else head
    if options.header:
        first = "\n".join(_lines(first)[options.header - 1 :])
    elif not options.separator and not stated:
        _refuse_title(_lines(first))
    line = _lines(first)[0] if first else ""
    quote = options.quote or ("'" if re.match(r"'[^']*'([,;\t|]|$)", line) else '"')
    separator = options.separator or (stated[1] if stated else _separator(first, quote))
    newline = "\r\n" if "\r\n" in first else "\n"
    missing = ("", *options.missing)
    return Dialect(encoding=encoding, separator=separator, quote=quote, newline=newline, missing=missing)


def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\n|\r", text)


def _refuse_title(lines: list[str]) -> None:
    """Refuse a file whose first line has one cell where nearly all others have as many as each other."""
    bare = [(number, re.sub('"[^"]*"', "", line)) for number, line in enumerate(lines[:-1], 1) if line.strip()]
    (_, first), rows = (bare or [(1, "")])[0], bare[1:_LINES]
    if len(rows) < _FEWEST_BELOW or any(sign in first for sign in _SEPARATORS):
        return
    for sign in _SEPARATORS:
        counts = [line.count(sign) for _, line in rows]
        most = max(set(counts), key=counts.count)
        if most and counts.count(most) >= _ALIKE * len(counts):
            at = next(number for number, line in rows if line.count(sign) == most)
            raise SourceError(
                f"the first line must name the columns, and seems a title: {most + 1} columns begin in line {at}; "
                f"state that, as `header = {at}` in [file] of the policy or --file header={at}; or header=1, if the "
                "first line names the only column"
            )


def _separator(text: str, quote: str) -> str:
    """The character that is as often in the first lines as in the line of names; a semicolon before a comma."""
    sign = re.escape(quote)
    lines = _lines(re.sub(f"{sign}[^{sign}]*{sign}", "", text))[:_LINES]
    counts = {one: [line.count(one) for line in lines[: max(1, len(lines) - 1)] if line] for one in _SEPARATORS}
    steady = [one for one, found in counts.items() if found and found[0] and len(set(found)) == 1]
    return max(steady or counts, key=lambda one: counts[one][0] if counts[one] else 0)


def _decoded(content: bytes, encoding: str) -> str:
    """The text of the beginning of a file, whose last character may be cut."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(content)
    except UnicodeDecodeError as error:
        raise SourceError(
            f"the file must be text in {encoding}, and byte {error.start:,} is not; state its encoding, as in "
            '`encoding = "cp1252"` in [file] of the policy, or --file encoding=cp1252'
        ) from None


def _encoding(opened: Open) -> str:
    """UTF-8 where all bytes are, else UTF-16 or, as most such files are in Europe and America, Windows-1252."""
    with opened() as file:
        head = file.read(1 << 12)
        for signature, name in _SIGNATURES:
            if head.startswith(signature):
                return name
        if b"\0" in head:
            return "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"
        decoder, read, ascii_only = codecs.getincrementaldecoder("utf-8")(), 0, True
        try:
            content = head
            while content:
                ascii_only = decoder.decode(content).isascii() and ascii_only
                read, content = read + len(content), file.read(_CHUNK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            if ascii_only and error.object[: error.start].isascii():
                return "cp1252"
            raise SourceError(
                f"the file is UTF-8 in some cells and not from byte {read + error.start:,} on; correct it, or state "
                "its encoding in [file] of the policy, or with --file encoding=cp1252"
            ) from None
    return "utf-8"


def as_utf8(opened: Open, encoding: str, header: int = 0) -> Any:
    """The file as UTF-8, from the line on that names the columns, without one that states the separator."""
    file = opened() if encoding in ("utf-8", "utf-8-sig") else _Recoded(opened(), encoding)
    start = file.read(_START)
    text = start.removeprefix(codecs.BOM_UTF8)
    stated = _STATED.match(text.decode("latin-1"))
    rest = _Rest(text[stated.end() :] if stated else start, file)
    for _ in range(header - 1):
        rest.skip_line()
    return rest


class _Rest(io.RawIOBase):
    """Some bytes, and then the rest of a file."""

    def __init__(self, start: bytes, file: Any) -> None:
        super().__init__()
        self._start, self._file = start, file

    def readable(self) -> bool:
        return True

    def skip_line(self) -> None:
        """Leave out all bytes up to the next end of a line."""
        while not (found := re.search(rb"\r\n|\n|\r(?=[^\n])", self._start)):
            more = bytes(self._file.read(_CHUNK))
            if not more:
                self._start = b""
                return
            self._start += more
        self._start = self._start[found.end() :]

    def read(self, size: int = -1) -> bytes:
        if self._start:
            content, self._start = (self._start, b"") if size < 0 else (self._start[:size], self._start[size:])
            more = self._file.read(size - len(content)) if size > len(content) else b""
            return content + (more if size >= 0 else self._file.read())
        content = self._file.read(None if size < 0 else size)
        return bytes(content)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Recoded:
    """A text file of another encoding, as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._file, self._encoding, self._rest = file, encoding, b""
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ended = False

    def read(self, size: int | None = None) -> bytes:
        while not self._ended and (size is None or len(self._rest) < size):
            content = self._file.read(_CHUNK)
            self._ended = not content
            try:
                self._rest += self._decoder.decode(content, final=self._ended).encode()
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"the file must be text in {self._encoding} to its end, and {error.object[error.start :][:1]!r} is "
                    "not; state its encoding in [file] of the policy, or with --file encoding=..."
                ) from None
        taken, self._rest = self._rest[:size], b"" if size is None else self._rest[size:]
        return taken

    def close(self) -> None:
        self._file.close()
