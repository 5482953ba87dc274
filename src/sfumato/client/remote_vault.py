"""A vault behind a service: the same names, the same results, the same bytes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from sfumato.client.connection import Connection, Progress
from sfumato.client.downloads import download
from sfumato.errors import ServiceError
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import Query
from sfumato.levels import Level
from sfumato.policy.document import Policy
from sfumato.release.files import read_copy
from sfumato.release.manifest import Manifest, attach
from sfumato.tables.source import Source

if TYPE_CHECKING:
    from sfumato.client.surveys import RemoteSurveys
    from sfumato.vault.tokens import Token
    from sfumato.vault.verification import Report

Asked = Level | float | str | None


def connect(url: str, token: str | None = None) -> RemoteVault:
    """The vault behind the service at a URL, as far as a token opens it; without one, `SFUMATO_TOKEN` is asked."""
    return RemoteVault(Connection(url, token))


@dataclass(frozen=True)
class RemoteDataset:
    """What a service says of a dataset."""

    name: str
    version: int
    body: dict[str, Any]


class RemoteVault:
    """What a token opens: a recipient's own grants and copies, or an owner's vault.

    mine = sf.connect("https://copies.example.org", token)
    mine.grants()                                     # what I may fetch, and what it promises
    table = mine.read("clinic")                       # a pyarrow table with its manifest
    mine.fetch("clinic", "clinic.parquet")
    """

    def __init__(self, connection: Connection) -> None:
        self._wire = connection

    def __repr__(self) -> str:
        return f"RemoteVault({self._wire.url!r})"

    def __enter__(self) -> RemoteVault:
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def me(self) -> dict[str, Any]:
        """Who the token belongs to."""
        found: dict[str, Any] = self._wire.ask("GET", "/me")
        return found

    @property
    def public_key(self) -> str:
        """What certificates are checked with, as the service says; ask the owner for it by another way too."""
        return str(self._wire.ask("GET", "/key")["public"])

    @property
    def surveys(self) -> RemoteSurveys:
        """The vault's surveys."""
        from sfumato.client.surveys import RemoteSurveys  # noqa: PLC0415 - it needs scikit-learn

        return RemoteSurveys(self._wire)

    # The recipient's side

    def grants(self) -> list[dict[str, Any]]:
        """What the token's recipient may fetch, and what each copy promises."""
        found: list[dict[str, Any]] = self._wire.ask("GET", "/me/grants")
        return found

    def manifest(self, dataset: str, *, level: Asked = None) -> Manifest:
        """A copy's manifest and certificate."""
        return Manifest.loads(json.dumps(self._wire.ask("GET", f"/copies/{dataset}/manifest", params=_level(level))))

    def fetch(
        self, dataset: str, out: str | Path, *, level: Asked = None, progress: Progress | None = None
    ) -> tuple[Path, Manifest]:
        """Write the token's own copy to a file, and its manifest beside it; `progress` is told bytes."""
        return Path(out), download(self._wire, dataset, _level(level), Path(out), progress)

    def read(self, dataset: str, *, level: Asked = None) -> pa.Table:
        """The token's own copy as a table with its manifest."""
        with tempfile.TemporaryDirectory() as folder:
            path, manifest = self.fetch(dataset, Path(folder) / "copy.parquet", level=level)
            return attach(read_copy(path), manifest)

    # The owner's side

    def add(
        self, policy: Policy | str | Path, table: Any, *, traced: bool = False, progress: Progress | None = None
    ) -> Entry:
        """Keep a table with its policy; `progress` is told rows."""
        policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        with _file(table) as path:
            upload = self._wire.upload(path)
        said = {"policy": policy.dumps(), "upload": upload, "traced": traced}
        return _entry(self._done("POST", "/datasets", said, progress=progress)["entry"])

    def update(self, dataset: str, table: Any, *, progress: Progress | None = None) -> Entry:
        """Keep the next version of a dataset."""
        with _file(table) as path:
            upload = self._wire.upload(path)
        return _entry(
            self._done("POST", f"/datasets/{dataset}/versions", {"upload": upload}, progress=progress)["entry"]
        )

    def dataset(self, name: str) -> RemoteDataset:
        """The latest version of a dataset."""
        found = self._wire.ask("GET", f"/datasets/{name}")
        return RemoteDataset(name, found["version"], found)

    def overview(self, dataset: str | None = None) -> dict[str, Any]:
        """The vault at a glance, or one dataset."""
        found: dict[str, Any] = self._wire.ask("GET", "/vault" if dataset is None else f"/datasets/{dataset}/status")
        return found

    def recipients(self) -> list[dict[str, Any]]:
        """All recipients."""
        found: list[dict[str, Any]] = self._wire.ask("GET", "/recipients")
        return found

    def recipient(self, name: str, *, note: str = "") -> Entry:
        """Register a recipient."""
        return _entry(self._wire.ask("POST", "/recipients", json={"recipient": name, "note": note}))

    def disable(self, name: str) -> Entry:
        """Let a recipient receive nothing more."""
        return _entry(self._wire.ask("PATCH", f"/recipients/{name}", json={"enabled": False}))

    def enable(self, name: str) -> Entry:
        """Let a disabled recipient receive copies again."""
        return _entry(self._wire.ask("PATCH", f"/recipients/{name}", json={"enabled": True}))

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
        """Let a recipient have a dataset at a level."""
        said = {
            "level": level.fidelity if isinstance(level, Level) else level,
            "columns": None if columns is None else list(columns),
            "where": where,
            "until": until.isoformat() if isinstance(until, date) else until,
        }
        return _entry(self._wire.ask("PUT", f"/grants/{dataset}/{recipient}", json=said))

    def revoke(self, recipient: str, dataset: str) -> Entry:
        """Let a recipient have a dataset no more."""
        return _entry(self._wire.ask("DELETE", f"/grants/{dataset}/{recipient}"))

    def release(
        self,
        recipient: str,
        dataset: str,
        out: str | Path | None = None,
        *,
        level: Asked = None,
        threads: int | None = None,  # noqa: ARG002 - the service decides
        progress: Progress | None = None,
    ) -> tuple[Path, Manifest]:
        """Make the copy that a recipient was granted; `progress` is told bytes."""
        if out is None:
            raise ServiceError("a copy from a service must be told where to go; name a file (--out)")
        query = {**_level(level), "recipient": recipient}
        return Path(out), download(self._wire, dataset, query, Path(out), progress)

    def token(
        self, holder: str = "", *, scopes: Iterable[str] | None = None, days: int = 90, note: str = ""
    ) -> dict[str, str]:
        """A token for a recipient's programs, or without one for the owner's."""
        said = {"scopes": None if scopes is None else list(scopes), "days": days, "note": note}
        path = f"/recipients/{holder}/tokens" if holder else "/tokens"
        made: dict[str, str] = self._wire.ask("POST", path, json=said)
        return made

    def tokens(self, holder: str | None = None) -> list[Token]:
        """What is known of all tokens, or of one holder's."""
        from sfumato.vault.tokens import Token  # noqa: PLC0415 - a recipient needs nothing of the vault

        found = self._wire.ask("GET", "/tokens" if holder is None else f"/recipients/{holder}/tokens")
        return [Token(**{**one, "scopes": tuple(one["scopes"])}) for one in found]

    def withdraw(self, token: str) -> Entry:
        """Let a token open nothing any more."""
        return _entry(self._wire.ask("DELETE", f"/tokens/{token}"))

    def log(self, query: Query = Query(last=20)) -> list[Entry]:  # noqa: B008 - frozen
        """Some of the ledger's entries, in order."""
        wanted = {"dataset": query.dataset, "recipient": query.recipient, "action": query.action}
        days = {"since": query.since and query.since[:10], "until": query.until}
        said = {name: value for name, value in {**wanted, **days}.items() if value is not None}
        found: list[Entry] = []
        before = query.before
        while query.last is None or len(found) < query.last:
            limit = min(500, query.last - len(found)) if query.last is not None else 500
            place = {"before": before} if before else {}
            page = self._wire.ask("GET", "/ledger", params={**said, "limit": limit, **place})
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
        stage: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Attack what recipients hold: a `text`, a `summary`, whether it `passed`, and a `page`."""
        said = {"colluders": colluders and list(colluders), "attacks": attacks and list(attacks), "rows": rows}
        job = self._wire.ask("POST", f"/datasets/{dataset}/audits", json=said)["job"]
        result = self._wire.wait(job, stage)
        return {**result, "page": self._wire.ask("GET", f"/jobs/{job}/report")}

    def trace(self, dataset: str, leaked: Any, *, progress: Progress | None = None) -> dict[str, Any]:
        """Whose copy a file is, or was made from."""
        with _file(leaked) as path:
            upload = self._wire.upload(path)
        return self._done("POST", f"/datasets/{dataset}/traces", {"upload": upload}, progress=progress)

    def verify(self, *, contains: str | None = None, files: bool = True, progress: Progress | None = None) -> Report:
        """Whether the ledger is whole, and every file as it was."""
        from sfumato.vault.verification import Report  # noqa: PLC0415 - as above

        said = self._done("POST", "/ledger/verification", {"contains": contains, "files": files}, progress=progress)
        return Report(**{field.name: said[field.name] for field in fields(Report)})

    def _done(self, method: str, path: str, said: dict[str, Any], *, progress: Progress | None) -> dict[str, Any]:
        return self._wire.wait(self._wire.ask(method, path, json=said)["job"], progress=progress)


@contextmanager
def _file(table: Any) -> Iterator[Path]:
    """A table as a file."""
    if isinstance(table, str | Path):
        Source.of(table)  # refuses what is no table before it travels
        yield Path(table)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, path = Source.of(table), Path(folder) / "table.parquet"
        with pa.parquet.ParquetWriter(path, source.schema) as writer:
            for batch in source.batches():
                writer.write_batch(batch)
        yield path


def _level(level: Asked) -> dict[str, str]:
    if level is None:
        return {}
    return {"level": repr(level.fidelity) if isinstance(level, Level) else str(level)}


def _entry(said: dict[str, Any]) -> Entry:
    return Entry(**{field.name: said[field.name] for field in fields(Entry)})
