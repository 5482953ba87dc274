"""Names of datasets, recipients and users, and moments at which grants end."""

from __future__ import annotations

import getpass
import os
import re
from datetime import UTC, date, datetime, timedelta

from sfumato.errors import VaultError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def checked(kind: str, name: str) -> str:
    """A name that can stand in a path."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise VaultError(
            f"the name of a {kind} must be up to 100 letters, digits, dots, dashes and underscores, and begin with a "
            f"letter or digit, got {name!r}; choose another"
        )
    return name


def moment(until: str | date | datetime | None) -> str | None:
    """The moment, in UTC, from which something is over; a day is over when it ends."""
    if until is None:
        return None
    if isinstance(until, str):
        try:
            until = date.fromisoformat(until) if len(until) <= len("2025-01-31") else datetime.fromisoformat(until)
        except ValueError:
            raise VaultError(f"a date must be written like 2026-12-31, got {until!r}") from None
    if not isinstance(until, datetime):
        last = until == date.max
        until = datetime(until.year, until.month, until.day, tzinfo=UTC) + timedelta(days=0 if last else 1)
    return (until if until.tzinfo else until.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="microseconds")


def start_of(day: str) -> str:
    """The first moment of a day, in UTC."""
    try:
        return f"{date.fromisoformat(day).isoformat()}T00:00:00.000000+00:00"
    except ValueError:
        raise VaultError(f"a date must be written like 2026-12-31, got {day!r}") from None


def last_moment(until: str) -> str:
    """The end of a grant as people say it: the last day, or a moment within one."""
    end = datetime.fromisoformat(until)
    if end == end.replace(hour=0, minute=0, second=0, microsecond=0):
        return (end - timedelta(days=1)).date().isoformat()
    return f"{end:%Y-%m-%d %H:%M} UTC"


def is_text(said: str) -> bool:
    """Whether something is text, without bytes that are none."""
    return max(said, default="") < "\ud800" or max(said) > "\udfff"


def user() -> str:
    """Who runs this."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return f"user {os.getuid()}"
