"""Named sources: tables in databases and object stores that owners choose by name, so that no URL leaves the server."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import structlog

from sfumato.errors import ServiceError, SfumatoError, SourceError, VaultError
from sfumato.service.private_files import read_private_toml
from sfumato.tables.database import DatabaseTable, is_database
from sfumato.vault.names import validated_name

_SHORTEST = 3
"""Parts of a URL of so many characters are looked for in errors."""


def read_sources(path: Path) -> dict[str, str]:
    """The URLs of tables by their names, from a file in TOML with a line for each: `name = "postgresql://..."`."""
    found = read_private_toml(path, "the list of sources")
    for name, url in found.items():
        try:
            validated_name("source", name)
        except VaultError as error:
            raise ServiceError(f"the sources {path}: {error}") from None
        if not _is_table(url):  # the URL is not shown, since it may hold a password
            raise ServiceError(
                f'the source {name!r} must be the URL of a table, as in {name} = "postgresql://HOST/DB?table=T"'
            )
    return found


def _is_table(url: object) -> bool:
    """Whether it is the URL of a table, as far as can be told without opening it."""
    if not isinstance(url, str) or "://" not in url:
        return False
    with contextlib.suppress(SfumatoError, ValueError):
        return not is_database(url) or bool(DatabaseTable.of(url))
    return False


@contextlib.contextmanager
def reading_source(name: str, url: str) -> Iterator[str]:
    """The URL of a source for as long as its table is read; no error says what is in the URL."""
    parts = {part for part in re.split(r"[/:@?#&=]+", url.partition("://")[2]) if len(part) >= _SHORTEST}
    try:
        yield url
    except SfumatoError as error:
        if not any(part in str(error) for part in (url, *parts)):
            raise
        raise _unread(name) from None
    except Exception as error:
        if type(error).__module__.startswith("sfumato."):  # a cancelled job, say
            raise
        structlog.get_logger().warning("source not read", source=name, error=type(error).__name__)
        raise _unread(name) from None


def _unread(name: str) -> SourceError:
    return SourceError(
        f"the source {name!r} could not be read; try its URL on the server, with `sfumato suggest`, which says why"
    )
