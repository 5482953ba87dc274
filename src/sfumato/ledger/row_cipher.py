"""Encryption of the ledger's rows: without a master key they show sizes and times, and which rows belong together.

A row is one encrypted text. Its names are also there as tokens, keyed hashes by which it is looked up: equal names have
equal tokens. Its hash covers a random salt, so that nobody can confirm a guess of its text.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

from sfumato.errors import TamperedError
from sfumato.keys.key import Key
from sfumato.keys.text_cipher import TextCipher
from sfumato.ledger.chain import UNREADABLE, Entry, canonical
from sfumato.ledger.connection import refuse_null_characters

_NAMES = ("actor", "action", "kind", "dataset", "recipient")
_PLAIN = ("number", "at", "generation", "hash", "mac")
_TOKEN = 10
"""Bytes of a token: 16 letters and digits, which are also the name of a dataset's folder."""

_REMEMBERED = 10_000
"""Tokens that are remembered: the entries that one reads have few actors, actions and datasets."""


class RowCipher:
    """Encrypts rows under the newest master key; tokens are made with the oldest one, so that they never change."""

    def __init__(self, keys: Mapping[int, Key]) -> None:
        self._names = keys[min(keys)].derive("ledger names").expose()
        self._texts = TextCipher.of(keys[max(keys)].derive("ledger texts"), "entries of the ledger")
        self._tokens: dict[str, str] = {}

    def token(self, name: str) -> str:
        """The keyed hash of a name."""
        if (found := self._tokens.get(name)) is None:
            if len(self._tokens) >= _REMEMBERED:
                self._tokens.clear()
            found = self._tokens[name] = self._computed(name)
        return found

    def _computed(self, name: str) -> str:
        refuse_null_characters([name])
        return base64.b32encode(hmac.digest(self._names, name.encode(), "sha256")[:_TOKEN]).decode().lower()

    def row(self, table: str, entry: Entry) -> dict[str, Any]:
        """The row of an entry, as it is stored in a table."""
        content = canonical({name: getattr(entry, name) for name in (*_NAMES, "body", "salt")})
        return {
            **{name: getattr(entry, name) for name in _PLAIN},
            **{name: self.token(getattr(entry, name)) for name in _NAMES},
            "body": self._texts.encrypt(f"{table} {entry.number}", content),
        }

    def entry(self, table: str, row: Mapping[str, Any]) -> Entry:
        """The entry of a row; one that no check accepts if the row was altered, or its key is lost."""
        try:
            content = json.loads(self._texts.decrypt(f"{table} {row['number']}", row["body"]))
        except TamperedError:
            return self._unreadable(row)
        if any(self.token(content[name]) != row[name] for name in _NAMES):
            return self._unreadable(row)
        return Entry(**{name: row[name] for name in _PLAIN}, **content)

    def _unreadable(self, row: Mapping[str, Any]) -> Entry:
        return Entry(**{**dict.fromkeys(_NAMES, UNREADABLE), **{name: row[name] for name in _PLAIN}, "body": {}})


def is_encrypted(row: Mapping[str, Any]) -> bool:
    """Whether a row is encrypted; earlier versions stored the body of an entry as JSON."""
    return not str(row["body"]).startswith("{")
