"""The chain: each entry's hash covers the one before it, and a keyed code says that the vault itself wrote it.

The hash alone lets anybody follow the chain; the code (HMAC-SHA256 under a key derived from the master key) is what
nobody without the key can make. The head, with the number of entries, is sealed as well, so that the last entries
cannot be cut off unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

from sfumato.keys.key import Key

START = "0" * 64
"""What the first entry's hash covers in place of an earlier one."""


@dataclass(frozen=True)
class Entry:
    """One thing that happened."""

    number: int
    at: str
    actor: str
    action: str
    kind: str
    """What it is about: the vault, a dataset, a recipient, a grant or a release; a token or an operator."""
    dataset: str
    """The dataset's name; of a token, its id."""
    recipient: str
    """The recipient's name, or an operator's."""
    body: dict[str, Any]
    generation: int
    """Of the master key that was in force."""
    hash: str = ""
    mac: str = ""

    def linked(self, previous: str, codes: Authenticator) -> Entry:
        """The entry in its place in the chain."""
        digest = self.digest(previous)
        return Entry(**{**self.__dict__, "hash": digest, "mac": codes.of(digest)})

    def digest(self, previous: str) -> str:
        """The hash that the entry must have after the one with the hash `previous`."""
        said = {name: value for name, value in self.__dict__.items() if name not in ("hash", "mac")}
        return hashlib.sha256(previous.encode() + canonical(said).encode()).hexdigest()


class Authenticator:
    """The keyed codes that only the holder of a master key can make."""

    def __init__(self, master: Key) -> None:
        self._key = master.derive("ledger")

    def of(self, *content: object) -> str:
        """The code of some content."""
        return hmac.digest(self._key.expose(), canonical(content).encode(), "sha256").hex()


def canonical(content: object) -> str:
    """The one JSON text of some content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
