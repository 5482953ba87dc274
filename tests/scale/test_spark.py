"""A real Spark cluster: a standalone master and two workers. Starting it takes long, so that its tests are few."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import lakes
from tests.clusters import Cluster, spark_cluster

import sfumato as sf
from sfumato.audit.distributed_attack import attack_folder
from sfumato.engines.spark import Spark
from sfumato.errors import SourceError
from sfumato.mining import Frequencies, Moments, with_engine
from sfumato.release import spark as spark_release
from sfumato.release.manifest import Manifest
from sfumato.release.partitioned import release_folder
from sfumato.release.spark import release_read
from sfumato.testing import check_engine

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of pyspark's own

WHOLE = lakes.table()
SECRET = bytes(range(100, 132))
KEY = sf.Key.from_bytes(SECRET)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark") / "cluster") as found:
        yield found


@pytest.fixture(scope="module")
def engine(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    patch = pytest.MonkeyPatch()
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    with Spark.at(cluster.address, None) as found:
        yield found
    patch.undo()


def test_it_does_what_every_engine_does(cluster: Cluster, engine: Spark, tmp_path: Path) -> None:
    """One test, so that one cluster does: files, counts, attacks, and where the key is not."""
    check_engine(engine)
    _same_files(engine, tmp_path / "many", "many", ["everything"], ["high"])
    _same_counts(engine, tmp_path)
    _key_is_nowhere(cluster, engine, tmp_path)


@pytest.mark.slow
def test_every_mechanism_level_and_layout(engine: Spark, tmp_path: Path) -> None:
    for layout in lakes.LAYOUTS:
        _same_files(engine, tmp_path / layout, layout, lakes.POLICIES, lakes.LEVELS)
    _same_frames(engine, tmp_path, lakes.POLICIES)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(cluster: Cluster, engine: Spark, tmp_path: Path) -> None:
    _killed_executor(cluster, engine, tmp_path)


@pytest.mark.slow
def test_the_command_uses_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """Files, and what only Spark reads."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    policy = lakes.POLICIES["together"]
    (tmp_path / "policy.toml").write_text(policy.dumps())
    KEY.save(tmp_path / "key")
    said = ["--policy", "policy.toml", "--key-file", "key", "--level", "high"]
    where = ["--engine", "spark", "--master", cluster.address]
    for out, more in (("copy", []), ("read", ["--format", "parquet"])):
        command = [sys.executable, "-m", "sfumato", "release", "lake/*" if more else "lake", out, *said]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(
            [*command, *where, *more], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        assert f"Wrote {out}: 3,000 rows at fidelity 0.8 (high)" in done.stdout, done.stderr
    scheme = policy.fit(folder)
    release_folder(scheme, folder, tmp_path / "expected", "high", KEY)
    assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "expected")
    assert lakes.rows_of(tmp_path / "read").equals(lakes.ordered(scheme.release(WHOLE, "high", KEY)))


def _same_files(engine: Spark, folder: Path, layout: str, names: Iterable[str], levels: Iterable[float | str]) -> None:
    """To the last byte, schemes and manifests included."""
    lake = lakes.lay(WHOLE, folder / "lake", layout)
    for name in names:
        policy = lakes.POLICIES[name]
        scheme = policy.fit(lake, engine=engine)
        assert scheme.digest() == policy.fit(WHOLE).digest()
        for level in levels:
            release_folder(scheme, lake, folder / f"{name}-{level}-spark", level, KEY, engine=engine)
            release_folder(scheme, lake, folder / f"{name}-{level}-local", level, KEY)
            there, here = (lakes.files_of(folder / f"{name}-{level}-{kind}") for kind in ("spark", "local"))
            assert there == here


def _same_frames(engine: Spark, folder: Path, names: Iterable[str]) -> None:
    """Data frames, however Spark cuts them, and tables that only Spark reads."""
    lake = lakes.lay(WHOLE, folder / "framed", "partitioned")
    frame = engine.session.read.parquet(str(lake))
    for name in names:
        policy = lakes.POLICIES[name]
        scheme = policy.fit_spark(frame)
        assert scheme.digest() == policy.fit(WHOLE).digest()
        expected = lakes.ordered(scheme.release(WHOLE, "high", KEY))
        for pieces in (1, 5):
            found = lakes.ordered(scheme.release_spark(frame.repartition(pieces), "high", KEY).toArrow())
            assert found.cast(expected.schema).equals(expected), (name, pieces)
    scheme = lakes.POLICIES["together"].fit(WHOLE)
    frame.write.orc(str(folder / "orc"))
    read = engine.session.read.format("orc").load(str(folder / "orc"))
    manifest = release_read(scheme, engine, read, str(folder / "from-orc"), "high", KEY)
    assert Manifest.of(folder / "from-orc") == manifest
    manifest.verify(folder / "from-orc", engine)
    expected = lakes.ordered(scheme.release(WHOLE, "high", KEY))
    assert lakes.rows_of(folder / "from-orc").cast(expected.schema).equals(expected)
    shared: Any = spark_release._shared_keys
    served = len(shared._exit_callbacks)
    with pytest.raises(SourceError, match="a record id must occur once"):
        scheme.release_spark(frame.union(frame.limit(1)), "high", KEY)
    assert len(shared._exit_callbacks) == served  # a refused request serves no key
    nameless = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nincome = "gaussian"')
    with pytest.raises(SourceError, match="must have an id"):
        nameless.fit(WHOLE.select(["income"])).release_spark(frame.select("income"), "a", KEY)


def _same_counts(engine: Spark, folder: Path) -> None:
    lake = folder / "many" / "lake"
    copy = folder / "many" / "everything-high-local"
    here, there = Moments().fit(str(copy)), Moments().fit(with_engine(engine, str(copy)))
    assert (here.covariance_ == there.covariance_).all()
    one, two = (Frequencies().fit(found) for found in (str(copy), with_engine(engine, str(copy))))
    assert one.tables_ == two.tables_
    for attack in ("llse", "collusion"):
        assert attack_folder(attack, [copy], lake, engine=engine) == attack_folder(attack, [copy], lake)


def _key_is_nowhere(cluster: Cluster, engine: Spark, folder: Path) -> None:
    """Not in logs, in files that processes put aside, or on the dashboards, of the master and of the driver."""
    pages, stop = [], threading.Event()
    own = engine.session.sparkContext.uiWebUrl

    def look() -> None:
        while not stop.is_set():
            for page in (f"{cluster.page}/", f"{own}/jobs/", f"{own}/environment/", f"{own}/SQL/", f"{own}/executors/"):
                with urllib.request.urlopen(page) as answer:  # noqa: S310 - our own
                    pages.append(answer.read())

    reader = threading.Thread(target=look)
    reader.start()
    scheme = lakes.POLICIES["together"].fit(WHOLE)
    release_folder(scheme, folder / "many" / "lake", folder / "watched", "high", KEY, engine=engine)
    stop.set()
    reader.join()
    everything = b"".join([*pages, cluster.written()])
    assert len(pages) > 4
    assert len(everything) > 10_000
    for form in (SECRET, SECRET.hex().encode(), repr(SECRET).encode(), repr(SECRET)[2:-1].encode()):
        assert form not in everything
    (cluster.folder / "planted").write_bytes(SECRET)
    assert SECRET in cluster.written()


def _killed_executor(cluster: Cluster, engine: Spark, folder: Path) -> None:
    """In the midst of the work, one of two workers with its executor."""
    rows = lakes.table(60_000)
    for i in range(40):
        lakes._write(rows.slice(1500 * i, 1500), folder / "large" / f"{i:02}.parquet")
    scheme = lakes.POLICIES["together"].fit(folder / "large")
    release_folder(scheme, folder / "large", folder / "expected", "high", KEY)
    killed: list[int] = []

    def kill() -> None:
        while not (done := _receipts(folder / "killed")):
            threading.Event().wait(0.002)
        killed.append(done)
        cluster.kill_worker()

    killer = threading.Thread(target=kill)
    killer.start()
    release_folder(scheme, folder / "large", folder / "killed", "high", KEY, engine=engine)
    killer.join()
    assert 0 < killed[0] < 40
    assert lakes.files_of(folder / "killed") == lakes.files_of(folder / "expected")


def _receipts(folder: Path) -> int:
    return len(list((folder / "_sfumato").glob("*.json"))) if folder.exists() else 0
