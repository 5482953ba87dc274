"""Systems without POSIX: what only Unix has is not needed to start, nor to release, check and mine copies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from tests import offices

SCRIPT = """
import os, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("fcntl", "grp", "pwd", "resource", "termios", "posix_ipc"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)
for name in "fork getuid geteuid getgid getpgid killpg setsid sched_getaffinity chown fchmod".split():
    if hasattr(os, name):
        delattr(os, name)
opened = os.open

def no_folders(path, *arguments, **options):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, *arguments, **options)

os.open = no_folders
from sfumato.cli import main

for words in (
    "--help",
    "init vault --key-file vault.key",
    "suggest office.parquet --quick -o draft.toml",
    "add office.parquet --policy policy.toml --key-file vault.key",
    "recipient add university --key-file vault.key",
    "grant university office --level far --key-file vault.key",
    "release university office -o copy.parquet --key-file vault.key",
    "status --key-file vault.key",
    "check copy.parquet",
    "mine copy.parquet",
):
    try:
        main(words.split(), standalone_mode=True)
    except SystemExit as end:
        assert not end.code, words
"""


def test_nothing_that_only_unix_has_is_needed_for_copies(tmp_path: Path) -> None:
    pq.write_table(offices.table(1000), tmp_path / "office.parquet")
    (tmp_path / "policy.toml").write_text(offices.policy().dumps())
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert (tmp_path / "copy.parquet").exists()
