"""The vault: a dataset, its secret, its recipients and its history in one place; the use case that knows all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from sfumato.audit.result import Audit
from sfumato.errors import VaultError
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Query
from sfumato.levels import Level
from sfumato.policy.document import Policy
from sfumato.release.manifest import Manifest
from sfumato.tables.view import View
from sfumato.vault import tokens
from sfumato.vault.audits import audit_dataset, holders_of
from sfumato.vault.dataset_versions import add, update
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import Asked, Grant, known, terms
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import last_moment, moment
from sfumato.vault.paths import check_replaced, place_in
from sfumato.vault.recipients import register, switch
from sfumato.vault.releases import Request, release
from sfumato.vault.suspects import issues
from sfumato.vault.tracing import Trace, trace
from sfumato.vault.verification import Report, verify

Progress = Callable[[int], None]


class Vault(VaultLifecycle):
    """A folder, or a database and a store, with everything that belongs to some datasets.

        vault = Vault.create("vault")                      # its key lies beside it, in vault.key
        vault.add(policy, table)
        vault.recipient("university")
        vault.grant("university", "clinic", "partner")
        vault.release("university", "clinic", "clinic.parquet")

    Reading needs no secret; writing, verifying and releasing do, and look for it in this order: the argument `secret`
    (a passphrase or a `Key`), `SFUMATO_KEY`, `SFUMATO_KEY_FILE`, `SFUMATO_PASSPHRASE`, the key file beside the folder.
    """

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

    def token(
        self, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
    ) -> dict[str, str]:
        """A token for a recipient's programs, or without one for the owner's; it cannot be shown again."""
        text, entry = tokens.issue(self, holder, scopes=scopes, days=days, note=note)
        return {"token": text, "id": entry.dataset, "until": entry.body["until"]}

    def tokens(self, holder: str | None = None) -> list[tokens.Token]:
        """What is known of all tokens, or of one holder's."""
        return tokens.listed(self, holder)

    def withdraw(self, token: str) -> Entry:
        """Let the token with this id open nothing any more."""
        return tokens.withdraw(self, token)
