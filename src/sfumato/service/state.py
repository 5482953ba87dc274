"""State that all server workers share in the vault's database: sign-in sessions, background jobs and sizes of copies.

All of it is temporary: dropping these tables signs everybody out and forgets old jobs, and does no other harm. Names
and texts are encrypted.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sfumato.errors import TamperedError, Unavailable
from sfumato.keys.key import Key
from sfumato.keys.text_cipher import TextCipher
from sfumato.ledger.chain import Authenticator
from sfumato.ledger.connection import Connection
from sfumato.vault import Vault
from sfumato.vault.data_keys import job_scope

SESSIONS, JOBS, SIZES = "sfumato_browser_sessions", "sfumato_background_jobs", "sfumato_sizes"
"""The names of the tables."""

_TABLES = (
    f"""CREATE TABLE IF NOT EXISTS {SESSIONS} (
        hash VARCHAR(64) NOT NULL, holder TEXT NOT NULL, csrf VARCHAR(64) NOT NULL, until VARCHAR(32) NOT NULL,
        mac VARCHAR(64) NOT NULL, PRIMARY KEY (hash))""",
    f"""CREATE TABLE IF NOT EXISTS {JOBS} (
        id VARCHAR(32) NOT NULL, kind VARCHAR(16) NOT NULL, dataset VARCHAR(16) NOT NULL, about TEXT NOT NULL,
        state VARCHAR(10) NOT NULL, stage TEXT NOT NULL, "rows" BIGINT NOT NULL, result TEXT NOT NULL,
        report TEXT NOT NULL, begun VARCHAR(32) NOT NULL, beat VARCHAR(32) NOT NULL, PRIMARY KEY (id))""",
    f"CREATE TABLE IF NOT EXISTS {SIZES} (tag VARCHAR(32) NOT NULL, bytes BIGINT NOT NULL, PRIMARY KEY (tag))",
)

_EARLIER = ("sfumato_sessions", "sfumato_jobs")
"""Tables of an earlier version, which are dropped."""

_ENCRYPTED = ("stage", "result", "report")
"""The columns of jobs that are encrypted when they change; `about` has the kind, the dataset and the actor."""

_UNFINISHED = ("waiting", "running")
CANCELLED = "cancelled"
"""The state of a job that somebody cancelled; nothing changes it."""

_JOB_RETENTION = timedelta(days=90)
"""How long finished jobs are kept."""

HEARTBEAT_TIMEOUT = timedelta(seconds=60)
"""A job without a heartbeat for this long has died with its worker."""


@dataclass(frozen=True)
class Session:
    """The session of a browser in which an operator signed in by password, or a recipient by token."""

    hash: str
    operator: str
    token: str
    """The id of the recipient's token, or the number of the operator's enrolment, which must stay in force."""
    csrf: str
    until: str
    mac: str = ""
    """Message authentication code under the vault's key, so that write access to the database lets nobody sign in."""

    def expected_mac(self, authenticator: Authenticator, secret: str) -> str:
        """The message authentication code that a genuine session has."""
        return authenticator.mac("session", secret, self.operator, self.token, self.csrf, self.until)


@dataclass(frozen=True)
class Job:
    """A background job with its progress and its result."""

    id: str
    kind: str
    dataset: str
    actor: str
    state: str
    """`waiting`, `running`, `done`, `failed`, `cancelled`, or `lost` if its worker died."""
    stage: str
    rows: int
    result: dict[str, Any]
    begun: str
    has_report: bool
    has_pack: bool


class State:
    """Reads and writes the temporary tables of the service."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._database = vault, vault.ledger.database
        with self._database.transaction(writes=True) as connection:
            connection.wait_for_writers()  # one worker at a time creates the tables
            connection.define([*_TABLES, *(f"DROP TABLE IF EXISTS {name}" for name in _EARLIER)])

    def sign_in(self, operator: str, token: str, hours: int) -> tuple[str, Session]:
        """Start a session; returns the secret for the browser's cookie, and the session."""
        secret = secrets.token_urlsafe(32)
        until = _text(datetime.now(UTC) + timedelta(hours=hours))
        session = Session(hash_of(secret), operator, token, secrets.token_urlsafe(24), until)
        session = replace(session, mac=session.expected_mac(self._authenticator(), secret))
        values = {name: getattr(session, name) for name in ("hash", "csrf", "until", "mac")}
        holder = self._session_cipher().encrypt(session.hash, json.dumps([operator, token]))
        with self._database.transaction(writes=True) as connection:
            connection.run("DELETE FROM sfumato_browser_sessions WHERE until < :now", now=_text(datetime.now(UTC)))
            connection.insert(SESSIONS, {"holder": holder, **values})
        return secret, session

    def session(self, secret: str) -> Session | None:
        """The session of a browser's secret, if it is genuine and has not expired."""
        with self._database.transaction(writes=False) as connection:
            own = "SELECT * FROM sfumato_browser_sessions WHERE hash = :hash"
            row = connection.one(own, hash=hash_of(secret))
        if row is None or row.until <= _text(datetime.now(UTC)):
            return None
        try:
            operator, token = json.loads(self._session_cipher().decrypt(row.hash, row.holder))
        except TamperedError:  # or there is a new master key
            return None
        found = Session(row.hash, operator, token, row.csrf, row.until, row.mac)
        return found if hmac.compare_digest(found.expected_mac(self._authenticator(), secret), found.mac) else None

    def _authenticator(self) -> Authenticator:
        keys = self._vault.keys()
        return Authenticator(keys[max(keys)].derive("sessions"))

    def _session_cipher(self) -> TextCipher:
        keys = self._vault.keys()
        return TextCipher.of(keys[max(keys)].derive("session texts"), "sessions")

    def sign_out(self, session: Session) -> None:
        """End a session."""
        with self._database.transaction(writes=True) as connection:
            connection.delete(SESSIONS, hash=session.hash)

    def add_job(self, kind: str, dataset: str, actor: str) -> str:
        """Record a new job that waits to be run; returns its id."""
        job, now, token = secrets.token_hex(8), _text(datetime.now(UTC)), self._vault.store.keys.token
        about = json.dumps({"kind": kind, "dataset": dataset, "actor": actor})
        values = {"kind": token(kind), "dataset": token(dataset), "state": "waiting", "rows": 0, "stage": ""}
        values["about"] = self._encrypted(token(dataset), job, "about", about)
        with self._database.transaction(writes=True) as connection:
            since = _text(datetime.now(UTC) - _JOB_RETENTION)
            connection.run("DELETE FROM sfumato_background_jobs WHERE begun < :since", since=since)
            connection.insert(JOBS, {"id": job, "result": "", "report": "", "begun": now, "beat": now, **values})
        return job

    def update_job(self, job: str, **changes: Any) -> None:
        """Update a job's heartbeat, and any other columns; what was cancelled stays so, unless its work was done."""
        values = {**changes, "beat": _text(datetime.now(UTC))}
        if "result" in values:
            values["result"] = json.dumps(values["result"], allow_nan=False)
        texts = {name: values[name] for name in _ENCRYPTED if values.get(name)}
        if texts:
            dataset = self._dataset_of(job)
            values |= {name: self._encrypted(dataset, job, name, text) for name, text in texts.items()}
        with self._database.transaction(writes=True) as connection:
            if values.get("state") == "done":  # a pack that is in the ledger must be in the job's result, too
                connection.update(JOBS, values, id=job)
            else:
                connection.update(JOBS, values, id=job, state=[*_UNFINISHED, "done", "failed"])

    def cancel(self, job: str) -> None:
        """Cancel a job that has not finished."""
        with self._database.transaction(writes=True) as connection:
            connection.update(JOBS, {"state": CANCELLED}, id=job, state=list(_UNFINISHED))

    def is_cancelled(self, job: str) -> bool:
        """Whether a job was cancelled."""
        with self._database.transaction(writes=False) as connection:
            return self._job_text(connection, "state", job) == CANCELLED

    def _dataset_of(self, job: str) -> str:
        """The token of the dataset that a job is about."""
        with self._database.transaction(writes=False) as connection:
            return self._job_text(connection, "dataset", job)

    def _encrypted(self, dataset: str, job: str, name: str, text: str) -> str:
        """A text of a job about a dataset, with which it is erased; it says which key it is encrypted under."""
        key = self._vault.store.keys.get_or_create(job_scope(dataset))
        return f"{key.fingerprint()} {_cipher(key).encrypt(f'{job} {name}', text)}"

    def _decrypted(self, dataset: str, job: str, name: str, stored: str) -> str:
        """A text of a job; empty if there is none, or its dataset was erased since."""
        fingerprint, _, text = stored.partition(" ")
        key = self._vault.store.keys.find(job_scope(dataset)) if text else None
        if key is None or key.fingerprint() != fingerprint:
            return ""
        return _cipher(key).decrypt(f"{job} {name}", text)

    def job(self, name: str) -> Job | None:
        """A job by its id, with its result."""
        return next(iter(self._jobs("result", "id = :id", id=name)), None)

    def jobs(self, kind: str | None = None, dataset: str | None = None) -> list[Job]:
        """The latest jobs, newest first, without their results, which can be large."""
        asked = {"kind": kind, "dataset": dataset}
        tokens = {name: self._vault.store.keys.token(value) for name, value in asked.items() if value}
        return self._jobs("''", " AND ".join(f"{name} = :{name}" for name in tokens) or "1 = 1", **tokens)

    def _jobs(self, result: str, where: str, **values: str) -> list[Job]:
        query = (
            f'SELECT id, kind, dataset, about, state, stage, "rows", begun, beat, {result} AS result, '  # noqa: S608 - our own names
            f"report <> '' AS has_report FROM sfumato_background_jobs WHERE {where} ORDER BY begun DESC LIMIT 100"
        )
        with self._database.transaction(writes=False) as connection:
            rows = connection.all(query, **values)
        alive_since = _text(datetime.now(UTC) - HEARTBEAT_TIMEOUT)
        return [self._job({**row._asdict(), "has_report": bool(row.has_report)}, alive_since) for row in rows]

    @staticmethod
    def _job_text(connection: Connection, column: str, job: str) -> str:
        """A column of a job; empty if there is no such job."""
        own = f"SELECT {column} FROM sfumato_background_jobs WHERE id = :id"  # noqa: S608 - our own names
        return str(connection.value(own, id=job) or "")

    def _job(self, row: dict[str, Any], alive_since: str) -> Job:
        texts = {
            name: self._decrypted(row["dataset"], row["id"], name, row.pop(name))
            for name in ("about", "stage", "result")
        }
        about = json.loads(texts["about"] or '{"kind": "", "dataset": "", "actor": ""}')
        is_lost = row.pop("beat") < alive_since and row["state"] in _UNFINISHED
        result = json.loads(texts["result"] or "{}")
        has_pack = result.pop("pack", None) is not None  # it is large, and has its own way out
        row |= about | {"stage": texts["stage"] or row["state"], "result": result, "has_pack": has_pack}
        return Job(**row | ({"state": "lost"} if is_lost else {}))

    def report(self, name: str) -> str:
        """The HTML report of a job, or an empty string."""
        with self._database.transaction(writes=False) as connection:
            stored = self._job_text(connection, "report", name)
        return self._decrypted(self._dataset_of(name), name, "report", stored)

    def pack(self, name: str) -> dict[str, str]:
        """The sign-off pack of a job, or an empty dictionary."""
        with self._database.transaction(writes=False) as connection:
            stored = self._job_text(connection, "result", name)
        result = self._decrypted(self._dataset_of(name), name, "result", stored)
        return dict(json.loads(result or "{}").get("pack", {}))

    def size(self, tag: str) -> int | None:
        """The size in bytes of a copy that has been generated completely before."""
        with self._database.transaction(writes=False) as connection:
            found: int | None = connection.value("SELECT bytes FROM sfumato_sizes WHERE tag = :tag", tag=tag)
        return found

    def store_size(self, tag: str, size: int) -> None:
        """Store the size of a copy in bytes."""
        if self.size(tag) is None:
            with contextlib.suppress(Unavailable), self._database.transaction(writes=True) as connection:
                connection.insert(SIZES, {"tag": tag, "bytes": size})  # fails if another worker just did it


def hash_of(secret: str) -> str:
    """The SHA-256 of a secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _cipher(key: Key) -> TextCipher:
    return TextCipher.of(key, "results of background jobs")


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
