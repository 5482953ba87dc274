"""Crash safety of a release: killed or with a full disk, it leaves no partial file, and can be repeated exactly."""

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
    command = [sys.executable, "-m", "sfumato", "release", *options, "in.parquet"]
    subprocess.run([*command, "calm.parquet"], cwd=folder, check=True, capture_output=True)
    return folder, command, (folder / "calm.parquet").read_bytes()


# The child runs the same command, and kills itself just before or after the n-th call of one method.
_DIES = """
import importlib, os, signal, sys
module, owner, method, count, when = sys.argv[1:6]
holder = importlib.import_module(module)
for part in owner.split("."):
    holder = getattr(holder, part)
inner, calls = getattr(holder, method), 0

def dying(*args, **kwargs):
    global calls
    calls += 1
    if calls == int(count) and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = inner(*args, **kwargs)
    if calls == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(holder, method, dying)
from sfumato.cli import main
main(sys.argv[6:])
"""

STEPS = [
    ("sfumato.release.encoders.columnar", "Parquet", "write", 1),
    ("sfumato.release.encoders.columnar", "Parquet", "write", 5),
    ("sfumato.release.encoders.columnar", "Parquet", "close", 1),
    ("sfumato.release.encoders.columnar", "_Slot", "filled", 1),
    ("pathlib", "Path", "replace", 1),  # the manifest beside the copy
    ("pathlib", "Path", "replace", 2),  # the copy itself
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(s, id=f"{s[1]}.{s[2]}-{s[3]}", marks=[] if s[2:] == ("replace", 2) else [pytest.mark.slow])
        for s in STEPS
    ],
)
def test_killed_at_every_step(
    job: tuple[Path, list[str], bytes], tmp_path: Path, step: tuple[str, str, str, int], when: str
) -> None:
    folder, command, calm = job
    target = tmp_path / "out.parquet"
    words = [*map(str, step), when, *command[3:], str(target)]
    run = subprocess.run([sys.executable, "-c", _DIES, *words], cwd=folder, capture_output=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    if target.exists():  # then it is whole, and its manifest is there
        assert target.read_bytes() == calm
        assert sf.Manifest.loads((tmp_path / "out.parquet.manifest.json").read_bytes()) == sf.Manifest.of(target)
    assert target.exists() == (step[2] == "replace" and step[3] == 2 and when == "after")
    subprocess.run([*command, str(target)], cwd=folder, check=True, capture_output=True)
    assert target.read_bytes() == calm
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "out.parquet.manifest.json"]


def test_killed_at_any_moment(job: tuple[Path, list[str], bytes], tmp_path: Path) -> None:
    folder, command, calm = job
    target = tmp_path / "out.parquet"
    killed = 0
    for pause in np.linspace(0, 0.4, 6):
        process = subprocess.Popen(
            [*command, str(target)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not any(tmp_path.iterdir()):  # until it begins to write
            time.sleep(0.001)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if target.exists():
            assert target.read_bytes() == calm
            target.unlink()
    assert killed >= 1, "nothing was killed, so nothing was tested"
    subprocess.run([*command, str(target)], cwd=folder, check=True, capture_output=True)
    assert target.read_bytes() == calm
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "out.parquet.manifest.json"]


@pytest.mark.parametrize("room", [0, pytest.param(100, marks=pytest.mark.slow), 50_000, 2_000_000])
@pytest.mark.parametrize(
    "ending", ["parquet", *(pytest.param(ending, marks=pytest.mark.slow) for ending in ("csv", "arrow"))]
)
def test_a_full_disk(job: tuple[Path, list[str], bytes], tmp_path: Path, room: int, ending: str) -> None:
    """A file may not grow beyond `room` bytes: one sentence, exit code 1, and nothing is left behind."""
    folder, command, calm = job
    target, before = tmp_path / f"out.{ending}", calm if ending == "parquet" else None  # an earlier copy
    if before is not None:
        target.write_bytes(before)
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
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == ([(target.name, before)] if before else [])
