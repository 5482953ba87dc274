"""Structured Streaming: a query that is killed and restarted writes what an uninterrupted one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.ledger.reader import Query

pytestmark = [pytest.mark.slow, pytest.mark.server]

POLICY = """
dataset = "events"
[levels]
partner = 0.5
[columns]
id = "id"
x = "gaussian"
y = "gaussian"
kind = { role = "uniform", domain = ["a", "b", "c"] }
"""

FILES, ROWS = 30, 200

KEY = sf.Key.from_bytes(bytes(range(32)))

_START = """
import sys
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
import sfumato as sf

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2").getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
schema = spark.read.parquet(f"{folder}/in").schema
events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
"""

_QUERY = """
scheme = sf.TableScheme.load(f"{folder}/scheme.json")
copy = scheme.release_spark(events, "partner", sf.Key.from_bytes(bytes(range(32))))
query = (
    copy.writeStream.format("parquet").option("path", f"{folder}/out")
    .option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
rows = spark.read.parquet(f"{folder}/out").toArrow()
pq.write_table(rows, f"{folder}/result.parquet")
"""


_WINDOWS = """
from sfumato.vault.windows import Windows

windows = Windows(sf.Vault.open(f"{folder}/vault"), "events", {"lab": folder + "/out/{window}.parquet"})
query = (
    events.writeStream.foreachBatch(windows)
    .option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
"""


def _events(folder: Path) -> pa.Table:
    """A folder of files that arrived one after the other, and all of their rows."""
    rng = np.random.default_rng(1)
    (folder / "in").mkdir(parents=True)
    tables = []
    for i in range(FILES):
        part = pa.table(
            {
                "id": np.arange(ROWS) + i * ROWS,
                "x": rng.normal(size=ROWS),
                "y": rng.exponential(size=ROWS),
                "kind": np.array(["a", "b", "c"])[rng.integers(0, 3, ROWS)],
            }
        )
        pq.write_table(part, folder / "in" / f"{i:03}.parquet")
        tables.append(part)
    return pa.concat_tables(tables)


def _started(folder: Path, query: str = _QUERY) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-W", "ignore", "-c", _START + query, str(folder)]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the driver, its Java and its workers at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.long)])
def test_killed_and_restarted_queries_write_the_same(tmp_path: Path, kills: int, rng: np.random.Generator) -> None:
    """Each kill comes at a random moment after the start; where the query is done before it, it starts anew."""
    table = _events(tmp_path)
    scheme = sf.Policy.loads(POLICY).fit(table)
    scheme.save(tmp_path / "scheme.json")
    expected = scheme.release(table, "partner", KEY).sort_by("id").replace_schema_metadata(None)
    done = 0
    while done < kills:
        process = _started(tmp_path)
        try:
            process.wait(float(rng.uniform(3, 14)))
        except subprocess.TimeoutExpired:
            _kill(process)
            done += 1
            continue
        assert process.returncode == 0, (tmp_path / "log").read_text()[-2000:]
        assert _result(tmp_path).equals(expected)
        for name in ("out", "checkpoint", "result.parquet"):
            subprocess.run(["rm", "-rf", str(tmp_path / name)], check=True)
    process = _started(tmp_path)
    assert process.wait(300) == 0, (tmp_path / "log").read_text()[-2000:]
    assert _result(tmp_path).equals(expected)


def _result(folder: Path) -> pa.Table:
    return pq.read_table(folder / "result.parquet").sort_by("id").replace_schema_metadata(None)


def test_a_killed_query_into_a_vault_is_finished_by_its_restart(tmp_path: Path, rng: np.random.Generator) -> None:
    """Each window is appended, released and recorded once: the copies are those of a release of all rows."""
    table = _events(tmp_path)
    first = table.slice(0, ROWS).set_column(0, "id", pa.array(np.arange(ROWS) + 1_000_000))
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(sf.Policy.loads(POLICY), first)
    vault.recipient("lab")
    vault.grant("lab", "events", "partner")
    (tmp_path / "out").mkdir()
    for _ in range(4):
        process = _started(tmp_path, _WINDOWS)
        try:
            process.wait(float(rng.uniform(6, 14)))
        except subprocess.TimeoutExpired:
            _kill(process)
    process = _started(tmp_path, _WINDOWS)
    assert process.wait(300) == 0, (tmp_path / "log").read_text()[-2000:]
    entries = vault.log(Query())
    assert [one.body["window"] for one in entries if one.action == "streamed"] == list(range(FILES))
    assert [one.body["changes"]["appended"] for one in entries if one.action == "updated"] == [ROWS] * FILES
    assert len([one for one in entries if one.action == "released"]) == FILES
    copies = [sf.read_copy(path).replace_schema_metadata(None) for path in (tmp_path / "out").glob("*.parquet")]
    whole = sf.read_copy(vault.release("lab", "events", tmp_path / "whole.parquet")[0]).replace_schema_metadata(None)
    streamed = whole.filter(pc.less(whole["id"], 1_000_000)).sort_by("id")
    assert pa.concat_tables(copies).sort_by("id").equals(streamed)
    assert vault.verify().sound
