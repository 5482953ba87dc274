"""Column roles: those that perturb nothing are listed here, the others are the mechanisms."""

from __future__ import annotations

from sfumato.mechanisms import MECHANISMS
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC

DROP = "drop"
"""The role of a column that is left out of copies."""

PSEUDONYM = "pseudonym"
"""What `publish` of an identifier says for pseudonyms to be shown in its stead."""

_IDENTIFYING = frozenset({"publish", "format", "references"})

PLAIN_ROLES = {
    IDENTIFIER: _IDENTIFYING,
    ENTITY: _IDENTIFYING,
    PUBLIC: _IDENTIFYING,
    DROP: frozenset[str](),
}
"""The roles that perturb nothing, with their options."""


def all_roles() -> list[str]:
    """All roles that a column may have."""
    return [*PLAIN_ROLES, *MECHANISMS]


def options_of(role: str) -> frozenset[str]:
    """The options that a column of a role may have in a policy."""
    if role in PLAIN_ROLES:
        return PLAIN_ROLES[role]
    options: frozenset[str] = MECHANISMS[role].options
    return options
