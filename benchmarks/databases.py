"""A table of PostgreSQL that becomes a copy in PostgreSQL, against COPY out and in; the server is started here."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
from tests.postgres import running

from measure import Line, at_most, seconds

ROWS, FEWER = 20_000_000, 2_000_000

_RELEASE = r"""
import json, resource, sys, time
import sfumato as sf
policy = sf.Policy.loads('''
dataset = "b"
[levels]
p = 0.5
[columns]
id = { role = "id", publish = false }
a = "gaussian"
b = "gaussian"
c = { role = "uniform", domain = [0, 1, 2, 3, 4] }
''')
def release(table):
    source = policy.source(f"{sys.argv[1]}?table={table}")
    sf.release_file(policy.fit(source), source, f"{sys.argv[1]}?table=copy", "p", sf.Key.from_bytes(bytes(32)))
release("few")  # compiles
start = time.perf_counter()
release(sys.argv[2])
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([time.perf_counter() - start, used]))
"""


def postgresql() -> Iterator[Line]:
    with running() as server, tempfile.TemporaryDirectory() as folder:
        url = server.database()
        with psycopg.connect(url, autocommit=True) as connection:
            for name, rows in (("few", 1000), ("fewer", FEWER), ("many", ROWS)):
                connection.execute(
                    f"create table {name} as select i::bigint as id, random() * 10 as a, random() * 7 as b, "  # noqa: S608
                    f"(random() * 4)::int as c from generate_series(1, {rows}) i"
                )
            took = seconds(lambda: _copied(connection, Path(folder) / "table"))
        time, memory = _released(url, "many")
        name = f"PostgreSQL to PostgreSQL, {ROWS:,} rows, read, fitted and released"
        yield at_most(name, (time, took), "COPY out and in, binary", 2)
        _, less = _released(url, "fewer")
        name = f"memory, PostgreSQL to PostgreSQL, {ROWS:,} rows"
        yield Line(name, memory, less, f"{FEWER:,} rows", "at most 1.2 times", memory <= 1.2 * less, "B")


def _copied(connection: psycopg.Connection[tuple[object, ...]], file: Path) -> None:
    with file.open("wb") as target, connection.cursor().copy("copy many to stdout (format binary)") as rows:
        for row in rows:
            target.write(row)
    connection.execute("create table other (like many)")
    with file.open("rb") as source, connection.cursor().copy("copy other from stdin (format binary)") as rows:
        while content := source.read(1 << 20):
            rows.write(content)
    connection.execute("drop table other")


def _released(url: str, table: str) -> tuple[float, int]:
    """The time and the memory of a release, in a process of its own."""
    command = [sys.executable, "-c", _RELEASE, url, table]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    time, memory = json.loads(done.stdout)
    return float(time), int(memory)
