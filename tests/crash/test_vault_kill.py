"""Crash safety of a vault: killed at any step, or with a full disk or a killed database, it loses nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests import wards
from tests.conftest import Site
from tests.crash.zygote import OPERATIONS
from tests.postgres import Server, running

import sfumato as sf
from sfumato.errors import VaultError

ROOT = Path(__file__).parents[2]
TOUCHES_FILES = {"add", "update", "append", "release", "release-csv", "backup", "restore"}


@pytest.mark.parametrize(
    ("operation", "kind", "every"),
    [
        ("grant", "sqlite", 8),  # one runs always, the others in the sweep
        *(
            pytest.param(operation, kind, 1, marks=pytest.mark.slow)
            for operation in OPERATIONS
            for kind in ("sqlite", "postgresql")
        ),
    ],
)
def test_killed_at_every_step(operation: str, kind: str, every: int, request: pytest.FixtureRequest) -> None:
    """And where no file can grow beyond some bytes."""
    command = [sys.executable, "-m", "tests.crash.zygote", operation, str(every)]
    if kind == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        command.append(f"postgresql://owner@127.0.0.1:{server.port}")
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout)
    assert found["steps"] >= 15, "too little was killed to have tested anything"
    assert found["kills"] > found["steps"] / every
    if kind == "sqlite" or operation in TOUCHES_FILES:
        assert found["full"] >= 5 // every


def test_killed_at_any_moment(site: Site, tmp_path: Path) -> None:
    """A command that writes two tables of 200,000 rows, killed at six moments."""
    vault = site.create()
    big = wards.table(200_000)
    vault.add(wards.policy(), big)
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    sf.Key.from_bytes(site.secret.expose()).save(tmp_path / "key")
    calm = vault.release("clinic", "ward", tmp_path / "calm.parquet")[0].read_bytes()
    vault.grant("clinic", "ward", "public")  # so that the next release is new
    out = tmp_path / "copy.parquet"
    options = ["--vault", vault.location, "--key-file", str(tmp_path / "key")]
    command = [sys.executable, "-m", "sfumato", "release", "clinic", "ward", "-o", str(out), *options]
    killed = 0
    for pause in np.linspace(0, 0.5, 6):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not any(tmp_path.glob(".copy*")):
            time.sleep(0.001)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert vault.verify().sound
    assert killed >= 1, "nothing was killed, so nothing was tested"
    vault.release("clinic", "ward", out)
    vault.grant("clinic", "ward", "partner")
    assert vault.release("clinic", "ward", out)[0].read_bytes() == calm
    assert vault.verify().sound


def test_the_server_is_killed(tmp_path: Path) -> None:
    """All processes of PostgreSQL die while sixty entries are written; what was said to be written is there."""
    with running() as server:
        vault = sf.Vault.create(server.database(), store=str(tmp_path), secret=sf.Key.from_bytes(bytes(32)))
        written: list[str] = []
        refused: list[VaultError] = []

        def write() -> None:
            for number in range(10_000):
                try:
                    vault.recipient(f"r{number}")
                except VaultError as error:
                    refused.append(error)
                    return
                written.append(f"r{number}")

        writer = threading.Thread(target=write)
        writer.start()
        while len(written) < 60:
            time.sleep(0.001)
        server.stop(signal.SIGKILL)
        writer.join(60)
        assert len(refused) == 1
        message = "the unfinished transaction was rolled back, so fix the cause and run the same command again"
        assert message in str(refused[0])
        server.start()
        report = vault.verify()
        assert report.sound
        assert report.entries - 1 in (len(written), len(written) + 1)  # the last one may have been committed unseen
        assert vault.recipient("after").number == report.entries + 1
