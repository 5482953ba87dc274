"""What a service must remember between requests and workers, in the vault's database: sessions, jobs, sizes of copies.

It is scratch: whoever drops these tables signs everybody out and forgets old jobs, and nothing else.
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

import sqlalchemy as sa

from sfumato.errors import Unavailable
from sfumato.ledger.chain import Authenticator
from sfumato.ledger.tables import VAULT
from sfumato.vault import Vault

_TABLES = sa.MetaData()

SESSIONS = sa.Table(
    "sfumato_sessions",
    _TABLES,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("operator", sa.String(100), nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("csrf", sa.String(64), nullable=False),
    sa.Column("until", sa.String(32), nullable=False),
    sa.Column("mac", sa.String(64), nullable=False),
)

JOBS = sa.Table(
    "sfumato_jobs",
    _TABLES,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("dataset", sa.String(100), nullable=False),
    sa.Column("actor", sa.String(120), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("report", sa.Text, nullable=False),
    sa.Column("begun", sa.String(32), nullable=False),
    sa.Column("beat", sa.String(32), nullable=False),
)

SIZES = sa.Table(
    "sfumato_sizes",
    _TABLES,
    sa.Column("tag", sa.String(32), primary_key=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
)

_KEPT = timedelta(days=90)
"""Jobs are remembered for so long."""

SILENCE = timedelta(seconds=60)
"""A job that was not heard of for so long has died with its worker."""


@dataclass(frozen=True)
class Session:
    """A signed-in browser: an operator's, or that of a recipient who showed a token."""

    hash: str
    operator: str
    token: str
    """The id of the recipient's token, or the number of the operator's enrolment; it must stay in force."""
    csrf: str
    until: str
    mac: str = ""
    """The vault's word for all of it: who can write to the database cannot sign in by that."""

    def vouched(self, codes: Authenticator, secret: str) -> str:
        """The code that the session must have."""
        return codes.of("session", secret, self.operator, self.token, self.csrf, self.until)


@dataclass(frozen=True)
class Job:
    """Long work, and what became of it."""

    id: str
    kind: str
    dataset: str
    actor: str
    state: str
    """`waiting`, `running`, `done`, `failed`, or `lost` with its worker."""
    stage: str
    rows: int
    result: dict[str, Any]
    begun: str
    has_report: bool


class State:
    """The scratch tables of a service."""

    def __init__(self, vault: Vault) -> None:
        self._vault, self._database = vault, vault.ledger.database
        with self._database.transaction(writes=True) as connection:
            connection.execute(sa.select(VAULT.c.id).with_for_update())  # one worker at a time makes them
            _TABLES.create_all(connection, checkfirst=True)

    def sign_in(self, operator: str, token: str, hours: int) -> tuple[str, Session]:
        """A new session, and the secret that the browser keeps."""
        secret = secrets.token_urlsafe(32)
        until = _text(datetime.now(UTC) + timedelta(hours=hours))
        session = Session(hash_of(secret), operator, token, secrets.token_urlsafe(24), until)
        session = replace(session, mac=session.vouched(self._codes(), secret))
        with self._database.transaction(writes=True) as connection:
            connection.execute(SESSIONS.delete().where(SESSIONS.c.until < _text(datetime.now(UTC))))
            connection.execute(SESSIONS.insert().values(**session.__dict__))
        return secret, session

    def session(self, secret: str) -> Session | None:
        """The session that a browser's secret belongs to."""
        with self._database.transaction(writes=False) as connection:
            row = connection.execute(sa.select(SESSIONS).where(SESSIONS.c.hash == hash_of(secret))).one_or_none()
        found = None if row is None else Session(**row._mapping)  # noqa: SLF001 - its public name
        if found is None or found.until <= _text(datetime.now(UTC)):
            return None
        return found if hmac.compare_digest(found.vouched(self._codes(), secret), found.mac) else None

    def _codes(self) -> Authenticator:
        keys = self._vault.keys()
        return Authenticator(keys[max(keys)].derive("sessions"))

    def sign_out(self, session: Session) -> None:
        """End a session."""
        with self._database.transaction(writes=True) as connection:
            connection.execute(SESSIONS.delete().where(SESSIONS.c.hash == session.hash))

    def add(self, kind: str, dataset: str, actor: str) -> str:
        """A job that waits for its turn; returns its id."""
        name, now = secrets.token_hex(8), _text(datetime.now(UTC))
        said = {"kind": kind, "dataset": dataset, "actor": actor, "state": "waiting", "stage": "waiting", "rows": 0}
        with self._database.transaction(writes=True) as connection:
            connection.execute(JOBS.delete().where(JOBS.c.begun < _text(datetime.now(UTC) - _KEPT)))
            connection.execute(JOBS.insert().values(id=name, result="{}", report="", begun=now, beat=now, **said))
        return name

    def beat(self, name: str, **said: Any) -> None:
        """A sign of life, with whatever there is to say."""
        values = {**said, "beat": _text(datetime.now(UTC))}
        if "result" in values:
            values["result"] = json.dumps(values["result"], allow_nan=False)
        with self._database.transaction(writes=True) as connection:
            connection.execute(JOBS.update().where(JOBS.c.id == name).values(**values))

    def job(self, name: str) -> Job | None:
        """A job by its id, with its result."""
        return next(iter(self._jobs(JOBS.c.result, JOBS.c.id == name)), None)

    def jobs(self, kind: str | None = None, dataset: str | None = None) -> list[Job]:
        """The latest jobs, the last one first; without their results, which may be long."""
        wanted = [JOBS.c.kind == kind] if kind else []
        nothing = sa.literal("{}").label("result")
        return self._jobs(nothing, *wanted, *([JOBS.c.dataset == dataset] if dataset else []))

    def _jobs(self, result: Any, *where: Any) -> list[Job]:
        columns = [column for column in JOBS.c if column.name not in ("report", "result")]
        query = sa.select(*columns, result, (JOBS.c.report != "").label("has_report")).where(*where)
        with self._database.transaction(writes=False) as connection:
            rows = connection.execute(query.order_by(JOBS.c.begun.desc()).limit(100)).mappings().all()
        dead = _text(datetime.now(UTC) - SILENCE)
        return [_job(dict(row), dead) for row in rows]

    def report(self, name: str) -> str:
        """The page that a job made."""
        with self._database.transaction(writes=False) as connection:
            return connection.execute(sa.select(JOBS.c.report).where(JOBS.c.id == name)).scalar() or ""

    def size(self, tag: str) -> int | None:
        """The bytes of a copy that was once made to its end."""
        with self._database.transaction(writes=False) as connection:
            return connection.execute(sa.select(SIZES.c.bytes).where(SIZES.c.tag == tag)).scalar()

    def keep_size(self, tag: str, size: int) -> None:
        """Remember the bytes of a copy."""
        if self.size(tag) is None:
            with contextlib.suppress(Unavailable), self._database.transaction(writes=True) as connection:
                connection.execute(SIZES.insert().values(tag=tag, bytes=size))  # unless somebody else just did


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _job(row: dict[str, Any], dead: str) -> Job:
    lost = row["state"] in ("waiting", "running") and row.pop("beat") < dead
    row.pop("beat", None)
    return Job(**{**row, "result": json.loads(row["result"]), "state": "lost" if lost else row["state"]})


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
