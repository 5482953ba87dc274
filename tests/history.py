"""The source of earlier versions, from the history of the repository."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

EARLIER = {
    "0.2": "1d7c0d7eb810ad126ee6d6ffc65e74675e75fa65",
    "0.3": "741742702a4cff0da3adb5c2e2923dc0d1c4c8ff",
}
"""The last commits of earlier versions."""


def earlier_source(version: str, folder: Path) -> Path:
    """The `src` of an earlier version, in a folder; skips the test where there is no history."""
    archive = folder / "earlier.tar"
    command = ["git", "archive", "--output", str(archive), EARLIER[version], "src"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("the history of the repository is not here, which has the code of earlier versions")
    with tarfile.open(archive) as files:
        files.extractall(folder / "earlier", filter="data")
    return folder / "earlier/src"
