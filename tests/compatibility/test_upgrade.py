"""Upgrades and rollbacks with the real code of earlier versions, taken from the history of the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import wards
from tests.history import earlier_source

import sfumato as sf

MAKE = """
import sfumato as sf, pyarrow.parquet as pq
vault = sf.Vault.create("vault", secret=sf.Key.load("vault.key"))
vault.add(sf.Policy.load("policy.toml"), pq.read_table("table.parquet"))
vault.recipient("clinic")
vault.grant("clinic", "ward", "partner")
vault.release("clinic", "ward", "earlier.parquet")
vault.backup("vault.tar")
"""

READ = """
import sfumato as sf
vault = sf.Vault.open("vault", secret=sf.Key.load("vault.key"))
assert vault.verify().sound
vault.release("clinic", "ward", "again.parquet")
"""

RESTORE = """
import sfumato as sf
vault = sf.Vault.restore("vault.tar", "restored", secret=sf.Key.load("vault.key"))
assert vault.verify().sound
vault.release("clinic", "ward", "restored.parquet")
"""


def _run(code: str, folder: Path, earlier: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with this version, or an earlier one."""
    environment = {**os.environ, "PYTHONPATH": "" if earlier is None else str(earlier)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(params=[pytest.param("0.2", marks=pytest.mark.slow), "0.3"])
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The source of an earlier version."""
    return earlier_source(request.param, tmp_path)


@pytest.mark.long
def test_an_upgrade_makes_the_same_copies_and_a_rollback_restores_the_backup(earlier: Path, tmp_path: Path) -> None:
    sf.Key.from_bytes(bytes(range(32))).save(tmp_path / "vault.key")
    pq.write_table(wards.table(200), tmp_path / "table.parquet")
    (tmp_path / "policy.toml").write_text(wards.policy().dumps())
    made = _run(MAKE, tmp_path, earlier)
    assert made.returncode == 0, made.stderr
    upgraded = _run(READ, tmp_path)
    assert upgraded.returncode == 0, upgraded.stderr
    copy = pq.read_table(tmp_path / "earlier.parquet")
    assert pq.read_table(tmp_path / "again.parquet").equals(copy)
    assert sf.read_copy(tmp_path / "earlier.parquet").equals(copy)
    back = _run(READ.replace("again", "back"), tmp_path, earlier)
    assert back.returncode == 0 or "use the version that created it" in back.stderr  # if the tables are others
    restored = _run(RESTORE, tmp_path, earlier)
    assert restored.returncode == 0, restored.stderr
    assert pq.read_table(tmp_path / "restored.parquet").equals(copy)
