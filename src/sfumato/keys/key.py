"""The master key: where it comes from, how it is kept, and how every other key is derived from it."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import CustodyError

BYTES = 32
_HEADER = "sfumato-key-1 "


class Key:
    """A 256-bit secret. It has no readable form: neither `repr` nor an error ever shows it."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes) or len(secret) != BYTES:
            got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
            raise CustodyError(f"a key must be exactly {BYTES} bytes, got {got}; make one with `sfumato key new`")
        self._secret = secret

    @classmethod
    def generate(cls) -> Key:
        """A fresh key from the operating system."""
        return cls(secrets.token_bytes(BYTES))

    @classmethod
    def from_bytes(cls, secret: bytes) -> Key:
        """The key that these 32 bytes are."""
        return cls(secret)

    @classmethod
    def load(cls, path: str | Path) -> Key:
        """Read a key file, which nobody but its owner may be able to read."""
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
        """Write a key file that only its owner can read; an existing file is never overwritten."""
        path = Path(path)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(f"{_HEADER}{self._secret.hex()}\n")
                file.flush()
                os.fsync(file.fileno())
            path.hardlink_to(part)  # whole or not at all, and never over another file
        except FileExistsError:
            raise CustodyError(
                f"a key file is never overwritten, and {path} exists; a lost key cannot be made again, so choose "
                "another name"
            ) from None
        except (OSError, ValueError) as error:
            raise CustodyError(
                f"the key file {path} could not be written: {getattr(error, 'strerror', None) or error}"
            ) from None
        finally:
            part.unlink(missing_ok=True)

    def derive(self, *labels: str | bytes) -> Key:
        """The key of a purpose: HKDF-SHA256 over the labels, each with its length, so that no two lists agree."""
        info = b"".join(
            len(label).to_bytes(4, "big") + label
            for label in (label.encode() if isinstance(label, str) else label for label in labels)
        )
        return Key(HKDF(algorithm=SHA256(), length=BYTES, salt=b"sfumato-1", info=info).derive(self._secret))

    def expose(self) -> bytes:
        """The 32 secret bytes, for a cipher. Never print, log or store what this returns."""
        return self._secret

    def fingerprint(self) -> str:
        """Sixteen public digits that tell two keys apart and say nothing else."""
        return self.derive("fingerprint").expose()[:8].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __reduce__(self) -> str:
        raise CustodyError("a key is not pickled, since nobody knows where the bytes will lie; hand it over by itself")

    def __repr__(self) -> str:
        return "Key(…)"
