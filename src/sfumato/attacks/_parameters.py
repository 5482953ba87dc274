"""Validation of the parameters of attacks."""

from __future__ import annotations

from sfumato.errors import AttackError


def require_at_least(name: str, value: object, least: int) -> None:
    """Raise `AttackError` unless a parameter is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise AttackError(f"`{name}` must be an integer of at least {least}, got {value!r}")


def require_one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise `AttackError` unless a parameter is one of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise AttackError(f"`{name}` must be {' or '.join(map(repr, choices))}, got {value!r}")
