"""Programs of the operating system that tests need: installed as Debian's packages where they are missing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def installed(find: Callable[[], Found | None], package: str) -> Found:
    """What `find` finds, after its package is installed if need be."""
    found = find()
    if found is None:
        helper = [] if os.geteuid() == 0 else ["sudo", "-n"]
        subprocess.run([*helper, "apt-get", "update", "-qq"], check=False)
        subprocess.run([*helper, "apt-get", "install", "-qq", "-y", "--no-install-recommends", package], check=True)
        found = find()
    if found is None:
        raise RuntimeError(f"the tests need your system's package `{package}`: install it")
    return found
