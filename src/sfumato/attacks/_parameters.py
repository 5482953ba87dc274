"""Parameters of attacks that are what they must be."""

from __future__ import annotations

from sfumato.errors import AttackError


def at_least(name: str, value: object, least: int) -> None:
    """Refuse what is no whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise AttackError(f"`{name}` must be a whole number from {least} on, got {value!r}")


def one_of(name: str, value: object, known: tuple[object, ...]) -> None:
    """Refuse what is none of these."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in known):
        raise AttackError(f"`{name}` must be {' or '.join(map(repr, known))}, got {value!r}")
