"""The collector: takes blurred rows, each ticket once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sfumato.errors import NotWanted
from sfumato.ledger.database import Database
from sfumato.ledger.tables import ANSWERS, CLEAR, INVITED, SURVEYS, TICKETS, VAULT
from sfumato.survey import rows
from sfumato.survey.definition import Survey
from sfumato.survey.epochs import Epoch, Epochs
from sfumato.survey.perturbation import Integers
from sfumato.survey.rows import Submission


class Collector:
    """What surveys received, in the vault's database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.transaction(writes=True) as connection:
            connection.execute(sa.select(VAULT.c.id).with_for_update())  # one at a time makes them
            SURVEYS.create_all(connection, checkfirst=True)

    def take(self, name: str, survey: Survey, sent: Sequence[Submission], *, invited: bool) -> list[bool | None]:
        """Keep some rows, all or none; for each whether it counts, had come before (False), or was not invited."""
        with self._database.transaction(writes=True) as connection:
            guided = survey.mode == "guided"
            if guided:
                _alone(connection, name)
            fresh = self._spend(connection, name, [one.ticket for one in sent], invited=invited)
            taken = [one for one, is_new in zip(sent, fresh, strict=True) if is_new]
            if taken:
                epochs = Epochs(connection, name, survey)
                batch = epochs.count() if guided else 0
                said = [{"level": one.level, "label": one.label, "row": rows.written(one.row)} for one in taken]
                common = {"survey": name, "batch": batch}
                connection.execute(ANSWERS.insert(), [{"key": secrets.token_hex(16), **common, **one} for one in said])
                if guided:
                    epochs.refresh(batch)
        return fresh

    def take_clear(self, name: str, survey: Survey, sent: Submission, *, invited: bool) -> bool | None:
        """Keep an unblurred row of somebody who consented to give it."""
        with self._database.transaction(writes=True) as connection:
            _alone(connection, name)
            [fresh] = self._spend(connection, name, [sent.ticket], invited=invited)
            if fresh:
                epochs = Epochs(connection, name, survey)
                if not epochs.wants_clear():
                    raise NotWanted("this survey needs no unblurred answers any more; send a blurred one")
                said = {"survey": name, "label": sent.label, "row": rows.written(sent.row)}
                connection.execute(CLEAR.insert().values(key=secrets.token_hex(16), **said))
                epochs.begin()
            return fresh

    def _spend(self, connection: Connection, name: str, tickets: Sequence[str], *, invited: bool) -> list[bool | None]:
        """Use up tickets; for each whether this was its first use, or None where it is none of the invited ones."""
        hashes = [hash_of(name, ticket) for ticket in tickets]
        known = set(hashes)
        if invited:
            wanted = sa.select(INVITED.c.hash).where(INVITED.c.survey == name, INVITED.c.hash.in_(hashes))
            known = set(connection.execute(wanted).scalars())
        values = [{"survey": name, "hash": one} for one in sorted(known)]  # in one order: no deadlock
        fresh: set[str] = set()
        if values:
            insert = _insert(connection, TICKETS).values(values).on_conflict_do_nothing()
            fresh = set(connection.execute(insert.returning(TICKETS.c.hash)).scalars())
        out: list[bool | None] = []
        for one in hashes:
            out.append(one in fresh if one in known else None)
            fresh.discard(one)
        return out

    def invite(self, name: str, count: int) -> list[str]:
        """New tickets; only their hashes are kept."""
        made = [secrets.token_hex(16) for _ in range(count)]
        with self._database.transaction(writes=True) as connection:
            connection.execute(INVITED.insert(), [{"survey": name, "hash": hash_of(name, one)} for one in made])
        return made

    def epoch(self, name: str, survey: Survey) -> Epoch:
        """Where a guided survey stands."""
        with self._database.transaction(writes=False, snapshot=True) as connection:
            return Epochs(connection, name, survey).current()

    def epochs(self, name: str, survey: Survey) -> int:
        """How many guidances there were."""
        with self._database.transaction(writes=False) as connection:
            return Epochs(connection, name, survey).count()

    def wants_clear(self, name: str, survey: Survey) -> bool:
        """Whether unblurred answers are still of use."""
        with self._database.transaction(writes=False) as connection:
            return Epochs(connection, name, survey).wants_clear()

    # What was received

    def counts(self, name: str) -> tuple[dict[int, int], int]:
        """Blurred rows at each level, and unblurred rows."""
        by_level = sa.select(ANSWERS.c.level, sa.func.count()).where(ANSWERS.c.survey == name)
        clear = sa.select(sa.func.count()).select_from(CLEAR).where(CLEAR.c.survey == name)
        with self._database.transaction(writes=False) as connection:
            found = connection.execute(by_level.group_by(ANSWERS.c.level)).all()
            return {int(level): int(count) for level, count in found}, int(connection.execute(clear).scalar_one())

    def received(self, name: str, width: int) -> tuple[Integers, Integers, Integers]:
        """Levels, labels and rows of all blurred answers."""
        query = sa.select(ANSWERS.c.level, ANSWERS.c.label, ANSWERS.c.row).where(ANSWERS.c.survey == name)
        return self._arrays(query.order_by(ANSWERS.c.key), width)

    def clear(self, name: str, width: int) -> tuple[Integers, Integers]:
        """Labels and rows of the unblurred answers."""
        query = sa.select(sa.literal(0).label("level"), CLEAR.c.label, CLEAR.c.row).where(CLEAR.c.survey == name)
        return self._arrays(query.order_by(CLEAR.c.key), width)[1:]

    def _arrays(self, query: Any, width: int) -> tuple[Integers, Integers, Integers]:
        with self._database.transaction(writes=False) as connection:
            found = connection.execute(query).all()
        levels = np.array([one.level for one in found], np.int64)
        labels = np.array([one.label for one in found], np.int64)
        return levels, labels, rows.read([one.row for one in found], width)


def hash_of(name: str, ticket: str) -> str:
    """What is kept of a ticket."""
    return hashlib.sha256(f"{name}\0{ticket}".encode()).hexdigest()


def _alone(connection: Connection, name: str) -> None:
    """Wait for others who write to the same survey; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7])
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))


def _insert(connection: Connection, table: sa.Table) -> Any:
    from sqlalchemy.dialects import postgresql, sqlite  # noqa: PLC0415 - the two databases' own word for it

    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
