"""The life cycle of a vault: creating, opening, backing up and restoring it, and changing its secret or master key."""

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
from sfumato.ledger.ledger import Ledger, Origin
from sfumato.ledger.reader import Generation, Query
from sfumato.vault import unlocking
from sfumato.vault.data_keys import DataKeys
from sfumato.vault.encrypted_store import EncryptedStore
from sfumato.vault.names import current_user
from sfumato.vault.store import open_store

Clock = Callable[[], datetime]


class VaultLifecycle:
    """A vault's ledger, its store, and the secret that unlocks its master keys."""

    def __init__(
        self, location: str | Path, database: Database, secret: Secret | None, clock: Clock | None = None
    ) -> None:
        self.location = str(location)
        self._secret, self.now = secret, clock or (lambda: datetime.now(UTC))
        self._unlocked: tuple[list[Generation], Mapping[int, Key]] | None = None
        self.ledger = Ledger(database, actor=os.environ.get("SFUMATO_ACTOR") or current_user(), clock=self.now)

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
        """Create a vault.

        Args:
            location: a folder, or the URL of a PostgreSQL database.
            secret: a passphrase or a key that locks the vault. Without one, here or in the environment, a key file is
                created beside the folder.
            store: the location of tables: a path, or a URL that fsspec supports; by default the folder.
            key: a master key that copies were made with before; by default a new one.

        """
        from sfumato.vault.paths import prepare_location

        store = prepare_location(location, store)
        open_store(store, location)
        database = Database(location)
        database.check_empty()
        secret = secret if secret is not None else unlocking.find_secret(location)
        if secret is None:
            path = unlocking.key_file(location)
            if path is None:
                raise CustodyError("a vault in a database must be locked with a passphrase or a key; give a secret")
            secret = Key.generate()
            secret.save(path)
        master, name = key or Key.generate(), secrets.token_hex(16)
        vault = cls(location, database, secret, clock)
        with vault.ledger.creating(master) as writing:
            writing.create_head(name, store)
            writing.save_generation(unlocking.wrap_master_key(name, 1, master, secret))
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
        """Open an existing vault."""
        if not is_url(location) and not (Path(location) / FILE).is_file():
            raise VaultError(f"there is no vault in {location}; create one with `sfumato init {location}`")
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
        """Create a vault from a backup, in a folder or in a database; the secret of the backed-up vault unlocks it."""
        from sfumato.vault.backup import read_backup
        from sfumato.vault.paths import prepare_location

        if not Path(backup).is_file():
            raise VaultError(f"a backup must be a file that exists, and {str(backup)!r} does not")
        store_location = prepare_location(location, store)
        secret = secret if secret is not None else unlocking.find_secret(location)
        vault = cls(location, Database(location), secret, clock)
        read_backup(Path(backup), vault.ledger, open_store(store_location, location), store_location, secret)
        return vault

    def __repr__(self) -> str:
        return f"Vault({self.ledger.database.name!r})"

    def pooled(self) -> Self:
        """The same vault with a pool of database connections, as a service needs it."""
        other = copy.copy(self)
        other.ledger = self.ledger.with_database(Database(self.location, pooled=True))
        return other

    def acting_as(self, actor: str, origin: Origin | None = None) -> Self:
        """The same vault, with another actor recorded in new entries, and another origin in the access log."""
        other = copy.copy(self)
        other.ledger = self.ledger.acting_as(actor, origin)
        return other

    def record_access(self, action: str, body: dict[str, Any], *, dataset: str = "", recipient: str = "") -> None:
        """Record in the access log what somebody reads from the vault."""
        with self.ledger.writing(self.keys()) as writing:
            writing.record_access(action, body, dataset=dataset, recipient=recipient)

    @cached_property
    def store(self) -> EncryptedStore:
        """The store of the vault's files."""
        with self.ledger.reading() as reading:
            files = open_store(reading.head().store, self.location)
        return EncryptedStore(files, DataKeys(self.ledger, self.keys), self.ledger)

    @property
    def outbox(self) -> Path | None:
        """The folder for copies that are released without an output path; `None` for a vault in a database."""
        return None if is_url(self.location) else Path(self.location) / "copies"

    @property
    def public_key(self) -> str:
        """The public key with which recipients verify certificates."""
        with self.ledger.reading() as reading:
            return reading.generations()[-1].public

    @property
    def opens_with(self) -> str:
        """The kind of secret that unlocks the vault: `passphrase` or `key`."""
        with self.ledger.reading() as reading:
            return str(reading.generations()[-1].lock.get("opens", "key"))

    def keys(self) -> Mapping[int, Key]:
        """The master keys by generation. Handle with care."""
        return self._unlock()[1]

    def _keys_of_intact_head(self) -> Mapping[int, Key]:
        """The master keys, if the head of the ledger is authentic: it names the store that a table is written to."""
        keys = self.keys()
        with self.ledger.writing(keys):
            return keys

    def _unlock(self) -> tuple[list[Generation], Mapping[int, Key]]:
        """The current wrapped master keys, and the unwrapped ones."""
        with self.ledger.reading() as reading:
            head, generations = reading.head(), reading.generations()
        if self._secret is None:
            self._secret = unlocking.find_secret(self.location, generations[-1].lock.get("opens"))
        if self._unlocked is None or self._unlocked[0] != generations:
            self._unlocked = generations, unlocking.unwrap_master_keys(head, generations, self._secret)
        return self._unlocked

    def backup(self, target: str | Path) -> str:
        """Write all but the released copies to one file, with wrapped keys, and return the hash of the last entry."""
        from sfumato.vault.backup import write_backup

        with self.ledger.writing(self.keys()) as writing:
            [last] = writing.entries(Query(last=1))
            if last.action != "backed-up":
                writing.append("backed-up", "vault", {})
        with self.ledger.reading(self.keys()) as reading:
            return write_backup(reading, self.store.files, Path(target))

    def relock(self, secret: Secret) -> None:
        """Lock the vault with another passphrase or key from now on."""
        from sfumato.vault.key_rotation import relock

        wrapped, keys = self._unlock()
        with self.ledger.writing(keys) as writing:
            relock(writing, wrapped, keys, secret)
            writing.append("relocked", "vault", {"opens": "passphrase" if isinstance(secret, str) else "key"})
        self._secret = secret

    def encrypt(self) -> list[Entry]:
        """Encrypt the files that are plain, or under an earlier key; returns one entry per dataset that had some."""
        from sfumato.vault.encryption import encrypt_files

        return encrypt_files(self.ledger, self._keys_of_intact_head(), self.store)

    def rekey_cost(self, *, lost: bool = False) -> list[dict[str, Any]]:
        """The disclosure risk of a new master key: the residual error of each recipient's copies, now and after it.

        Args:
            lost: the old secret is lost, so that nobody can read who holds which copy: nothing is returned.

        """
        from sfumato.vault.key_rotation import rekey_cost

        if lost:
            return []
        with self.ledger.reading(self.keys()) as reading:
            return rekey_cost(reading, self.store)

    def rekey(self, *, secret: Secret | None = None, lost: bool = False) -> Entry:
        """Replace the master key: later copies have noise that is independent of that in all earlier ones.

        Args:
            secret: a new secret that locks the vault; needed if the old one is lost.
            lost: the old secret is lost, and with it all that the vault holds: nobody can read its entries and its
                tables any more. The chain of entries goes on; recipients and tables have to be added again.

        """
        from sfumato.vault.encryption import encrypt_files
        from sfumato.vault.key_rotation import rekey

        if lost and secret is None:
            raise CustodyError("a vault whose key is lost must be locked with a new passphrase or key; give one")
        with self.ledger.reading() as reading:
            wrapped, current = reading.generations(), reading.head().generation
        keys = {} if lost else dict(self._unlock()[1])
        chosen = secret if secret is not None else self._secret
        if chosen is None:
            raise CustodyError("a vault must be locked with a passphrase or a key; give one")
        entry = rekey(self.ledger, wrapped, keys, chosen, current, lost=lost)
        self._secret = chosen
        if not lost:
            encrypt_files(self.ledger, self.keys(), self.store)
        return entry
