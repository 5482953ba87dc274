"""Encryption of stored answers, under a key per survey: erasing the key erases the answers, in later backups too."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy.engine import Connection

from sfumato.errors import TamperedError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.tables import ANSWERS, CLEAR, GUIDANCES
from sfumato.vault.data_keys import DataKeys

_NONCE = 12


@dataclass(frozen=True)
class AnswerCipher:
    """Encrypts the answers to one survey; each is bound to the survey and to the key of its row."""

    survey: str
    cipher: AESGCM

    @classmethod
    def of(cls, ledger: Ledger, keys: DataKeys, survey: str) -> AnswerCipher:
        """The cipher of a survey. With its key, the answers that an earlier version stored in plain are encrypted."""
        found, scope = keys.find(survey_scope(survey)), survey_scope(survey)
        if found is None:
            with ledger.writing(keys.master_keys()) as writing:
                found, is_new = keys.created_in(writing, scope)
                cipher = cls(survey, AESGCM(found.expose()))
                if is_new:
                    cipher._encrypt_plain(writing.connection)
            return cipher
        return cls(survey, AESGCM(found.expose()))

    def encrypt(self, row: str, text: str) -> str:
        """A text of the row with this key."""
        nonce = secrets.token_bytes(_NONCE)
        return base64.b64encode(nonce + self.cipher.encrypt(nonce, text.encode(), self._owner(row))).decode()

    def decrypt(self, row: str, text: str) -> str:
        """The text of a row; raises `TamperedError` if somebody else wrote it, or moved it."""
        try:
            stored = base64.b64decode(text, validate=True)
            return self.cipher.decrypt(stored[:_NONCE], stored[_NONCE:], self._owner(row)).decode()
        except (InvalidTag, ValueError):
            raise TamperedError(
                f"the answers to {self.survey} must be as this vault stored them, and one was altered; restore a backup"
            ) from None

    def record(self, label: int, row: str) -> dict[str, str | int]:
        """An answer as it is stored, under a random key, so that the order of arrival is not recorded."""
        key = secrets.token_hex(16)
        return {"key": key, "label": 0, "row": self.encrypt(key, f"{label} {row}")}

    def answers(self, records: Iterable[tuple[str, str]]) -> tuple[list[int], list[str]]:
        """The labels and rows of stored answers, given by their keys and texts."""
        parts = [self.decrypt(key, text).split(" ", 1) for key, text in records]
        return [int(label) for label, _ in parts], [row for _, row in parts]

    def _owner(self, row: str) -> bytes:
        """The associated data of a text, which bind it to its survey and its row."""
        return f"{self.survey}\0{row}".encode()

    def _encrypt_plain(self, connection: Connection) -> None:
        """Encrypt what an earlier version stored in plain."""
        for table in (ANSWERS, CLEAR):
            for record in connection.execute(sa.select(table).where(table.c.survey == self.survey)).all():
                values = {"label": 0, "row": self.encrypt(record.key, f"{record.label} {record.row}")}
                connection.execute(table.update().where(table.c.key == record.key).values(**values))
        for epoch in connection.execute(sa.select(GUIDANCES).where(GUIDANCES.c.survey == self.survey)).all():
            same = GUIDANCES.c.survey == self.survey, GUIDANCES.c.epoch == epoch.epoch
            tally = self.encrypt(str(epoch.epoch), epoch.tally) if epoch.tally else ""
            connection.execute(GUIDANCES.update().where(*same).values(tally=tally))


def survey_scope(survey: str) -> str:
    """The scope of the key of a survey."""
    return f"surveys/{survey}"
