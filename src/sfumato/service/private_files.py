"""Files with secrets, for the operator of the service alone."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from sfumato.errors import ServiceError


def read_private_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a file in TOML that nobody else may read."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ServiceError(f"{what}, {path}, must be a file in TOML, and could not be read: {error}") from None
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise ServiceError(
            f"{what}, {path}, may hold passwords and must be readable by its owner alone, but has mode {mode:04o}; run "
            f"`chmod 600 {path}`"
        )
    return found
