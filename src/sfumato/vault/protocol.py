"""The interface of a vault, which `Vault` and the HTTP client `RemoteVault` both implement.

Programs such as the command line use this interface, and need not know whether a vault is on this machine or behind a
service. A test checks that both classes have these methods with the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol

from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query
from sfumato.levels import Level
from sfumato.release.manifest import Manifest
from sfumato.release.policy import Policy
from sfumato.vault.grants import Grant, RequestedLevel
from sfumato.vault.recipients import Recipient
from sfumato.vault.tokens import Token
from sfumato.vault.tracing import Trace
from sfumato.vault.verification import VerificationReport

Progress = Callable[[int], None]
"""Called with the number of rows, bytes or items that were processed since the last call."""

Stage = Callable[[str], None]
"""Called with the name of each stage of a long operation."""


class DatasetInfo(Protocol):
    """The public data of one version of a dataset."""

    @property
    def name(self) -> str:
        """The name of the dataset."""

    @property
    def version(self) -> int:
        """The number of the version, counted from 1."""

    @property
    def rows(self) -> int:
        """The number of rows of this version."""

    @property
    def traced(self) -> bool:
        """Whether the copies of one level are fingerprinted, so that leaks can be traced."""

    @property
    def columns(self) -> Mapping[str, str]:
        """The role of each column."""

    @property
    def levels(self) -> Mapping[str, float]:
        """The fidelity of each declared level, the most trusted one first."""


class AuditReport(Protocol):
    """The result of an audit."""

    @property
    def passed(self) -> bool:
        """Whether the copies passed all checks and the policy's thresholds."""

    def summary(self) -> dict[str, Any]:
        """The result as JSON."""

    def text(self) -> str:
        """The result as text for a terminal."""

    def page(self) -> str:
        """The report as an HTML page with figures."""


class VaultProtocol(Protocol):
    """A vault on this machine, or behind a service."""

    @property
    def public_key(self) -> str:
        """The public key with which recipients verify certificates."""

    @property
    def release_unit(self) -> str:
        """What the progress of a release counts: `rows` or `bytes`."""

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
        """Add a table with its policy; `replace` states it anew under its name, while nothing was released."""

    def update(
        self,
        dataset: str,
        table: Any,
        *,
        replace: bool = False,
        accept_overlap: str | None = None,
        progress: Progress | None = None,
    ) -> Entry:
        """Add the next version of a dataset, as a whole table."""

    def append(
        self, dataset: str, table: Any, *, accept_overlap: str | None = None, progress: Progress | None = None
    ) -> Entry:
        """Add the next version of a dataset: the current one and some more rows."""

    def dataset(self, name: str) -> DatasetInfo:
        """The latest version of a dataset."""

    def tables(self, dataset: str) -> list[str]:
        """The datasets that are the tables of a dataset of several, sorted by name; none of a dataset of one."""

    def recipient(self, name: str, *, note: str = "") -> Entry:
        """Register a recipient."""

    def recipients(self) -> list[Recipient]:
        """All recipients."""

    def disable(self, name: str) -> Entry:
        """Release no more copies to a recipient until it is enabled again."""

    def enable(self, name: str) -> Entry:
        """Enable a disabled recipient."""

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
        """Grant a recipient a dataset at a level."""

    def revoke(self, recipient: str, dataset: str) -> Entry:
        """Revoke a grant."""

    def accesses(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The records of the access log that a query selects, in order."""

    def erase_accesses(self, before: str | date) -> Entry | None:
        """Delete the records of the access log before a day."""

    def erase(self, dataset: str, *, version: int | None = None) -> Entry:
        """Destroy a dataset, or an earlier version of it, for good."""

    def erase_recipient(self, name: str) -> Entry:
        """Erase a recipient: its grants and tokens end for good."""

    def grants(self, dataset: str = "", recipient: str = "") -> list[Grant]:
        """The grants that were not revoked, all of them or those of a dataset or a recipient."""

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
        """Write the copy that a recipient was granted, record the release, and return its path or URL."""

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
    ) -> AuditReport:
        """Attack the copies that recipients hold or may receive, alone and together."""

    def approve(self, dataset: str, officer: str, *, role: str = "", reason: str = "", approved: bool = True) -> Entry:
        """Record an officer's decision about the latest sign-off pack of a dataset's current version."""

    def trace(self, dataset: str, leaked: Any, *, progress: Progress | None = None) -> Trace:
        """Find the recipients whose copy a file is, or was made from."""

    def verify(
        self, *, contains: str | None = None, files: bool = True, progress: Progress | None = None
    ) -> VerificationReport:
        """Verify the ledger, the state, and the stored files."""

    def log(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The ledger entries that a query selects, in order; by default the last 20."""

    def overview(self, dataset: str | None = None) -> dict[str, Any]:
        """An overview of the vault, or of one dataset, with a table."""

    def token(
        self, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
    ) -> dict[str, str]:
        """Issue a token for a recipient's programs, or for the owner's if no holder is given."""

    def tokens(self, holder: str | None = None) -> list[Token]:
        """All tokens, or those of one holder."""

    def withdraw(self, token: str) -> Entry:
        """Withdraw the token with this id."""
