"""Validation of names and notes, what a name stands for, and parsing of the dates at which grants end."""

from __future__ import annotations

import getpass
import os
import re
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from sfumato.errors import VaultError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def validated_name(kind: str, name: str) -> str:
    """The name itself, if it is safe as part of a file path."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise VaultError(
            f"the name of a {kind} must be up to 100 letters, digits, dots, dashes and underscores, and begin with a "
            f"letter or digit, got {name!r}; choose another"
        )
    return name


class _Datasets(Protocol):
    """What knows datasets by their names: a vault, here or on a service."""

    def tables(self, dataset: str) -> list[str]:
        """The names of the tables of a dataset of several."""


def tables_of(vault: _Datasets, dataset: str) -> list[str]:
    """The datasets that a name stands for: itself, or the tables of a dataset of several."""
    return vault.tables(dataset) or [dataset]


def parse_end(until: str | date | datetime | None) -> str | None:
    """The time in UTC at which a validity period ends; a period that ends on a day includes that day."""
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
    try:
        end = (until if until.tzinfo else until.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise VaultError(f"a date must lie between the years 1 and 9999 in UTC, got {until}") from None
    return end.isoformat(timespec="microseconds")


def parse_start(day: str) -> str:
    """The time in UTC at which a day begins."""
    try:
        return f"{date.fromisoformat(day).isoformat()}T00:00:00.000000+00:00"
    except ValueError:
        raise VaultError(f"a date must be written like 2026-12-31, got {day!r}") from None


def format_end(until: str) -> str:
    """The end of a grant for people: its last day, or the time if it ends within a day."""
    end = datetime.fromisoformat(until)
    if end == end.replace(hour=0, minute=0, second=0, microsecond=0):
        return (end - timedelta(days=1)).date().isoformat()
    return f"{end:%Y-%m-%d %H:%M} UTC"


def is_valid_text(text: str) -> bool:
    """Whether a string is valid Unicode, without surrogates that stand for undecodable bytes."""
    return max(text, default="") < "\ud800" or max(text) > "\udfff"


def current_user() -> str:
    """The name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (ImportError, OSError, KeyError):  # some containers have users without a name
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown user"
