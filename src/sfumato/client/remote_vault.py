"""A vault behind a service, over HTTP: the methods of `Vault`, and downloads for recipients."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from sfumato.client.connection import Connection, Progress
from sfumato.client.downloads import download
from sfumato.client.results import RemoteAudit, RemoteDataset
from sfumato.errors import ServiceError, UnknownSubject
from sfumato.ledger.chain import Entry
from sfumato.ledger.reader import Query
from sfumato.levels import Level
from sfumato.release.files import read_copy
from sfumato.release.manifest import Manifest, attach
from sfumato.release.policy import Policy
from sfumato.tables.filesystem import is_remote
from sfumato.tables.readers import check_file
from sfumato.tables.source import Source
from sfumato.vault.grants import Grant, RequestedLevel
from sfumato.vault.protocol import Stage
from sfumato.vault.recipients import Recipient
from sfumato.vault.sign_off import Pack, check_suffix, is_pdf
from sfumato.vault.tokens import Token
from sfumato.vault.tracing import Trace
from sfumato.vault.verification import VerificationReport

if TYPE_CHECKING:
    from sfumato.client.surveys import RemoteSurveys


def connect(url: str, token: str | None = None) -> RemoteVault:
    """Connect to the service at a URL; without a token, the environment variable `SFUMATO_TOKEN` is used."""
    return RemoteVault(Connection(url, token))


class RemoteVault:
    """A vault behind a service: for a recipient its own grants and copies, for an owner the methods of `Vault`.

    mine = sf.connect("https://copies.example.org", token)
    mine.own_grants()                                 # the datasets I may download, and their guarantees
    table = mine.read("clinic")                       # a pyarrow table with its manifest
    mine.fetch("clinic", "clinic.parquet")
    """

    release_unit = "bytes"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __repr__(self) -> str:
        return f"RemoteVault({self._connection.url!r})"

    def __enter__(self) -> RemoteVault:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def me(self) -> dict[str, Any]:
        """The holder and the scopes of the token."""
        found: dict[str, Any] = self._connection.request("GET", "/me")
        return found

    @property
    def public_key(self) -> str:
        """The public key that verifies certificates, according to the service; compare it with one from the owner."""
        return str(self._connection.request("GET", "/key")["public"])

    @property
    def surveys(self) -> RemoteSurveys:
        """The surveys of the vault."""
        from sfumato.client.surveys import RemoteSurveys  # noqa: PLC0415 - scikit-learn is slow to import

        return RemoteSurveys(self._connection)

    # Methods for recipients

    def own_grants(self) -> list[dict[str, Any]]:
        """The grants of the token's recipient, with the guarantees of each copy."""
        found: list[dict[str, Any]] = self._connection.request("GET", "/me/grants")
        return found

    def manifest(self, dataset: str, *, level: RequestedLevel = None) -> Manifest:
        """The manifest of the recipient's copy, with its certificate."""
        return Manifest.loads(
            json.dumps(self._connection.request("GET", f"/copies/{dataset}/manifest", params=_level(level)))
        )

    def fetch(
        self,
        dataset: str,
        out: str | Path,
        *,
        level: RequestedLevel = None,
        since: int | None = None,
        progress: Progress | None = None,
    ) -> tuple[Path, Manifest]:
        """Download the recipient's copy, or its rows since a version, to a file; `progress` counts bytes."""
        return Path(out), download(self._connection, dataset, _level(level) | _since(since), Path(out), progress)

    def read(self, dataset: str, *, level: RequestedLevel = None) -> pa.Table:
        """The recipient's copy as a table with its manifest."""
        with tempfile.TemporaryDirectory() as folder:
            path, manifest = self.fetch(dataset, Path(folder) / "copy.parquet", level=level)
            return attach(read_copy(path), manifest)

    # Methods for owners: `VaultProtocol`

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
        """Add a table with its policy; `progress` counts rows."""
        policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        with _file(table) as path:
            upload = self._connection.upload(path)
        body: dict[str, Any] = {"policy": policy.dumps(), "upload": upload, "accept_overlap": accept_overlap}
        body |= {"traced": traced, "replace": replace}
        return _entry(self._run_job("POST", "/datasets", body, progress=progress)["entry"])

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
        with _file(table) as path:
            body = {"upload": self._connection.upload(path), "replace": replace, "accept_overlap": accept_overlap}
        return _entry(self._run_job("POST", f"/datasets/{dataset}/versions", body, progress=progress)["entry"])

    def append(
        self, dataset: str, table: Any, *, accept_overlap: str | None = None, progress: Progress | None = None
    ) -> Entry:
        """Add the next version of a dataset: the current one and some more rows."""
        with _file(table) as path:
            body = {"upload": self._connection.upload(path), "accept_overlap": accept_overlap}
        return _entry(self._run_job("POST", f"/datasets/{dataset}/rows", body, progress=progress)["entry"])

    def dataset(self, name: str) -> RemoteDataset:
        """The latest version of a dataset."""
        found = self._connection.request("GET", f"/datasets/{name}")
        return RemoteDataset(
            name, found["version"], found["rows"], found["traced"], dict(found["columns"]), dict(found["levels"])
        )

    def tables(self, dataset: str) -> list[str]:
        """The datasets that are the tables of a dataset of several, sorted by name; none of a dataset of one."""
        try:
            self.dataset(dataset)
        except UnknownSubject:
            known = self._connection.request("GET", "/datasets")
            found = [one["dataset"] for one in known if one["table"] and one["dataset"] == f"{dataset}.{one['table']}"]
            if not found:
                raise
            return found
        return []

    def overview(self, dataset: str | None = None) -> dict[str, Any]:
        """An overview of the vault, or of one dataset, with a table."""
        found: dict[str, Any] = self._connection.request(
            "GET", "/vault" if dataset is None else f"/datasets/{dataset}/status"
        )
        return found

    def recipients(self) -> list[Recipient]:
        """All recipients, sorted by name."""
        return [Recipient(**one) for one in self._connection.request("GET", "/recipients")]

    def recipient(self, name: str, *, note: str = "") -> Entry:
        """Register a recipient."""
        return _entry(self._connection.request("POST", "/recipients", json={"recipient": name, "note": note}))

    def disable(self, name: str) -> Entry:
        """Release no more copies to a recipient until it is enabled again."""
        return _entry(self._connection.request("PATCH", f"/recipients/{name}", json={"enabled": False}))

    def enable(self, name: str) -> Entry:
        """Enable a disabled recipient."""
        return _entry(self._connection.request("PATCH", f"/recipients/{name}", json={"enabled": True}))

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
        body = {
            "level": level.fidelity if isinstance(level, Level) else level,
            "columns": None if columns is None else list(columns),
            "where": where,
            "until": until.isoformat() if isinstance(until, date) else until,
        }
        return _entry(self._connection.request("PUT", f"/grants/{dataset}/{recipient}", json=body))

    def revoke(self, recipient: str, dataset: str) -> Entry:
        """Revoke a grant; copies that were released before cannot be taken back."""
        return _entry(self._connection.request("DELETE", f"/grants/{dataset}/{recipient}"))

    def grants(self, dataset: str = "", recipient: str = "") -> list[Grant]:
        """The grants that were not revoked, all of them or those of a dataset or a recipient."""
        chosen = {name: value for name, value in (("dataset", dataset), ("recipient", recipient)) if value}
        return [_grant(one) for one in self._connection.request("GET", "/grants", params=chosen)]

    def release(
        self,
        recipient: str,
        dataset: str,
        out: str | Path | None = None,
        *,
        level: RequestedLevel = None,
        since: int | None = None,
        threads: int | None = None,  # noqa: ARG002 - the service decides
        progress: Progress | None = None,
    ) -> tuple[Any, Manifest]:
        """Download the copy that a recipient was granted; `progress` counts bytes."""
        if out is None or is_remote(out):
            raise ServiceError("a release from a service needs an output file on this machine; name one (--out)")
        query = {**_level(level), **_since(since), "recipient": recipient}
        return Path(out), download(self._connection, dataset, query, Path(out), progress)

    def token(
        self, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
    ) -> dict[str, str]:
        """Issue a token for a recipient's programs, or for the owner's if no holder is given; it is shown once."""
        body = {"scopes": None if scopes is None else list(scopes), "days": days, "note": note}
        path = f"/recipients/{holder}/tokens" if holder else "/tokens"
        issued: dict[str, str] = self._connection.request("POST", path, json=body)
        return issued

    def tokens(self, holder: str | None = None) -> list[Token]:
        """All tokens, or those of one holder."""
        found = self._connection.request("GET", "/tokens" if holder is None else f"/recipients/{holder}/tokens")
        return [Token(**{**one, "scopes": tuple(one["scopes"])}) for one in found]

    def withdraw(self, token: str) -> Entry:
        """Withdraw the token with this id, so that it is no longer valid."""
        return _entry(self._connection.request("DELETE", f"/tokens/{token}"))

    def erase(self, dataset: str, *, version: int | None = None) -> Entry:
        """Destroy a dataset, or an earlier version of it, for good: nobody can read its content any more."""
        part = "" if version is None else f"/versions/{version}"
        return _entry(self._connection.request("DELETE", f"/datasets/{dataset}{part}"))

    def erase_recipient(self, name: str) -> Entry:
        """Erase a recipient: its grants and tokens end for good; the ledger keeps which copies it received."""
        return _entry(self._connection.request("DELETE", f"/recipients/{name}"))

    def erase_accesses(self, before: str | date) -> Entry | None:
        """Delete the records of the access log before a day, such as 2026-12-31; `None` if there is none."""
        found = self._connection.request("DELETE", "/accesses", params={"before": str(before)})
        return None if found is None else _entry(found)

    def accesses(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The records of the access log that a query selects, in order: who read what, and when."""
        return self._pages("/accesses", query)

    def log(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """The ledger entries that a query selects, in order; by default the last 20."""
        return self._pages("/ledger", query)

    def _pages(self, path: str, query: Query) -> list[Entry]:
        """The entries that a query selects, in order, read page by page."""
        wanted = {"dataset": query.dataset, "recipient": query.recipient, "action": query.action}
        days = {"since": query.since and query.since[:10], "until": query.until}
        filters = {name: value for name, value in {**wanted, **days}.items() if value is not None}
        found: list[Entry] = []
        before = query.before
        while query.last is None or len(found) < query.last:
            limit = min(500, query.last - len(found)) if query.last is not None else 500
            start = {"before": before} if before else {}
            page = self._connection.request("GET", path, params={**filters, "limit": limit, **start})
            found += map(_entry, page["entries"])
            before = page["before"]
            if before is None:
                break
        return found[::-1]

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
    ) -> RemoteAudit:
        """Attack the copies that recipients hold or may receive, alone and together."""
        if report is not None:
            check_suffix(Path(report))
        body = {
            "colluders": colluders and list(colluders),
            "attacks": attacks and list(attacks),
            "rows": rows,
            "without": list(without),
            "quasi": list(quasi),
            "risk_utility": risk_utility,
            "pack": None if report is None else "pdf" if is_pdf(Path(report)) else "html",
        }
        job = self._connection.request("POST", f"/datasets/{dataset}/audits", json=body)["job"]
        result = self._connection.wait(job, stage)
        if report is not None:
            self._pack(job).write(Path(report))
        return RemoteAudit(result["passed"], result, self._connection.request("GET", f"/jobs/{job}/report"))

    def _pack(self, job: str) -> Pack:
        """The sign-off pack that an audit made."""
        parts = [self._connection.content(f"/jobs/{job}/pack/{part}") for part in ("content", "signature")]
        return Pack(*parts)

    def approve(self, dataset: str, officer: str, *, role: str = "", reason: str = "", approved: bool = True) -> Entry:
        """Record an officer's decision about the latest sign-off pack of a dataset's current version."""
        body = {"officer": officer, "role": role, "reason": reason, "approved": approved}
        return _entry(self._connection.request("POST", f"/datasets/{dataset}/decisions", json=body))

    def trace(self, dataset: str, leaked: Any, *, progress: Progress | None = None) -> Trace:
        """The recipients whose copy a file is, or was made from; none for a file that was not made from a copy."""
        with _file(leaked) as path:
            upload = self._connection.upload(path)
        return Trace.from_json(
            self._run_job("POST", f"/datasets/{dataset}/traces", {"upload": upload}, progress=progress)
        )

    def verify(
        self, *, contains: str | None = None, files: bool = True, progress: Progress | None = None
    ) -> VerificationReport:
        """Verify the hash chain of the ledger, the state, and the stored files."""
        body = {"contains": contains, "files": files}
        result = self._run_job("POST", "/ledger/verification", body, progress=progress)
        return VerificationReport(**{field.name: result[field.name] for field in fields(VerificationReport)})

    def _run_job(self, method: str, path: str, body: dict[str, Any], *, progress: Progress | None) -> dict[str, Any]:
        """Start a job, wait until it has finished, and return its result."""
        return self._connection.wait(self._connection.request(method, path, json=body)["job"], progress=progress)


@contextmanager
def _file(table: Any) -> Iterator[Path]:
    """The file of a table, which the service reads as the policy states; a temporary one for a table elsewhere."""
    if isinstance(table, str | Path) and not is_remote(table):
        check_file(table)  # before the upload
        yield Path(table)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, path = Source.of(table), Path(folder) / "table.parquet"
        with pa.parquet.ParquetWriter(path, source.schema) as writer:
            for batch in source.batches():
                writer.write_batch(batch)
        yield path


def _since(version: int | None) -> dict[str, str]:
    return {} if version is None else {"since": str(version)}


def _level(level: RequestedLevel) -> dict[str, str]:
    if level is None:
        return {}
    return {"level": repr(level.fidelity) if isinstance(level, Level) else str(level)}


def _entry(data: dict[str, Any]) -> Entry:
    return Entry(**{field.name: data[field.name] for field in fields(Entry)})


def _grant(data: dict[str, Any]) -> Grant:
    columns = None if data["columns"] is None else tuple(data["columns"])
    return Grant(**{**data, "columns": columns})
