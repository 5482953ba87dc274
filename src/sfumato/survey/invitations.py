"""Invitations: tickets of which each counts once, and groups of invited people with quotas.

Only hashes of tickets are stored. A group says how many of its people answered, never which: nothing links a ticket to
its answer, and a group has at least ten tickets.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.errors import SurveyError
from sfumato.ledger.connection import Connection
from sfumato.ledger.tables import GROUPS, INVITED, MEMBERS, TICKETS
from sfumato.survey.answer_encryption import AnswerCipher

Counted = bool | Literal["full"] | None
"""Whether a row counts: not if its ticket was used before, None if the ticket is not an invited one.

`full` if as many people of its group answered as were wanted, whether this ticket was used before or not: else, who has
the tickets could find out which were, and no count would show it.
"""

SMALLEST = 10
"""The fewest tickets of a group: of fewer people, a number tells who answered."""

_NO_QUOTA = 1_000_000_000


@dataclass(frozen=True)
class Group:
    """A group of invited people, and how many of them answered."""

    name: str
    invited: int
    answered: int
    quota: int | None
    """The number of answers after which others are refused; None without such a limit."""


def invite(
    connection: Connection, cipher: AnswerCipher, name: str, count: int, group: str, quota: int | None
) -> list[str]:
    """Issue new tickets, maybe to the people of a group, whose quota a later call may change."""
    tickets = [secrets.token_hex(16) for _ in range(count)]
    hashes = [ticket_hash(name, one) for one in tickets]
    connection.insert(INVITED, *({"survey": cipher.survey, "hash": one} for one in hashes))
    if group:
        part = _group_part(connection, cipher, group, count, quota)
        connection.insert(MEMBERS, *({"survey": cipher.survey, "hash": one, "part": part} for one in hashes))
    return tickets


def groups(connection: Connection, cipher: AnswerCipher) -> list[Group]:
    """The groups of a survey, by name."""
    found = [
        Group(
            cipher.decrypt(one.part, one.name), one.invited, one.answered, None if one.quota == _NO_QUOTA else one.quota
        )
        for one in _rows(connection, cipher.survey)
    ]
    return sorted(found, key=lambda one: one.name)


def use_tickets(connection: Connection, survey: str, hashes: Sequence[str], *, invited: bool) -> list[Counted]:
    """Use up tickets; for each whether its row counts."""
    valid = set(hashes)
    if invited:
        query = "SELECT hash FROM sfumato_survey_invited WHERE survey = :survey AND hash IN :hashes"
        valid = set(connection.values(query, survey=survey, hashes=list(hashes)))
    use = (
        "INSERT INTO sfumato_survey_tickets (survey, hash) VALUES (:survey, :hash) ON CONFLICT DO NOTHING "
        "RETURNING hash"
    )
    ordered = sorted(valid)  # so that writers cannot deadlock
    fresh = {one for one in ordered if connection.value(use, survey=survey, hash=one) is not None}
    full = _of_full_groups(connection, survey, valid, fresh) if invited else set()
    counted: list[Counted] = []
    for one in hashes:
        counted.append("full" if one in full else one in fresh if one in valid else None)
        fresh.discard(one)
    return counted


def ticket_hash(name: str, ticket: str) -> str:
    """The hash under which a ticket is stored."""
    return hashlib.sha256(f"{name}\0{ticket}".encode()).hexdigest()


def _of_full_groups(connection: Connection, survey: str, sent: set[str], fresh: set[str]) -> set[str]:
    """Those of the tickets whose groups have enough answers, which are not used up; other fresh ones are counted."""
    query = "SELECT part, hash FROM sfumato_survey_members WHERE survey = :survey AND hash IN :hashes"
    members = connection.all(query, survey=survey, hashes=list(sent)) if sent else []
    enough = "SELECT part FROM sfumato_survey_groups WHERE survey = :survey AND answered >= quota"
    closed = set(connection.values(enough, survey=survey)) if members else set()
    full = {one.hash for one in members if one.part in closed}
    count = (
        "UPDATE sfumato_survey_groups SET answered = answered + 1 "
        "WHERE survey = :survey AND part = :part AND answered < quota RETURNING answered"
    )
    for one in sorted(members, key=lambda one: (one.part, one.hash)):  # so that writers cannot deadlock
        if one.hash in fresh - full and connection.value(count, survey=survey, part=one.part) is None:
            full.add(one.hash)
    for one in full & fresh:
        connection.delete(TICKETS, survey=[survey], hash=[one])
    return full


def _group_part(connection: Connection, cipher: AnswerCipher, group: str, count: int, quota: int | None) -> str:
    """The key of a group, which is made or changed for more tickets."""
    if count < SMALLEST:
        raise SurveyError(
            f"at least {SMALLEST} people of a group must be invited at a time, so that a number does not tell who "
            f"answered, got {count}"
        )
    for one in _rows(connection, cipher.survey):
        if cipher.decrypt(one.part, one.name) == group:
            values = {"invited": one.invited + count, "quota": one.quota if quota is None else quota}
            connection.update(GROUPS, values, survey=cipher.survey, part=one.part)
            return str(one.part)
    part = secrets.token_hex(16)
    values = {"invited": count, "answered": 0, "quota": _NO_QUOTA if quota is None else quota}
    connection.insert(GROUPS, {"survey": cipher.survey, "part": part, "name": cipher.encrypt(part, group), **values})
    return part


def _rows(connection: Connection, survey: str) -> list[Any]:
    return connection.all("SELECT * FROM sfumato_survey_groups WHERE survey = :survey", survey=survey)
