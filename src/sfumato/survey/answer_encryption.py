"""Encryption of stored answers, under a key per survey: erasing the key erases the answers, in later backups too."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.keys.text_cipher import TextCipher
from sfumato.ledger.connection import Connection
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.tables import ANSWERS, CLEAR, GUIDANCES, SURVEYS
from sfumato.vault.data_keys import DataKeys


@dataclass(frozen=True)
class AnswerCipher:
    """Encrypts the answers to one survey; each is bound to the survey and to the key of its row."""

    survey: str
    """The token of the survey's name, under which its rows are stored."""
    cipher: TextCipher

    @classmethod
    def of(cls, ledger: Ledger, keys: DataKeys, survey: str) -> AnswerCipher:
        """The cipher of a survey. With its key, the answers that an earlier version stored in plain are encrypted."""
        token = keys.token(survey)
        subject, found = f"answers to {survey}", keys.find(survey_scope(token))
        if found is not None:
            return cls(token, TextCipher.of(found, subject))
        with ledger.writing(keys.master_keys()) as writing:
            found, is_new = keys.created_in(writing, survey_scope(token))
            cipher = cls(token, TextCipher.of(found, subject))
            if is_new:
                cipher._encrypt_plain(writing.connection, survey)
        return cipher

    def encrypt(self, row: str, text: str) -> str:
        """A text of the row with this key."""
        return self.cipher.encrypt(row, text)

    def decrypt(self, row: str, text: str) -> str:
        """The text of a row; raises `TamperedError` if somebody else wrote it, or moved it."""
        return self.cipher.decrypt(row, text)

    def record(self, label: int, row: str) -> dict[str, str | int]:
        """An answer as it is stored, under a random key, so that the order of arrival is not recorded."""
        key = secrets.token_hex(16)
        return {"key": key, "label": 0, "row": self.encrypt(key, f"{label} {row}")}

    def answers(self, records: Iterable[tuple[str, str]]) -> tuple[list[int], list[str]]:
        """The labels and rows of stored answers, given by their keys and texts."""
        parts = [self.decrypt(key, text).split(" ", 1) for key, text in records]
        return [int(label) for label, _ in parts], [row for _, row in parts]

    def _encrypt_plain(self, connection: Connection, name: str) -> None:
        """Encrypt what an earlier version stored in plain, under the survey's name."""
        for stored in SURVEYS:
            connection.update(stored, {"survey": self.survey}, survey=name)
        for table in (ANSWERS, CLEAR):
            own = f"SELECT * FROM {table} WHERE survey = :survey"  # noqa: S608 - our own names
            for record in connection.all(own, survey=self.survey):
                values = {"label": 0, "row": self.encrypt(record.key, f"{record.label} {record.row}")}
                connection.update(table, values, key=record.key)
        guidances = "SELECT epoch, tally FROM sfumato_survey_guidances WHERE survey = :survey"
        for epoch, text in connection.all(guidances, survey=self.survey):
            tally = self.encrypt(str(epoch), text) if text else ""
            connection.update(GUIDANCES, {"tally": tally}, survey=self.survey, epoch=epoch)


def survey_scope(token: str) -> str:
    """The scope of the key of a survey, given by the token of its name."""
    return f"surveys/{token}"
