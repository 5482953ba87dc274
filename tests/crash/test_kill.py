"""A release that is killed, or whose disk is full, leaves no half file, and running it again gives the same bytes."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf

ROWS = 400_000
POLICY = 'dataset = "d"\n[levels]\na = 0.5\n[columns]\nid = "id"\nn = "gaussian"\nm = "gaussian"\n'


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], bytes]:
    """A folder with everything a release needs, its command, and the bytes of a run that was left alone."""
    folder = tmp_path_factory.mktemp("job")
    draw = np.random.default_rng(1)
    table = pa.table({"id": np.arange(ROWS), "n": draw.normal(size=ROWS), "m": draw.normal(size=ROWS)})
    pq.write_table(table, folder / "in.parquet")
    (folder / "p.toml").write_text(POLICY)
    sf.Key.from_bytes(bytes(32)).save(folder / "k")
    options = ["--policy", "p.toml", "--key-file", "k", "--level", "0.3"]
    command = [sys.executable, "-m", "sfumato.cli", "release", *options, "in.parquet"]
    subprocess.run([*command, "calm.parquet"], cwd=folder, check=True, capture_output=True)
    return folder, command, (folder / "calm.parquet").read_bytes()


def test_killed_at_any_moment(job: tuple[Path, list[str], bytes], tmp_path: Path) -> None:
    folder, command, calm = job
    target = tmp_path / "out.parquet"
    started = time.monotonic()
    subprocess.run([*command, str(target)], cwd=folder, check=True, capture_output=True)
    whole = time.monotonic() - started
    target.unlink()
    (tmp_path / "out.parquet.manifest.json").unlink()
    killed = left = 0
    for share in np.linspace(0.3, 1.0, 12):
        process = subprocess.Popen(
            [*command, str(target)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(whole * share)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            killed += 1
            left += any(p.suffix == ".part" for p in tmp_path.iterdir())
        if target.exists():  # it was already done: then it is whole, and its manifest is there
            assert target.read_bytes() == calm
            sf.Manifest.of(target).verify(target)
            assert (tmp_path / "out.parquet.manifest.json").exists()
    assert killed >= 3, "nothing was killed, so nothing was tested"
    assert left >= 1, "no run was killed while it was writing, so nothing was tested"
    subprocess.run([*command, str(target)], cwd=folder, check=True, capture_output=True)
    assert target.read_bytes() == calm
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "out.parquet.manifest.json"]


@pytest.mark.parametrize("room", [0, 100, 50_000, 2_000_000])
@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_a_full_disk(job: tuple[Path, list[str], bytes], tmp_path: Path, room: int, ending: str) -> None:
    """A file may not grow beyond `room` bytes: one sentence, exit code 1, and nothing is left behind."""
    folder, command, _ = job
    target = tmp_path / f"out.{ending}"
    target.write_text("what was there before")
    run = subprocess.run(
        [*command, str(target)],
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        check=False,
    )
    assert run.returncode == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert "could not be written, and is as it was" in run.stderr
    assert target.read_text() == "what was there before"
    assert [p.name for p in tmp_path.iterdir()] == [target.name]
