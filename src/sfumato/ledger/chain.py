"""The hash chain of the ledger: each entry's hash covers the entry before it, and a MAC proves that the vault wrote it.

Anybody can follow the chain by its hashes. The message authentication codes (HMAC-SHA256 under a key derived from the
master key) cannot be forged without that key. The head of the ledger, with the number of entries, is authenticated too,
so that the last entries cannot be cut off unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from sfumato.keys.key import Key

ERASED = "erased"
"""The action of a tombstone: an entry that says that content was destroyed."""

UNREADABLE = "unreadable"
"""The kind, and every other name, of an entry that cannot be decrypted: it was altered, or its key is lost."""

START = "0" * 64
"""The hash that stands for the missing predecessor of the first entry."""


@dataclass(frozen=True)
class Entry:
    """One recorded event."""

    number: int
    at: str
    actor: str
    action: str
    kind: str
    """What the entry is about, such as the vault, a dataset, a recipient, a grant, a release, a token or an access."""
    dataset: str
    """The name of the dataset; for a token, its id."""
    recipient: str
    """The name of the recipient, or of the operator."""
    body: dict[str, Any]
    generation: int
    """The generation of the master key that was in use."""
    hash: str = ""
    mac: str = ""
    salt: str = ""
    """Random digits, without which nobody can confirm a guess of the entry by its hash; earlier versions had none."""

    @property
    def is_readable(self) -> bool:
        """Whether the entry could be decrypted."""
        return self.kind != UNREADABLE

    def chained(self, previous: str, authenticator: Authenticator) -> Entry:
        """The entry with its hash and its message authentication code, after the entry with the hash `previous`."""
        digest = self.digest(previous)
        return Entry(**{**self.__dict__, "hash": digest, "mac": authenticator.mac(digest)})

    def digest(self, previous: str) -> str:
        """The hash that the entry must have after the entry with the hash `previous`."""
        left_out = ("hash", "mac") if self.salt else ("hash", "mac", "salt")
        content = {name: value for name, value in self.__dict__.items() if name not in left_out}
        return hashlib.sha256(previous.encode() + canonical(content).encode()).hexdigest()


class Authenticator:
    """Computes message authentication codes, which only the holder of a master key can do."""

    def __init__(self, master: Key) -> None:
        self._key = master.derive("ledger")

    def mac(self, *content: object) -> str:
        """The message authentication code of some content."""
        return hmac.digest(self._key.expose(), canonical(content).encode(), "sha256").hex()


def canonical(content: object) -> str:
    """The canonical JSON text of some content: sorted keys, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
