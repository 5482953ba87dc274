"""A vault's home: where it lies, what opens it, and how it is made, restored, backed up and locked anew."""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from sfumato.errors import CustodyError, VaultError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret
from sfumato.ledger.chain import Entry
from sfumato.ledger.database import FILE, Database, is_url
from sfumato.ledger.ledger import Generation, Ledger, Query
from sfumato.vault import unlocking as custody
from sfumato.vault.backup import read_backup, write_backup
from sfumato.vault.key_rotation import cost, rekey, relock
from sfumato.vault.names import user
from sfumato.vault.paths import prepared
from sfumato.vault.store import Store, open_store

Clock = Callable[[], datetime]


class VaultLifecycle:
    """A folder, or a database and a store, and the secret that opens it."""

    def __init__(
        self, location: str | Path, database: Database, secret: Secret | None, clock: Clock | None = None
    ) -> None:
        self.location = str(location)
        self._secret, self.now = secret, clock or (lambda: datetime.now(UTC))
        self._known: tuple[list[Generation], Mapping[int, Key]] | None = None
        self.ledger = Ledger(database, actor=os.environ.get("SFUMATO_ACTOR") or user(), clock=self.now)

    @classmethod
    def create(
        cls,
        location: str | Path = "vault",
        *,
        secret: Secret | None = None,
        store: str | None = None,
        key: Key | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Make a vault.

        Args:
            location: a folder, or the URL of a PostgreSQL database.
            secret: what locks it: a passphrase or a key. Without one, here or in the environment, a key file is made
                beside the folder.
            store: where tables are kept; by default in the folder. A path, or a URL that fsspec knows.
            key: a master key that copies were made with already; by default a fresh one.

        """
        store = prepared(location, store)
        open_store(store, location)
        database = Database(location)
        database.check_empty()
        secret = secret if secret is not None else custody.find_secret(location)
        if secret is None:
            beside = custody.key_file(location)
            if beside is None:
                raise CustodyError("a vault in a database must be locked with a passphrase or a key; give a secret")
            secret = Key.generate()
            secret.save(beside)
        master, name = key or Key.generate(), secrets.token_hex(16)
        vault = cls(location, database, secret, clock)
        with vault.ledger.creating(master) as writing:
            writing.begin(name, store)
            writing.lock(custody.locked(name, 1, master, secret))
            writing.append("created", "vault", {"key": master.fingerprint()})
        return vault

    @classmethod
    def open(
        cls,
        location: str | Path = "vault",
        *,
        secret: Secret | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Open a vault that exists."""
        if not is_url(location) and not (Path(location) / FILE).is_file():
            raise VaultError(f"there is no vault in {location}; make one with `sfumato init {location}`")
        database = Database(location)
        database.check()
        return cls(location, database, secret, clock)

    @classmethod
    def restore(
        cls,
        backup: str | Path,
        location: str | Path,
        *,
        secret: Secret | None = None,
        store: str | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Make a vault from a backup, in a folder or a database, whichever it came from; its secret opens it."""
        if not Path(backup).is_file():
            raise VaultError(f"a backup must be a file that exists, and {str(backup)!r} is none")
        home = prepared(location, store)
        secret = secret if secret is not None else custody.find_secret(location)
        vault = cls(location, Database(location), secret, clock)
        read_backup(Path(backup), vault.ledger, open_store(home, location), home, secret)
        return vault

    def __repr__(self) -> str:
        return f"Vault({self.ledger.database.name!r})"

    def pooled(self) -> Self:
        """The same vault, with connections to its database that are kept, as a service needs them."""
        other = copy.copy(self)
        other.ledger = self.ledger.moved(Database(self.location, pooled=True))
        return other

    def acting_as(self, actor: str) -> Self:
        """The same vault, with somebody else named in what is recorded."""
        other = copy.copy(self)
        other.ledger = self.ledger.acting_as(actor)
        return other

    @cached_property
    def store(self) -> Store:
        """The vault's files."""
        with self.ledger.reading() as reading:
            return open_store(reading.head().store, self.location)

    @property
    def outbox(self) -> Path | None:
        """Where copies go that are released without saying where."""
        return None if is_url(self.location) else Path(self.location) / "copies"

    @property
    def public_key(self) -> str:
        """What recipients check certificates with."""
        with self.ledger.reading() as reading:
            return reading.generations()[-1].public

    @property
    def opens_with(self) -> str:
        """`passphrase` or `key`."""
        with self.ledger.reading() as reading:
            return str(reading.generations()[-1].lock.get("opens", "key"))

    def keys(self) -> Mapping[int, Key]:
        """The master keys by generation. Handle with care."""
        return self._opened()[1]

    def _sealed(self) -> Mapping[int, Key]:
        """The master keys of a vault whose head is as it wrote it: before a table is put where the head says."""
        keys = self.keys()
        with self.ledger.writing(keys):
            return keys

    def _opened(self) -> tuple[list[Generation], Mapping[int, Key]]:
        """The locks as they are now, and what they hold."""
        with self.ledger.reading() as reading:
            head, generations = reading.head(), reading.generations()
        if self._secret is None:
            self._secret = custody.find_secret(self.location, generations[-1].lock.get("opens"))
        if self._known is None or self._known[0] != generations:
            self._known = generations, custody.masters(head, generations, self._secret)
        return self._known

    def backup(self, target: str | Path) -> str:
        """Write everything but the released copies to one file, keys still locked; returns the last entry's hash."""
        with self.ledger.writing(self.keys()) as writing:
            [last] = writing.entries(Query(last=1))
            if last.action != "backed-up":
                writing.append("backed-up", "vault", {})
        with self.ledger.reading(snapshot=True) as reading:
            return write_backup(reading, self.store, Path(target))

    def relock(self, secret: Secret) -> None:
        """Lock the vault with another passphrase or key from now on."""
        seen, keys = self._opened()
        with self.ledger.writing(keys) as writing:
            relock(writing, seen, keys, secret)
            writing.append("relocked", "vault", {"opens": "passphrase" if isinstance(secret, str) else "key"})
        self._secret = secret

    def rekey_cost(self) -> list[dict[str, Any]]:
        """What a new master key costs: who holds what, and what could then be averaged."""
        with self.ledger.reading() as reading:
            return cost(reading, self.store)

    def rekey(self, *, secret: Secret | None = None, lost: bool = False) -> Entry:
        """Take another master key: from now on, noise is independent of that in all copies already given.

        Args:
            secret: a new secret to lock it with; needed if the old one is lost.
            lost: the old key is lost; the entries it vouched for can no longer be checked.

        """
        if lost and secret is None:
            raise CustodyError("a vault whose key is lost must be locked with a new passphrase or key; give one")
        with self.ledger.reading() as reading:
            seen, current = reading.generations(), reading.head().generation
        keys = {} if lost else dict(self._opened()[1])
        chosen = secret if secret is not None else self._secret
        if chosen is None:
            raise CustodyError("a vault must be locked with a passphrase or a key; give one")
        entry = rekey(self.ledger, seen, keys, chosen, current, lost=lost)
        self._secret = chosen
        return entry
