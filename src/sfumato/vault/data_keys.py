"""Data keys: the random keys under which the vault's files are encrypted, wrapped with the current master key.

Each dataset has one for its policy and its scheme and one per version, each survey has one, and all uploads share one.
A new master key wraps them anew, and those of datasets are then replaced (`vault/encryption.py`). Deleting a wrapped
key makes the files under it, and all copies of them in stores and later backups, unreadable for ever.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sfumato.errors import CustodyError, TamperedError, UnknownSubject, VaultError
from sfumato.keys.key import Key
from sfumato.ledger.chain import ERASED, canonical
from sfumato.ledger.ledger import Ledger, LedgerWriter
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.ledger.row_cipher import RowCipher
from sfumato.ledger.tables import DATA_KEYS
from sfumato.vault.store import erased_in

_NONCE = 12


@dataclass(frozen=True)
class DataKeys:
    """The data keys by scope: `datasets/TOKEN@GENERATION`, `datasets/TOKEN/VERSION@GENERATION`, `surveys/TOKEN`, ...

    Scopes are stored in plain, so they have tokens instead of names.
    """

    ledger: Ledger
    master_keys: Callable[[], Mapping[int, Key]]
    """The master keys by generation; raises `CustodyError` if the vault is locked."""

    def token(self, name: str) -> str:
        """The keyed hash that stands for a name where it is not encrypted."""
        return RowCipher(self.master_keys()).token(name)

    def generation(self) -> int:
        """The generation of the master key, and of the data keys of files that are stored now."""
        return max(self.master_keys())

    def find(self, scope: str) -> Key | None:
        """The key of a scope; `None` if there is none, or none any more."""
        with self.ledger.reading() as reading:
            name, generation, wrapped = reading.head().name, reading.head().generation, _wrapped(reading, scope)
        masters = self.master_keys()  # afterwards: they include all that were in use when the row was read
        if wrapped is None:
            return None
        if generation not in masters:
            raise VaultError("the vault's master key was rotated meanwhile; run the same command again")
        return _unwrap(wrapped, masters[generation], name, scope)

    def get(self, scope: str) -> Key:
        """The key of a scope; raises `UnknownSubject` if it was erased, and `CustodyError` if it was lost."""
        key = self.find(scope)
        if key is not None:
            return key
        with self.ledger.reading(self.master_keys()) as reading:
            for entry in reading.entries(Query(action=ERASED)):
                if scope in erased_in(entry.action, entry.body):  # while it was read, since nothing leads to it now
                    raise UnknownSubject(f"what is asked for was erased on {entry.at[:10]}; only the ledger says so")
        raise CustodyError(
            "the stored files can no longer be read by anybody: the key that encrypts them was lost with the vault's "
            "secret; add the table again (`sfumato add`), or restore a backup whose secret you have"
        )

    def get_or_create(self, scope: str) -> Key:
        """The key of a scope, which is created if there is none."""
        key = self.find(scope)
        if key is not None:
            return key
        with self.ledger.writing(self.master_keys()) as writing:
            return self.created_in(writing, scope)[0]

    def created_in(self, writing: LedgerWriter, scope: str) -> tuple[Key, bool]:
        """The key of a scope within a transaction, and whether it was created in it."""
        masters, head, wrapped = self.master_keys(), writing.head(), _wrapped(writing, scope)
        if wrapped is not None:  # somebody else created it meanwhile
            return _unwrap(wrapped, masters[head.generation], head.name, scope), False
        key = Key.generate()
        text = _wrap(key, masters[head.generation], head.name, scope)
        writing.connection.insert(DATA_KEYS, {"scope": scope, "wrapped": text})
        return key, True


@dataclass(frozen=True)
class PinnedDataKeys(DataKeys):
    """The data keys as they are now, each read once: for one command, which checks at its end that they still hold."""

    live: DataKeys
    """The keys as they are at any time."""
    found: dict[str, Key] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, keys: DataKeys) -> PinnedDataKeys:
        """The keys that somebody would find now."""
        live = keys.live if isinstance(keys, PinnedDataKeys) else keys
        masters = live.master_keys()
        return cls(live.ledger, lambda: masters, live)

    def find(self, scope: str) -> Key | None:
        """The key of a scope, as it was when it was first asked for."""
        key = self.found.get(scope) or super().find(scope)
        if key is not None:
            self.found[scope] = key
        return key


def job_scope(dataset: str) -> str:
    """The scope of the key of background jobs about a dataset, given by the token of its name."""
    return f"jobs/{dataset}"


def rewrap(writing: LedgerWriter, old: Key | None, new: Key) -> None:
    """Wrap all data keys with a new master key, within its transaction; they are lost if the old one is (`None`)."""
    name = writing.head().name
    rows = writing.connection.all("SELECT scope, wrapped FROM sfumato_data_keys")
    for row in rows:
        if old is None:
            erase(writing, row.scope)
        else:
            text = _wrap(_unwrap(row.wrapped, old, name, row.scope), new, name, row.scope)
            writing.connection.update(DATA_KEYS, {"wrapped": text}, scope=row.scope)


def erase(writing: LedgerWriter, scope: str) -> bool:
    """Delete the key of a scope, so that nobody can ever read its files again; whether there was one.

    Backups that were written before still hold the wrapped key.
    """
    return bool(writing.connection.delete(DATA_KEYS, scope=scope))


def altered_keys(reading: LedgerReader, masters: Mapping[int, Key]) -> list[str]:
    """The scopes whose wrapped key was altered."""
    head, altered = reading.head(), []
    for row in reading.connection.all("SELECT scope, wrapped FROM sfumato_data_keys ORDER BY scope"):
        try:
            _unwrap(row.wrapped, masters[head.generation], head.name, row.scope)
        except (TamperedError, KeyError):
            altered.append(str(row.scope))
    return altered


def scopes(reading: LedgerReader) -> set[str]:
    """The scopes that have a key."""
    return set(reading.connection.values("SELECT scope FROM sfumato_data_keys"))


def scopes_of(reading: LedgerReader, token: str) -> set[str]:
    """The scopes of a dataset, or of jobs about it, that have a key, given by the token of its name."""
    return {scope for scope in scopes(reading) if token in scope.replace("@", "/").split("/")}


def _wrapped(reading: LedgerReader, scope: str) -> str | None:
    found = reading.connection.value("SELECT wrapped FROM sfumato_data_keys WHERE scope = :scope", scope=scope)
    return None if found is None else str(found)


def _wrap(key: Key, master: Key, vault: str, scope: str) -> str:
    nonce = secrets.token_bytes(_NONCE)
    return (nonce + _cipher(master).encrypt(nonce, key.expose(), _owner(vault, scope))).hex()


def _unwrap(text: str, master: Key, vault: str, scope: str) -> Key:
    try:
        wrapped = bytes.fromhex(text)
        return Key(_cipher(master).decrypt(wrapped[:_NONCE], wrapped[_NONCE:], _owner(vault, scope)))
    except (InvalidTag, ValueError):
        raise TamperedError(
            f"the key of {scope} must be wrapped by this vault, and it was altered; run `sfumato verify`, and restore "
            "a backup"
        ) from None


def _cipher(master: Key) -> AESGCM:
    return AESGCM(master.derive("storage").expose())


def _owner(vault: str, scope: str) -> bytes:
    """The associated data of a wrapped key, which bind it to its vault and its scope."""
    return canonical([vault, scope]).encode()
