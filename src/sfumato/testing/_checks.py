"""Running checks: one after the other, with the name of the one that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def run(subject: str, checks: Iterable[Callable[..., None]], *arguments: Any) -> None:
    """Run every check, and say which one failed on what."""
    for check in checks:
        try:
            check(*arguments)
        except AssertionError as error:
            name = check.__name__.removeprefix("_").replace("_", " ")
            raise AssertionError(f"{subject}: {name}: {error}") from error


def require(holds: object, message: str) -> None:
    """Fail with a sentence unless something holds."""
    if not holds:
        raise AssertionError(message)


def refuses(error: type[Exception], call: Callable[[], object], message: str) -> str:
    """The text of the error that a call must raise."""
    try:
        call()
    except error as raised:
        return str(raised)
    raise AssertionError(message)
