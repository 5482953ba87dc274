"""Encrypted files: AES-256-GCM in segments by the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015).

A file is written in one pass and can be read at any position, in memory that does not grow with it. Its header is
followed by segments of 256 KiB, each with an authentication tag. The nonce of a segment is its number and whether it is
the last one, and every file has a key of its own, so that a segment that was altered, moved, removed, added or taken
from another file is refused.
"""

from __future__ import annotations

import hmac
import io
import secrets
import tempfile
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato.errors import CustodyError, TamperedError
from sfumato.keys.file_reader import FileReader
from sfumato.keys.key import BYTES, Key

SEGMENT = 1 << 18
"""Bytes of a segment before encryption; only the last one is shorter."""

HEADER = 40
"""Bytes of the header: the format, the fingerprint of the key, and the id of the file."""

_FORMAT = b"sfumato-stream-1"
_TAG = 16
_CACHED = 4
"""Decrypted segments that a reader keeps: neighbouring columns of a table share segments."""

_SPILL_SEGMENT, _SPILL_MEMORY = 1 << 16, 1 << 17
"""Bytes of a temporary file's segments, and bytes that it holds in memory before it goes to the disk."""


@dataclass(frozen=True)
class FileCipher:
    """The cipher of one file."""

    aead: AESGCM
    header: bytes
    """The associated data of every segment; the file starts with it."""
    segment: int = SEGMENT

    @classmethod
    def of(cls, key: Key, content_digest: bytes, name: str) -> FileCipher:
        """The cipher of a file with this content and name: the same again for the same key, content and name.

        Two contents never share a key, so that no nonce is ever used twice.
        """
        id_key = key.derive("file id", name)
        file_id = hmac.digest(id_key.expose(), content_digest, "sha256")[:16]
        return cls._with_header(key, _FORMAT + bytes.fromhex(key.fingerprint()) + file_id, name)

    @classmethod
    def read(cls, header: bytes, key: Key, name: str) -> FileCipher:
        """The cipher of an encrypted file, from its first `HEADER` bytes."""
        if len(header) != HEADER or not header.startswith(_FORMAT):
            raise _altered(name)
        if not is_encrypted_under(header, key):
            raise CustodyError(
                f"{name} must be encrypted under the key of its dataset, and it is encrypted under another one, which "
                "was lost or erased: nobody can read it any more; add the table again"
            )
        return cls._with_header(key, header, name)

    @classmethod
    def temporary(cls) -> FileCipher:
        """The cipher of a temporary file, with a random key that exists only in memory."""
        return cls(AESGCM(secrets.token_bytes(BYTES)), b"", _SPILL_SEGMENT)

    @classmethod
    def _with_header(cls, key: Key, header: bytes, name: str) -> FileCipher:
        return cls(AESGCM(key.derive("file", header, name).expose()), header)


def is_encrypted_under(header: bytes, key: Key) -> bool:
    """Whether a header says that its file is encrypted under a key."""
    return header[len(_FORMAT) : len(_FORMAT) + 8].hex() == key.fingerprint()


class EncryptedWriter:
    """A binary file to write to, which is encrypted into another one; it is complete once it is closed."""

    def __init__(self, file: Any, cipher: FileCipher) -> None:
        self._file, self._cipher = file, cipher
        self._pending, self._filled, self._number, self.closed = bytearray(), 0, 0, False
        file.write(cipher.header)

    def write(self, data: Any) -> int:
        """Write some bytes."""
        left, segment = memoryview(data).cast("B"), self._cipher.segment
        size = len(left)
        self._pending = self._pending or bytearray(segment)
        while len(left):
            if self._filled == segment:
                self._encrypt(last=False)  # only now, since more follows
            piece = left[: segment - self._filled]
            self._pending[self._filled : self._filled + len(piece)] = piece
            self._filled += len(piece)
            left = left[len(piece) :]
        return size

    def tell(self) -> int:
        """The number of bytes written so far."""
        return self._number * self._cipher.segment + self._filled

    def flush(self) -> None:
        """Do nothing: a segment is written when it is full."""

    def close(self) -> None:
        """Write the last segment; the file that was written to stays open."""
        if not self.closed:
            self._encrypt(last=True)
            self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:  # after an error the file must not look complete
            self.close()

    def _encrypt(self, *, last: bool) -> None:
        content, sealed = memoryview(self._pending)[: self._filled], _buffer(self._filled + _TAG)
        self._cipher.aead.encrypt_into(_nonce(self._number, last=last), content, self._cipher.header, sealed)
        self._file.write(sealed)
        self._number, self._filled = self._number + 1, 0


class EncryptedReader(FileReader):
    """The content of an encrypted file, to be read at any position: only the segments that are needed are decrypted."""

    def __init__(self, file: IO[bytes], cipher: FileCipher, name: str) -> None:
        self._file, self._cipher, self._name = file, cipher, name
        self._cache: OrderedDict[int, memoryview] = OrderedDict()
        body, stride = file.seek(0, io.SEEK_END) - len(cipher.header), cipher.segment + _TAG
        self._last = (body - 1) // stride
        rest = body - self._last * stride
        super().__init__(body - (self._last + 1) * _TAG)
        if self._last < 0 or rest < _TAG or (rest == _TAG and self._last > 0):
            raise _altered(name)
        self._decrypted(self._last)  # its tag says that it is the last one: nothing was cut off or added

    @classmethod
    def open(cls, file: IO[bytes], key: Key, name: str) -> EncryptedReader:
        """Read an encrypted file under a key; the file is closed with the reader, and after any error."""
        try:
            return cls(file, FileCipher.read(file.read(HEADER), key, name), name)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Close the encrypted file too."""
        self._file.close()
        super().close()

    def _bytes_at(self, position: int, most: int) -> memoryview:
        number, offset = divmod(position, self._cipher.segment)
        return self._decrypted(number)[offset : offset + most]

    def _read_into(self, view: memoryview, position: int) -> int:
        number, offset = divmod(position, self._cipher.segment)
        if offset or len(view) < self._cipher.segment or number in self._cache:
            return super()._read_into(view, position)
        self._decrypt(number, view[: self._cipher.segment])  # directly
        return self._cipher.segment

    def _decrypted(self, number: int) -> memoryview:
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        rest = self.size - number * self._cipher.segment
        found = memoryview(bytearray(min(self._cipher.segment, rest)))
        self._decrypt(number, found)
        while len(self._cache) >= _CACHED:
            self._cache.popitem(last=False)
        self._cache[number] = found
        return found

    def _decrypt(self, number: int, into: memoryview) -> None:
        """Decrypt a segment into a buffer of its length."""
        self._file.seek(len(self._cipher.header) + number * (self._cipher.segment + _TAG))
        sealed, nonce = _buffer(len(into) + _TAG), _nonce(number, last=number == self._last)
        try:
            if _read_whole(self._file, sealed):
                self._cipher.aead.decrypt_into(nonce, sealed, self._cipher.header, into)
                return
        except InvalidTag:
            pass
        raise _altered(self._name)


class Spill:
    """A temporary file for intermediate data, encrypted under a random key that is never stored.

    It stays in memory while it is small, and vanishes when it is closed or the process dies.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.SpooledTemporaryFile(_SPILL_MEMORY, dir=None if folder is None else str(folder))  # noqa: SIM115 - closed by `close`
        self._cipher = FileCipher.temporary()
        self.writer = EncryptedWriter(self._file, self._cipher)

    def reader(self) -> EncryptedReader:
        """What was written, from its start; nothing more can be written, and the file is closed with the reader."""
        self.writer.close()
        return EncryptedReader(self._file, self._cipher, "a temporary file")

    def another_reader(self) -> EncryptedReader:
        """What was written, from its start, to be read again later; one at a time."""
        self.writer.close()
        return EncryptedReader(cast("IO[bytes]", _Kept(self._file)), self._cipher, "a temporary file")

    def close(self) -> None:
        """Forget the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Kept:
    """A file that stays open when a reader of it is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self.seek, self.readinto = file.seek, file.readinto  # type: ignore[attr-defined]

    def close(self) -> None:
        """Leave the file open."""


_buffers = threading.local()


def _buffer(size: int) -> memoryview:
    """A buffer for a sealed segment, valid until this thread asks again: fresh memory costs more than the cipher."""
    if len(getattr(_buffers, "sealed", b"")) < size:
        _buffers.sealed = bytearray(size)
    return memoryview(_buffers.sealed)[:size]


def _read_whole(file: Any, view: memoryview) -> bool:
    """Fill a buffer from a file; whether there were enough bytes."""
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            return False
        done += count
    return True


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _altered(name: str) -> TamperedError:
    return TamperedError(
        f"{name} must be a complete encrypted file of this vault, and it was altered or cut off; restore it from a "
        "backup, or send it again"
    )
