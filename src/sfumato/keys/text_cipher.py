"""Encryption of short texts in a database, each bound to the row that it belongs to."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato.errors import TamperedError
from sfumato.keys.key import Key

_NONCE = 12


@dataclass(frozen=True)
class TextCipher:
    """Encrypts and authenticates texts with AES-256-GCM."""

    subject: str
    """What the texts are about, for the message about an altered one."""
    aead: AESGCM

    @classmethod
    def of(cls, key: Key, subject: str) -> TextCipher:
        """The cipher under a key."""
        return cls(subject, AESGCM(key.expose()))

    def encrypt(self, row: str, text: str) -> str:
        """A text that belongs to a row."""
        nonce = secrets.token_bytes(_NONCE)
        return base64.b64encode(nonce + self.aead.encrypt(nonce, text.encode(), self._owner(row))).decode()

    def decrypt(self, row: str, text: str) -> str:
        """The text of a row; raises `TamperedError` if somebody else wrote it, or moved it."""
        try:
            stored = base64.b64decode(text, validate=True)
            return self.aead.decrypt(stored[:_NONCE], stored[_NONCE:], self._owner(row)).decode()
        except (InvalidTag, ValueError):
            raise TamperedError(
                f"the {self.subject} must be as this vault stored them, and one was altered; restore a backup"
            ) from None

    def _owner(self, row: str) -> bytes:
        """The associated data of a text, which bind it to its subject and its row."""
        return f"{self.subject}\0{row}".encode()
