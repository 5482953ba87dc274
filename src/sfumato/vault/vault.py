"""The vault: datasets with their master key, recipients, grants and ledger, and the operations on them.

Audits, tracing and verification are imported when they run: they take seconds to import, and most commands need none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import VaultError
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.levels import Level
from sfumato.tables.filesystem import is_remote
from sfumato.vault import tokens
from sfumato.vault.grants import Grant, RequestedLevel, Terms, existing, require
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import format_end, parse_end, parse_start
from sfumato.vault.overview import checked_overview, dataset_overview, vault_overview
from sfumato.vault.recipients import Recipient, register, set_state
from sfumato.vault.tokens import Token

if TYPE_CHECKING:
    from sfumato.release.manifest import Manifest
    from sfumato.release.policy import Policy
    from sfumato.vault.audits import ReportedAudit
    from sfumato.vault.datasets import Dataset
    from sfumato.vault.protocol import Progress, Stage
    from sfumato.vault.sign_off import Pack
    from sfumato.vault.tracing import Trace
    from sfumato.vault.verification import VerificationReport


class Vault(VaultLifecycle):
    """Datasets with their master key, recipients, grants and ledger, in a folder or in a database with a store.

        vault = Vault.create("vault")                      # its key file is vault.key, beside it
        vault.add(policy, table)
        vault.recipient("university")
        vault.grant("university", "clinic", "partner")
        vault.release("university", "clinic", "clinic.parquet")

    Tables are stored encrypted. Reading the ledger needs no secret; all else needs one, from the first of these sources
    that has it: the argument `secret` (a passphrase or a `Key`), the environment variables `SFUMATO_KEY`,
    `SFUMATO_KEY_FILE` and `SFUMATO_PASSPHRASE`, and the key file beside the folder. `RemoteVault` has the same methods
    (`VaultProtocol`).
    """

    release_unit = "rows"

    def add(
        self,
        policy: Policy | str | Path,
        table: Any,
        *,
        traced: bool = False,
        replace: bool = False,
        accept_overlap: str | None = None,
        progress: Progress | None = None,
    ) -> Entry:
        """Add a table with its policy, under the name in the policy; adding the same again changes nothing.

        Args:
            policy: a policy, or the path of its file.
            traced: fingerprint the copies of recipients with the same level, so that a leak can be traced.
            replace: state a dataset anew, with another table or policy; refused once somebody has a grant or a copy.
            accept_overlap: the reason why records of this table may also be in another dataset, with noise of its
                own; without one that is refused.

        """
        from sfumato.release.policy import Policy
        from sfumato.vault.dataset_versions import add

        policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        keys = self._keys_of_intact_head()
        return add(
            *(self.ledger, keys, self.store, policy, table),
            traced=traced,
            replace=replace,
            accept_overlap=accept_overlap,
            progress=progress,
        )

    def update(
        self,
        dataset: str,
        table: Any,
        *,
        replace: bool = False,
        accept_overlap: str | None = None,
        progress: Progress | None = None,
    ) -> Entry:
        """Add the next version of a dataset, as a whole table; the same table again changes nothing.

        Args:
            replace: accept a table that lacks more than 5 % of the records or, if it has no id column, in which more
                than 5 % of the rows have changed; both are refused otherwise.
            accept_overlap: the reason why new records may also be in another dataset, as for `add`.

        """
        from sfumato.vault.dataset_versions import update

        keys = self._keys_of_intact_head()
        return update(
            *(self.ledger, keys, self.store, dataset, table),
            replace=replace,
            accept_overlap=accept_overlap,
            progress=progress,
        )

    def append(
        self, dataset: str, table: Any, *, accept_overlap: str | None = None, progress: Progress | None = None
    ) -> Entry:
        """Add the next version of a dataset: the current one and these rows; the same rows again change nothing.

        Args:
            accept_overlap: the reason why new records may also be in another dataset, as for `add`.

        """
        from sfumato.vault.dataset_versions import append

        keys = self._keys_of_intact_head()
        return append(self.ledger, keys, self.store, dataset, table, accept_overlap=accept_overlap, progress=progress)

    def dataset(self, name: str) -> Dataset:
        """The latest version of a dataset."""
        with self.ledger.reading(self.keys()) as reading:
            return self._dataset(reading, name)

    def _dataset(self, reading: LedgerReader, name: str) -> Dataset:
        from sfumato.vault.datasets import Dataset

        return Dataset.of(require(reading, "dataset", name), self.store)

    def tables(self, dataset: str) -> list[str]:
        """The datasets that are the tables of a dataset of several, sorted by name; none of a dataset of one."""
        from sfumato.vault.dataset_entries import TABLE

        with self.ledger.reading(self.keys()) as reading:
            if reading.latest("dataset", dataset) is not None:  # no other has a table of it
                return []
            known = [(one.dataset, one.body.get(TABLE)) for one in existing(reading, "dataset")]
            found = [name for name, table in known if table and name == f"{dataset}.{table}"]
            if not found:
                require(reading, "dataset", dataset)  # which raises an error, since there is none
            return found

    def recipient(self, name: str, *, note: str = "") -> Entry:
        """Register a recipient; registering it again changes at most its note."""
        return register(self.ledger, self.keys(), name, note)

    def recipients(self) -> list[Recipient]:
        """All recipients, sorted by name."""
        with self.ledger.reading(self.keys()) as reading:
            entries = existing(reading, "recipient")
        return checked_overview(lambda: [Recipient.of(entry) for entry in entries])

    def disable(self, name: str) -> Entry:
        """Release no more copies to a recipient until it is enabled again."""
        return set_state(self.ledger, self.keys(), name, "disabled")

    def enable(self, name: str) -> Entry:
        """Enable a disabled recipient."""
        return set_state(self.ledger, self.keys(), name, "enabled")

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
        """Grant a recipient a dataset at a level; the same grant again changes nothing.

        Args:
            columns: the columns of the copy; by default all.
            where: a condition on its rows, such as `region == 'north'`, in terms of public columns only.
            until: the last day of the grant, or the time at which it ends.

        """
        end = parse_end(until)
        if end is not None and datetime.fromisoformat(end) <= self.now():
            raise VaultError(f"a grant must end in the future, and {format_end(end)} is past; choose a later day")
        with self.ledger.reading(self.keys()) as reading:
            entry = require(reading, "dataset", dataset)
        terms = Terms.of(entry, self.store, level, columns, where)  # before the transaction: other writers wait
        with self.ledger.writing(self.keys()) as writing:
            require(writing, "recipient", recipient)
            if require(writing, "dataset", dataset).number != entry.number:
                raise VaultError(f"somebody else added a version of {dataset} meanwhile; grant it again")
            body = terms.body(writing, recipient) | {"until": end}
            before = writing.latest("grant", dataset, recipient)
            if before is not None and before.action == "granted" and before.body == body:
                return before
            return writing.append("granted", "grant", body, dataset=dataset, recipient=recipient)

    def revoke(self, recipient: str, dataset: str) -> Entry:
        """Revoke a grant; copies that were released before cannot be taken back."""
        with self.ledger.writing(self.keys()) as writing:
            before = writing.latest("grant", dataset, recipient)
            if before is None:
                raise VaultError(f"only a grant can be revoked, and {recipient} has no grant for {dataset}")
            if before.action == "revoked":
                return before
            return writing.append("revoked", "grant", before.body, dataset=dataset, recipient=recipient)

    def release(
        self,
        recipient: str,
        dataset: str,
        out: str | Path | None = None,
        *,
        level: RequestedLevel = None,
        since: int | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Any, Manifest]:
        """Write the copy that a recipient was granted; the release is recorded before the copy appears.

        Args:
            out: the file to write (in the format of its suffix), or the URL of one in an object store or of a table in
                a database, or a table of Delta Lake (a folder, `NAME.delta`); by default a file in the vault's
                folder.
            level: a lower level than that of the grant; it needs `out`.
            since: an earlier version: the copy then has the rows alone that later ones appended, as the copy of all
                rows has them; it needs `out`.

        """
        from sfumato.vault.paths import check_replaceable, default_copy_path
        from sfumato.vault.releases import CopyRequest, release

        keys = self.keys()
        with self.ledger.reading(keys) as reading:
            require(reading, "recipient", recipient)
            now = self._dataset(reading, dataset)
            request = CopyRequest.of(reading, now, recipient, keys, self.now(), level, since)
        outbox = self.outbox if level is None and since is None else None
        output = out if out is not None else default_copy_path(outbox, dataset, recipient, now.version)
        output = output if is_remote(output) else Path(output)
        check_replaceable(output, dataset, recipient)
        return output, release(request, self.ledger, output, self.now, progress, threads)

    def log(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The ledger entries that a query selects, in order; by default the last 20."""
        with self.ledger.reading(self.keys()) as reading:
            return reading.entries(query)

    def accesses(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The records of the access log that a query selects, in order: who read what, and when."""
        with self.ledger.reading(self.keys()) as reading:
            return reading.accesses(query)

    def erase(self, dataset: str, *, version: int | None = None) -> Entry:
        """Destroy a dataset, or an earlier version of it, for good: nobody can read its content any more.

        Copies that recipients hold remain, and still count. A backup that was written before still has the content.
        """
        from sfumato.vault.erasure import erase_dataset, erase_version

        keys = self.keys()
        if version is not None:
            return erase_version(self.ledger, keys, self.store, dataset, version)
        return erase_dataset(self.ledger, keys, self.store, self.outbox, dataset)

    def erase_accesses(self, before: str | date) -> Entry | None:
        """Delete the records of the access log before a day, such as 2026-12-31; `None` if there is none."""
        with self.ledger.writing(self.keys()) as writing:
            return writing.erase_accesses(parse_start(str(before)))

    def erase_recipient(self, name: str) -> Entry:
        """Erase a recipient: its grants and tokens end for good; the ledger keeps which copies it received."""
        from sfumato.vault.erasure import erase_recipient

        return erase_recipient(self.ledger, self.keys(), self.outbox, name)

    def grants(self, dataset: str = "", recipient: str = "") -> list[Grant]:
        """The grants that were not revoked, all of them or those of a dataset or a recipient."""
        with self.ledger.reading(self.keys()) as reading:
            entries = reading.current("grant", dataset=dataset, recipient=recipient)
        return checked_overview(lambda: [Grant.of(entry) for entry in entries if entry.action == "granted"])

    def audit(
        self,
        dataset: str,
        *,
        colluders: Iterable[str] | None = None,
        attacks: Sequence[str] | None = None,
        rows: int = 100_000,
        without: Sequence[str] = (),
        quasi: Sequence[str] = (),
        risk_utility: bool = False,
        report: str | Path | None = None,
        stage: Stage | None = None,
    ) -> ReportedAudit:
        """Attack the copies that recipients hold or may receive, alone and together.

        Args:
            colluders: the recipients who combine their copies; by default all who hold or may receive one. If nobody
                does, one copy at each declared level is assumed.
            attacks: the names of the attacks; by default all.
            rows: the most records that are read; the others are only checked for outliers.
            without: the parts to leave out: `measures`, `utility`.
            quasi: the columns that a public table about the same persons has, by which it may be linked.
            risk_utility: whether to map what each level would risk and preserve.
            report: the file of a signed sign-off pack, PDF or HTML, which is recorded in the ledger.
            stage: called with the name of each stage.

        """
        from sfumato.vault.audits import audit_dataset, holders_of
        from sfumato.vault.sign_off import check_format, is_pdf

        if report is not None:
            check_format(Path(report))
        keys = self.keys()
        with self.ledger.reading(keys) as reading:
            now = self._dataset(reading, dataset)
            holders = holders_of(reading, now, None if colluders is None else list(colluders), self.now())
        found = audit_dataset(
            *(now, holders, keys),
            attacks=attacks,
            rows=rows,
            without=without,
            quasi=quasi,
            risk_utility=risk_utility,
            stage=stage or (lambda _: None),
        )
        body = {"version": now.version, "passed": found.passed, "state": found.state.value}
        self.record_access("audited", {**body, "colluders": sorted(holders)}, dataset=dataset)
        if report is not None:
            (stage or (lambda _: None))("writing the sign-off pack")
            self.pack(dataset, found, as_pdf=is_pdf(Path(report))).write(Path(report))
        return found

    def pack(self, dataset: str, audit: ReportedAudit, *, as_pdf: bool) -> Pack:
        """The signed sign-off pack of an audit of the current version, recorded in the ledger."""
        from sfumato.vault.sign_off import signed_pack

        now = self.dataset(dataset)
        return signed_pack(self.ledger, self.keys(), now, audit, audit.views, self.now(), as_pdf=as_pdf)

    def approve(self, dataset: str, officer: str, *, role: str = "", reason: str = "", approved: bool = True) -> Entry:
        """Record an officer's decision about the latest sign-off pack of a dataset's current version."""
        from sfumato.vault.approvals import decide

        return decide(self.ledger, self.keys(), dataset, officer, role=role, reason=reason, approved=approved)

    def trace(self, dataset: str, leaked: Any, *, progress: Progress | None = None) -> Trace:
        """The recipients whose copy a file is, or was made from; none for a file that was not made from a copy."""
        from sfumato.vault.suspects import release_groups
        from sfumato.vault.tracing import trace

        keys = self.keys()
        with self.ledger.reading(keys) as reading:
            require(reading, "dataset", dataset)
            groups, untraceable = release_groups(reading, dataset, self.store, keys)
        found = trace(groups, leaked, untraceable, progress)
        accused = sorted({name for suspect in found.accused for name in suspect.recipients})
        self.record_access("traced", {"accused": accused}, dataset=dataset)
        return found

    def verify(
        self, *, contains: str | None = None, files: bool = True, progress: Progress | None = None
    ) -> VerificationReport:
        """Verify the hash chain of the ledger, the state, the stored files, and the copies in the vault's folder.

        Args:
            contains: the hash of an entry, noted earlier, that the ledger must still contain.
            files: verify tables and copies too, not only the ledger.

        """
        from sfumato.vault.verification import verify

        keys = self.keys()
        options: dict[str, Any] = {"contains": contains, "files": files, "progress": progress}
        return verify(self.ledger, self.store.files, keys, self.outbox, **options)

    def overview(self, dataset: str | None = None) -> dict[str, Any]:
        """An overview of the vault, or of one dataset, with a table."""
        return checked_overview(lambda: vault_overview(self) if dataset is None else dataset_overview(self, dataset))

    def token(
        self, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
    ) -> dict[str, str]:
        """Issue a token for a recipient's programs, or for the owner's if no holder is given; it is shown once."""
        text, entry = tokens.issue(self, holder, scopes=scopes, days=days, note=note)
        return {"token": text, "id": entry.dataset, "until": entry.body["until"]}

    def tokens(self, holder: str | None = None) -> list[Token]:
        """All tokens, or those of one holder."""
        return tokens.list_tokens(self, holder)

    def withdraw(self, token: str) -> Entry:
        """Withdraw the token with this id, so that it is no longer valid."""
        return tokens.withdraw(self, token)
