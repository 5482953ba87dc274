"""Unchanged columns: published identifiers, and columns that the owner releases as they are."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model

IDENTIFIER, ENTITY, PUBLIC = "id", "entity", "keep"
"""The roles of columns that a copy shows unchanged."""


_WHAT = {
    IDENTIFIER: "record identifiers",
    ENTITY: "entities, which tell which records belong together",
    PUBLIC: "public columns, which may be quasi-identifiers",
}


@dataclass(frozen=True)
class Unchanged(Model):
    """Columns that are in the copy as they are in the original."""

    kind = "unchanged"
    role: str
    """`id` for record identifiers, `entity` for those of whom several records are, `keep` for other columns."""

    @property
    def is_perturbed(self) -> bool:
        return False

    @property
    def identifies(self) -> bool:
        return self.role in (IDENTIFIER, ENTITY)

    @property
    def is_identifier(self) -> bool:
        """Whether the columns identify records."""
        return self.role == IDENTIFIER

    def promises(self, level: Level) -> list[str]:  # noqa: ARG002 - nothing is protected
        return []

    def limits(self) -> list[Limit]:
        return [Limit(f"Released unchanged ({_WHAT[self.role]})", self.columns)]

    def describe(self, column: str, amount: Amount) -> str:  # noqa: ARG002
        return "unchanged"
