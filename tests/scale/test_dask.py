"""A real Dask cluster: a scheduler and two workers."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests import lakes
from tests.clusters import Cluster, dask_cluster

import sfumato as sf
from sfumato.audit.distributed_attack import attack_folder
from sfumato.engines.dask import Dask
from sfumato.engines.local import Local
from sfumato.errors import EngineError, SourceError
from sfumato.mining import Frequencies, Moments, NaiveBayes, with_engine
from sfumato.release.partitioned import release_folder
from sfumato.testing import check_engine

WHOLE = lakes.table()
SECRET = bytes(range(100, 132))
KEY = sf.Key.from_bytes(SECRET)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask") / "cluster") as found:
        yield found


@pytest.fixture
def engine(cluster: Cluster) -> Iterator[Dask]:
    with Dask.at(cluster.address, None) as found:
        yield found


def test_it_keeps_its_promises(engine: Dask) -> None:
    check_engine(engine)


@pytest.mark.parametrize("layout", lakes.LAYOUTS)
def test_it_makes_the_same_files(layout: str, engine: Dask, tmp_path: Path) -> None:
    """Every mechanism and layout; to the last byte, manifests and schemes included."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", layout)
    for name in ("everything", "shuffled", "projection"):
        _same_files(engine, folder, name, tmp_path, lakes.LEVELS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("layout", lakes.LAYOUTS)
def test_every_mechanism_and_level(layout: str, engine: Dask, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", layout)
    for name in lakes.POLICIES:
        _same_files(engine, folder, name, tmp_path, lakes.LEVELS)


def _same_files(engine: Dask, folder: Path, name: str, target: Path, levels: Iterable[float | str]) -> None:
    policy = lakes.POLICIES[name]
    scheme = policy.fit(folder, engine=engine)
    assert scheme.digest() == policy.fit(WHOLE).digest()
    for level in levels:
        outs = [target / f"{name}-{level}-{kind}" for kind in ("dask", "local")]
        for out, where in zip(outs, (engine, Local(2)), strict=True):
            release_folder(scheme, folder, out, level, KEY, engine=where)
        assert lakes.files_of(outs[0]) == lakes.files_of(outs[1])


def test_what_is_counted_there_is_the_same(engine: Dask, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["together"].fit(folder)
    for level in ("high", "low"):
        release_folder(scheme, folder, tmp_path / level, level, KEY)
    here, there = str(tmp_path / "high"), with_engine(engine, str(tmp_path / "high"))
    for column in ("mean_", "covariance_", "correlation_"):
        assert (getattr(Moments().fit(here), column) == getattr(Moments().fit(there), column)).all()
    asked = ["ward", ("ward", "region")]
    one, two = (Frequencies(columns=asked).fit(copy) for copy in (here, there))
    assert one.tables_ == two.tables_
    one, two = (NaiveBayes().fit(copy, "ward") for copy in (here, there))
    assert all(
        (a.original == b.original).all() for a, b in zip(one.class_densities_, two.class_densities_, strict=True)
    )
    for attack in ("llse", "bayes", "collusion"):
        copies = [tmp_path / "high", tmp_path / "low"]
        assert attack_folder(attack, copies, folder, engine=engine) == attack_folder(attack, copies, folder)


def test_repeated_ids_are_found_across_files(engine: Dask, tmp_path: Path) -> None:
    """In files whose ids rise and in others, numbers and texts."""
    rising = lakes.lay(WHOLE.sort_by("record"), tmp_path / "rising", "many")
    scheme = lakes.POLICIES["gaussian"].fit(rising)
    release_folder(scheme, rising, tmp_path / "copy", "high", KEY, engine=engine)
    for rows in (WHOLE, WHOLE.sort_by("record")):
        folder = lakes.lay(rows, tmp_path / f"{rows is WHOLE}", "many")
        lakes._write(rows.slice(1234, 2), folder / "again.parquet")
        with pytest.raises(SourceError, match="a record id must occur once"):
            release_folder(scheme, folder, tmp_path / "other", "high", KEY, engine=engine)
    assert not (tmp_path / "other").exists()


def test_the_key_is_nowhere(cluster: Cluster, engine: Dask, tmp_path: Path) -> None:
    """Not in logs, in files, on the dashboard, or in what the scheduler holds; a planted one is found."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["gaussian"].fit(folder, engine=engine)
    pages, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            for path in ("info/main/workers.html", "info/main/logs.html", "json/counts.json", "metrics"):
                with urllib.request.urlopen(f"{cluster.page}/{path}") as answer:  # noqa: S310 - our own
                    pages.append(answer.read())

    reader = threading.Thread(target=look)
    reader.start()
    release_folder(scheme, folder, tmp_path / "copy", "high", KEY, engine=engine)
    held = engine._client.run_on_scheduler(
        lambda dask_scheduler: repr([(t.run_spec, t.group) for t in dask_scheduler.tasks.values()]).encode()
    )
    stop.set()
    reader.join()
    engine._client.dump_cluster_state(str(cluster.folder / "dump"), exclude=(), format="yaml")
    everything = b"".join([*pages, held, cluster.written()])
    assert len(pages) > 3
    assert len(everything) > 10_000
    for form in (SECRET, SECRET.hex().encode(), repr(SECRET).encode(), repr(SECRET)[2:-1].encode()):
        assert form not in everything
    (cluster.folder / "planted").write_bytes(b"x" + SECRET)
    assert SECRET in cluster.written()


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_told_of(engine: Dask, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["gaussian"].fit(folder)
    (folder / "y2" / "part-2.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(SourceError, match=r"part-2\.parquet could not be read"):
        release_folder(scheme, folder, tmp_path / "copy", "high", KEY, engine=engine)
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        Dask.at("tcp://127.0.0.1:1", None)


@pytest.mark.slow
def test_the_command_uses_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "partitioned")
    policy = lakes.POLICIES["together"]
    (tmp_path / "policy.toml").write_text(policy.dumps())
    KEY.save(tmp_path / "key")
    words = ["release", "lake", "copy", "--policy", "policy.toml", "--key-file", "key", "--level", "high"]
    where = ["--engine", "dask", "--scheduler", cluster.address]
    command = [sys.executable, "-m", "sfumato", *words, *where]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Wrote copy: 3,000 rows at fidelity 0.8 (high)" in done.stdout
    release_folder(policy.fit(folder), folder, tmp_path / "expected", "high", KEY)
    assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "expected")


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    """In the midst of the work, one of two."""
    folder = tmp_path / "lake"
    rows = lakes.table(60_000)
    for i in range(12):
        lakes._write(rows.slice(5000 * i, 5000), folder / f"{i:02}.parquet")
    scheme = lakes.POLICIES["together"].fit(folder)
    release_folder(scheme, folder, tmp_path / "expected", "high", KEY)
    with dask_cluster(tmp_path / "cluster") as cluster, Dask.at(cluster.address, None) as engine:
        done = []

        def count(_: int) -> None:
            done.append(time.monotonic())
            if len(done) == 2:
                cluster.kill_worker()

        release_folder(scheme, folder, tmp_path / "copy", "high", KEY, engine=engine, progress=count)
        assert len(engine._client.nthreads()) == 1
    assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "expected")
