"""The collector of a survey: stores perturbed answers in the vault's database and accepts each ticket once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.errors import BootstrapComplete
from sfumato.ledger.connection import Connection
from sfumato.ledger.ledger import Ledger, LedgerWriter
from sfumato.ledger.tables import ANSWERS, CLEAR, SURVEY_TABLES, SURVEYS
from sfumato.survey import invitations, rows
from sfumato.survey.answer_encryption import AnswerCipher, survey_scope
from sfumato.survey.definition import Survey
from sfumato.survey.epochs import Epoch, Epochs
from sfumato.survey.invitations import Counted, Group, ticket_hash, use_tickets
from sfumato.survey.perturbation import Integers
from sfumato.survey.rows import Submission
from sfumato.vault.data_keys import DataKeys, erase

_ENOUGH = "this survey needs no more unperturbed answers; send a perturbed one"


class Collector:
    """The answers, tickets and guidances of all surveys, in the vault's database."""

    def __init__(self, ledger: Ledger, keys: DataKeys) -> None:
        self._ledger, self._keys, self._database = ledger, keys, ledger.database
        self._ciphers: dict[str, AnswerCipher] = {}
        database = ledger.database
        with database.transaction(writes=True) as connection:
            connection.wait_for_writers()  # only one process creates the tables
            connection.define(SURVEY_TABLES)

    def _cipher(self, name: str) -> AnswerCipher:
        """The cipher of a survey's answers."""
        if name not in self._ciphers:
            self._ciphers[name] = AnswerCipher.of(self._ledger, self._keys, name)
        return self._ciphers[name]

    def store(self, name: str, survey: Survey, submissions: Sequence[Submission], *, invited: bool) -> list[Counted]:
        """Store perturbed rows in one transaction, all or none.

        Returns:
            for each row, whether it counts.

        """
        cipher = self._cipher(name)
        with self._database.transaction(writes=True) as connection:
            is_guided = survey.mode == "guided"
            if is_guided:
                _lock_survey(connection, name)
            tickets = [ticket_hash(name, one.ticket) for one in submissions]
            is_first = use_tickets(connection, cipher.survey, tickets, invited=invited)
            accepted = [one for one, is_new in zip(submissions, is_first, strict=True) if is_new is True]
            if accepted:
                epochs = Epochs(connection, cipher, survey)
                batch = epochs.count() if is_guided else 0
                common = {"survey": cipher.survey, "batch": batch}
                answers = ({**_record(cipher, one), **common, "level": one.level} for one in accepted)
                connection.insert(ANSWERS, *answers)
                if is_guided:
                    epochs.refresh(batch)
        return is_first

    def store_unperturbed(self, name: str, survey: Survey, submission: Submission, *, invited: bool) -> Counted:
        """Store an unperturbed row of a respondent who consented to send it; returns whether it counts."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=True) as connection:
            _lock_survey(connection, name)
            if invited and not Epochs(connection, cipher, survey).needs_unperturbed():
                raise BootstrapComplete(_ENOUGH)  # whether the ticket was used or not: nobody else is to find out
            tickets = [ticket_hash(name, submission.ticket)]
            [is_first] = use_tickets(connection, cipher.survey, tickets, invited=invited)
            if is_first is True:
                epochs = Epochs(connection, cipher, survey)
                if not epochs.needs_unperturbed():
                    raise BootstrapComplete(_ENOUGH)
                connection.insert(CLEAR, {"survey": cipher.survey, **_record(cipher, submission)})
                epochs.begin()
            return is_first

    def invite(self, name: str, count: int, group: str = "", quota: int | None = None) -> list[str]:
        """Issue new tickets, maybe to the people of a group; only their hashes are stored."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=True) as connection:
            _lock_survey(connection, name)
            return invitations.invite(connection, cipher, name, count, group, quota)

    def groups(self, name: str) -> list[Group]:
        """The groups of invited people."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=False) as connection:
            return invitations.groups(connection, cipher)

    def epoch(self, name: str, survey: Survey) -> Epoch:
        """The current epoch of a guided survey."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=False, snapshot=True) as connection:
            return Epochs(connection, cipher, survey).current()

    def epochs(self, name: str, survey: Survey) -> int:
        """The number of guidances that a survey has published."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=False) as connection:
            return Epochs(connection, cipher, survey).count()

    def needs_unperturbed(self, name: str, survey: Survey) -> bool:
        """Whether a guided survey still accepts unperturbed answers."""
        cipher = self._cipher(name)
        with self._database.transaction(writes=False) as connection:
            return Epochs(connection, cipher, survey).needs_unperturbed()

    def counts(self, name: str) -> tuple[dict[int, int], int]:
        """The number of perturbed rows at each level, and the number of unperturbed rows."""
        own = {"survey": self._cipher(name).survey}
        by_level = "SELECT level, count(*) AS rows FROM sfumato_survey_answers WHERE survey = :survey GROUP BY level"
        unperturbed = "SELECT count(*) FROM sfumato_survey_clear WHERE survey = :survey"
        with self._database.transaction(writes=False) as connection:
            levels = connection.all(by_level, **own)
            total = int(connection.value(unperturbed, **own))
            return {int(level): int(count) for level, count in levels}, total

    def receipts(self, name: str) -> list[str]:
        """The receipts of all answers that count, in the order of their digits, which is not that of arrival."""
        query = "SELECT hash FROM sfumato_survey_tickets WHERE survey = :survey ORDER BY hash"
        with self._database.transaction(writes=False) as connection:
            return [receipt(one) for one in connection.values(query, survey=self._cipher(name).survey)]

    def received(self, name: str, width: int) -> tuple[Integers, Integers, Integers]:
        """The levels, labels and rows of all perturbed answers."""
        query = 'SELECT level, key, "row" FROM sfumato_survey_answers WHERE survey = :survey ORDER BY key'
        return self._arrays(name, query, width)

    def unperturbed(self, name: str, width: int) -> tuple[Integers, Integers]:
        """The labels and rows of the unperturbed answers."""
        query = 'SELECT 0 AS level, key, "row" FROM sfumato_survey_clear WHERE survey = :survey ORDER BY key'
        return self._arrays(name, query, width)[1:]

    def erase(self, writing: LedgerWriter, name: str) -> str:
        """Delete all answers to a survey, its tickets and its guidances, and the key of its answers; its scope."""
        token = writing.cipher.token(name)
        for table in SURVEYS:
            writing.connection.delete(table, survey=[token, name])
        erase(writing, survey_scope(token))
        self._ciphers.pop(name, None)
        return survey_scope(token)

    def _arrays(self, name: str, query: str, width: int) -> tuple[Integers, Integers, Integers]:
        cipher = self._cipher(name)
        with self._database.transaction(writes=False) as connection:
            records = connection.all(query, survey=cipher.survey)
        levels = np.array([one.level for one in records], np.int64)
        labels, texts = cipher.answers([(one.key, one.row) for one in records])
        return levels, np.array(labels, np.int64), rows.from_text(texts, width)


def receipt(used: str) -> str:
    """What is published of a used ticket: its respondent finds it again, and nobody learns the ticket from it."""
    return used[:16]


def _record(cipher: AnswerCipher, submission: Submission) -> dict[str, Any]:
    return cipher.record(submission.label, rows.to_text(submission.row))


def _lock_survey(connection: Connection, name: str) -> None:
    """Wait for other writers of the same survey; SQLite has a single writer anyway."""
    connection.wait_for(int.from_bytes(hashlib.sha256(name.encode()).digest()[:7]))
