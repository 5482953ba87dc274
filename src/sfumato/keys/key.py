"""The 256-bit master key: generation, key files, and derivation of every other key (HKDF-SHA256)."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import CustodyError

BYTES = 32
_HEADER = "sfumato-key-1 "

_MOST_DERIVED, _MOST_PREPARED = 256, 16
"""What a key remembers of what is made of it: single records would take longer to derive than to copy."""

T = TypeVar("T")


def _remembered(known: dict[Any, Any], most: int, purpose: Hashable, make: Callable[[], T]) -> T:
    """What is known for a purpose, or made now; of too many, all are forgotten."""
    found: T | None = known.get(purpose)
    if found is None:
        found = make()
        if len(known) >= most:
            known.clear()
        known[purpose] = found
    return found


class Key:
    """A 256-bit secret key, which neither `repr` nor any error message ever shows."""

    __slots__ = ("_derived", "_prepared", "_secret")

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) != BYTES:
            got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
            raise CustodyError(f"a key must be exactly {BYTES} bytes, got {got}; make one with `sfumato key new`")
        self._secret = secret
        self._derived: dict[str | bytes, Any] = {}
        self._prepared: dict[Hashable, Any] = {}

    @classmethod
    def generate(cls) -> Key:
        """A new random key from the operating system's generator."""
        return cls(secrets.token_bytes(BYTES))

    @classmethod
    def from_bytes(cls, secret: bytes) -> Key:
        """The key with these 32 secret bytes."""
        return cls(secret)

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """Read a key file; it is refused if anybody but its owner can read it."""
        path = Path(path)
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            key = cls._decode(path.read_bytes(), path)
        except OSError as error:
            raise CustodyError(f"the key file {path} could not be read: {error.strerror}") from None
        if mode & 0o077:
            raise CustodyError(
                f"a key file must be readable by its owner alone, {path} has mode {mode:04o}; run `chmod 600 {path}`"
            )
        return key

    @classmethod
    def _decode(cls, text: bytes, path: Path) -> Key:
        header, digits = text[: len(_HEADER)], text[len(_HEADER) :].strip()
        try:
            secret = bytes.fromhex(digits.decode("ascii")) if header == _HEADER.encode() else b""
        except ValueError:
            secret = b""
        if len(secret) != BYTES:
            raise CustodyError(
                f"a key file must hold one line, {_HEADER.strip()!r} and {2 * BYTES} hexadecimal digits; {path} holds "
                f"{len(text)} bytes of something else; restore it from its backup, or make a new one with "
                "`sfumato key new`"
            )
        return cls(secret)

    def save(self, path: str | Path) -> None:
        """Write a key file that only its owner can read, and refuse to overwrite an existing file."""
        path = Path(path)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{_HEADER}{self._secret.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
            path.hardlink_to(part)  # atomic, and never over an existing file
        except FileExistsError:
            raise CustodyError(
                f"a key file is never overwritten, and {path} exists; a lost key cannot be recovered, so choose "
                "another file name"
            ) from None
        except (OSError, ValueError) as error:
            raise CustodyError(
                f"the key file {path} could not be written: {getattr(error, 'strerror', None) or error}"
            ) from None
        finally:
            part.unlink(missing_ok=True)

    def derive(self, *labels: str | bytes) -> Key:
        """The key for one purpose: HKDF-SHA256 over the labels, each prefixed by its length to avoid collisions."""
        info = b"".join(
            len(label).to_bytes(4, "big") + label
            for label in (label.encode() if isinstance(label, str) else label for label in labels)
        )
        return _remembered(self._derived, _MOST_DERIVED, info, lambda: Key(self._hkdf(info)))

    def of_dataset(self, name: str) -> DatasetKey:
        """The key of a dataset, derived from this master key."""
        return _remembered(
            self._derived, _MOST_DERIVED, name, lambda: DatasetKey(self.derive("dataset", name).expose())
        )

    def _hkdf(self, info: bytes) -> bytes:
        return HKDF(algorithm=SHA256(), length=BYTES, salt=b"sfumato-1", info=info).derive(self._secret)

    def prepared(self, purpose: Hashable, make: Callable[[], T]) -> T:
        """What was made from this key for a purpose; it lives no longer than the key."""
        return _remembered(self._prepared, _MOST_PREPARED, purpose, make)

    def expose(self) -> bytes:
        """The 32 secret bytes, for use by a cipher; never print, log or store them."""
        return self._secret

    def fingerprint(self) -> str:
        """A public identifier of 16 hexadecimal digits, which reveals nothing about the key."""
        return self.derive("fingerprint").expose()[:8].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __reduce__(self) -> str:
        raise CustodyError(
            "a key cannot be pickled, since the bytes could end up in an unprotected file; pass the key separately"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class DatasetKey(Key):
    """The key of one dataset, derived from the master key: all that a worker needs, and of no use for another one."""

    __slots__ = ()
