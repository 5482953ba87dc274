"""Named sources: tables in databases and object stores that owners choose by name, so that no URL leaves the server."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from sfumato.errors import ServiceError, VaultError
from sfumato.tables.database import without_password
from sfumato.vault.names import validated_name


def read_sources(path: Path) -> dict[str, str]:
    """The URLs of tables by their names, from a file in TOML with a line for each: `name = "postgresql://..."`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ServiceError(f"the sources {path} must be a file in TOML, and could not be read: {error}") from None
    for name, url in found.items():
        try:
            validated_name("source", name)
        except VaultError as error:
            raise ServiceError(f"the sources {path}: {error}") from None
        if not isinstance(url, str) or "://" not in url:
            raise ServiceError(f'the sources {path} must have lines such as {name} = "postgresql://HOST/DB?table=T"')
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077 and any(map(_has_password, found.values())):
        raise ServiceError(
            f"sources with passwords must be readable by their owner alone, {path} has mode {mode:04o}; run "
            f"`chmod 600 {path}`"
        )
    return found


def _has_password(url: str) -> bool:
    return urlsplit(url).password is not None or without_password(url) != url
