"""Pseudonyms: identifiers of records or entities, replaced by keyed texts of their own for each recipient."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model


@dataclass(frozen=True)
class Pseudonym(Model):
    """Columns whose values are replaced by pseudonyms: the same for equal values, in all copies of one recipient."""

    kind = "pseudonym"
    role: str
    """`id` for record identifiers, `entity` for those of whom several records are, `keep` for other references."""
    format: str = ""
    """The format that all identifiers and pseudonyms have, if the owner states one."""

    @property
    def is_perturbed(self) -> bool:
        return False

    @property
    def identifies(self) -> bool:
        return True

    def promises(self, level: Level) -> list[str]:  # noqa: ARG002 - the same at every level
        return ["Pseudonyms: recipients cannot join their copies by these columns, nor tell the identifiers by them."]

    def limits(self) -> list[Limit]:
        same = {"entity": "All rows of an entity", "id": "All versions of a record"}.get(self.role, "Equal values")
        more = f"{same} have the same pseudonym in the copies of one recipient, until the owner's key is replaced."
        more += f" All have the format {self.format}." if self.format else ""
        return [Limit("Replaced by pseudonyms", self.columns, more)]

    def describe(self, column: str, amount: Amount) -> str:  # noqa: ARG002
        return "replaced by a pseudonym"
