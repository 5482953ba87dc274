"""The vault: a dataset, its secret, its recipients and its history in one place; the use case that knows all parts."""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato.audit.result import Audit
from sfumato.errors import CustodyError, VaultError
from sfumato.keys.key import Key
from sfumato.keys.lock import Secret
from sfumato.ledger.chain import Entry
from sfumato.ledger.database import FILE, Database, is_url
from sfumato.ledger.ledger import Generation, Ledger, Query
from sfumato.release.manifest import Manifest
from sfumato.schema.levels import Level
from sfumato.schema.policy import Policy
from sfumato.schema.view import View
from sfumato.vault import custody
from sfumato.vault.adding import add, update
from sfumato.vault.audits import audit_dataset, holders_of
from sfumato.vault.backup import read_backup, write_backup
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import Asked, Grant, known, terms
from sfumato.vault.names import last_moment, moment, user
from sfumato.vault.places import check_replaced, place_in, prepared
from sfumato.vault.recipients import register, switch
from sfumato.vault.rekeying import cost, rekey, relock
from sfumato.vault.releases import Request, release
from sfumato.vault.store import Store, open_store
from sfumato.vault.suspects import issues
from sfumato.vault.tracing import Trace, trace
from sfumato.vault.verification import Report, verify

Progress = Callable[[int], None]
Clock = Callable[[], datetime]


class Vault:
    """A folder, or a database and a store, with everything that belongs to some datasets.

        vault = Vault.create("vault")                      # its key lies beside it, in vault.key
        vault.add(policy, table)
        vault.recipient("university")
        vault.grant("university", "clinic", "partner")
        vault.release("university", "clinic", "clinic.parquet")

    Reading needs no secret; writing, verifying and releasing do, and look for it in this order: the argument `secret`
    (a passphrase or a `Key`), `SFUMATO_KEY`, `SFUMATO_KEY_FILE`, `SFUMATO_PASSPHRASE`, the key file beside the folder.
    """

    def __init__(
        self, location: str | Path, database: Database, secret: Secret | None, clock: Clock | None = None
    ) -> None:
        self.location = str(location)
        self._secret, self.now = secret, clock or (lambda: datetime.now(UTC))
        self._known: tuple[list[Generation], Mapping[int, Key]] | None = None
        self.ledger = Ledger(database, actor=os.environ.get("SFUMATO_ACTOR") or user(), clock=self.now)

    def acting_as(self, actor: str) -> Vault:
        """The same vault, with somebody else named in what is recorded."""
        other = copy.copy(self)
        other.ledger = Ledger(self.ledger.database, actor=actor, clock=self.now)
        return other

    @classmethod
    def create(
        cls,
        location: str | Path = "vault",
        *,
        secret: Secret | None = None,
        store: str | None = None,
        key: Key | None = None,
        clock: Clock | None = None,
    ) -> Vault:
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
        pooled: bool = False,
    ) -> Vault:
        """Open a vault that exists; `pooled` keeps connections to its database, as a service does."""
        if not is_url(location) and not (Path(location) / FILE).is_file():
            raise VaultError(f"there is no vault in {location}; make one with `sfumato init {location}`")
        database = Database(location, pooled=pooled)
        database.check()
        return cls(location, database, secret, clock)

    def __repr__(self) -> str:
        return f"Vault({self.ledger.database.name!r})"

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

    def add(
        self, policy: Policy | str | Path, table: Any, *, traced: bool = False, progress: Progress | None = None
    ) -> Entry:
        """Keep a table with its policy, under the policy's name for it; adding the same again changes nothing.

        Args:
            traced: give recipients of the same level copies that differ by a hair, so that a leak can be traced.

        """
        policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        return add(self.ledger, self._sealed(), self.store, policy, table, traced=traced, progress=progress)

    def update(self, dataset: str, table: Any, *, progress: Progress | None = None) -> Entry:
        """Keep the next version of a dataset; the same table again changes nothing."""
        return update(self.ledger, self._sealed(), self.store, dataset, table, progress=progress)

    def dataset(self, name: str) -> Dataset:
        """The latest version of a dataset."""
        with self.ledger.reading() as reading:
            return Dataset.of(known(reading, "dataset", name), self.store)

    def recipient(self, name: str, *, note: str = "") -> Entry:
        """Register a recipient; one that is registered already stays as it is."""
        return register(self.ledger, self.keys(), name, note)

    def disable(self, name: str) -> Entry:
        """Let a recipient receive nothing more until it is enabled again."""
        return switch(self.ledger, self.keys(), name, "disabled")

    def enable(self, name: str) -> Entry:
        """Let a disabled recipient receive copies again."""
        return switch(self.ledger, self.keys(), name, "enabled")

    def grant(
        self,
        recipient: str,
        dataset: str,
        level: Level | float | str,
        *,
        columns: Iterable[str] | None = None,
        where: str | None = None,
        until: str | date | datetime | None = None,
    ) -> Entry:
        """Let a recipient have a dataset at a level; the same grant again changes nothing.

        Args:
            columns: only these.
            where: only rows for which this holds, as in `region == 'north'`; it may speak of public columns only.
            until: the last day, or the moment, of the grant.

        """
        view = View(None if columns is None else tuple(columns), where)
        keys, end = self.keys(), moment(until)
        if end is not None and datetime.fromisoformat(end) <= self.now():
            raise VaultError(f"a grant must end in the future, and {last_moment(end)} is over; choose a later day")
        with self.ledger.reading(keys) as reading:
            entry = known(reading, "dataset", dataset)
        source = Dataset.of(entry, self.store)
        source.scheme.check_view(source.schema)  # read now, not while others wait to write
        with self.ledger.writing(keys) as writing:
            known(writing, "recipient", recipient)
            if known(writing, "dataset", dataset).number != entry.number:
                raise VaultError(f"somebody else brought a version of {dataset} meanwhile; grant it again")
            body = terms(writing, source, recipient, level, view, end)
            before = writing.latest("grant", dataset, recipient)
            if before is not None and before.action == "granted" and before.body == body:
                return before
            return writing.append("granted", "grant", body, dataset=dataset, recipient=recipient)

    def revoke(self, recipient: str, dataset: str) -> Entry:
        """Let a recipient have a dataset no more; what it was given cannot be taken back."""
        with self.ledger.writing(self.keys()) as writing:
            before = writing.latest("grant", dataset, recipient)
            if before is None:
                raise VaultError(f"{recipient} has no grant for {dataset} that could be revoked")
            if before.action == "revoked":
                return before
            return writing.append("revoked", "grant", before.body, dataset=dataset, recipient=recipient)

    def release(
        self,
        recipient: str,
        dataset: str,
        out: str | Path | None = None,
        *,
        level: Asked = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Path, Manifest]:
        """Make the copy that a recipient was granted, and record it before it appears.

        Args:
            out: the file to write (Parquet, CSV or Arrow by its ending); by default one in the vault's folder.
            level: a lower one than that of the grant; such a copy goes to a file that is named.

        """
        keys = self.keys()
        with self.ledger.reading(keys) as reading:
            known(reading, "recipient", recipient)
            now = Dataset.of(known(reading, "dataset", dataset), self.store)
            request = Request.of(reading, now, recipient, keys, self.now(), level)
        outbox = self.outbox if level is None else None
        path = Path(out) if out is not None else place_in(outbox, dataset, recipient, now.version)
        check_replaced(path, dataset, recipient)
        return path, release(request, self.ledger, path, self.now, keys, progress, threads)

    def log(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """Some of the ledger's entries, in order."""
        with self.ledger.reading() as reading:
            return reading.entries(query)

    def grants(self, dataset: str = "", recipient: str = "") -> list[Grant]:
        """The grants that were not revoked, of a dataset or a recipient if named."""
        with self.ledger.reading() as reading:
            found = reading.current("grant", dataset=dataset, recipient=recipient)
        return [Grant.of(entry) for entry in found if entry.action == "granted"]

    def audit(
        self,
        dataset: str,
        *,
        colluders: Iterable[str] | None = None,
        attacks: Sequence[str] | None = None,
        rows: int = 100_000,
        stage: Callable[[str], None] = lambda _: None,
    ) -> Audit:
        """Attack what recipients hold of a dataset, or may have, alone and together.

        Args:
            colluders: who pools their copies; by default all who hold or may have one. Where nobody does, one is
                assumed at each declared level.
            attacks: to try; by default all.
            rows: records that are attacked, at most; the others are looked at for outliers only.
            stage: told what is going on.

        """
        keys = self.keys()
        with self.ledger.reading(keys) as reading:
            now = Dataset.of(known(reading, "dataset", dataset), self.store)
            holders = holders_of(reading, now, None if colluders is None else list(colluders), self.now())
        return audit_dataset(now, holders, keys, attacks=attacks, rows=rows, stage=stage)

    def trace(self, dataset: str, leaked: Any, *, progress: Progress | None = None) -> Trace:
        """Whose copy a file is, or was made from; it accuses nobody when it is not ours."""
        keys = self.keys()
        with self.ledger.reading() as reading:
            known(reading, "dataset", dataset)
            found, lost = issues(reading, dataset, self.store, keys)
        return trace(found, leaked, lost, progress)

    def verify(self, *, contains: str | None = None, files: bool = True, progress: Progress | None = None) -> Report:
        """Whether the ledger is whole, the state agrees with it, and every file and copy is as it was.

        Args:
            contains: the hash of an entry, written down earlier, that must still be there.
            files: check tables and copies too, not the ledger alone.

        """
        keys = self.keys()
        return verify(self.ledger, self.store, keys, self.outbox, contains=contains, files=files, progress=progress)

    def backup(self, target: str | Path) -> str:
        """Write everything but the released copies to one file, keys still locked; returns the last entry's hash."""
        with self.ledger.writing(self.keys()) as writing:
            [last] = writing.entries(Query(last=1))
            if last.action != "backed-up":
                writing.append("backed-up", "vault", {})
        with self.ledger.reading(snapshot=True) as reading:
            return write_backup(reading, self.store, Path(target))

    @classmethod
    def restore(
        cls,
        backup: str | Path,
        location: str | Path,
        *,
        secret: Secret | None = None,
        store: str | None = None,
        clock: Clock | None = None,
    ) -> Vault:
        """Make a vault from a backup, in a folder or a database, whichever it came from; its secret opens it."""
        if not Path(backup).is_file():
            raise VaultError(f"a backup must be a file that exists, and {str(backup)!r} is none")
        home = prepared(location, store)
        secret = secret if secret is not None else custody.find_secret(location)
        vault = cls(location, Database(location), secret, clock)
        read_backup(Path(backup), vault.ledger, open_store(home, location), home, secret)
        return vault

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
