"""The first second: commands on a small vault, the first release after installation, and single records."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from measure import Line, seconds

POLICY = """
dataset = "patients"
[levels]
partner = 0.5
[columns]
id = "id"
age = "gaussian"
ward = { role = "uniform", domain = ["A", "B", "C"] }
"""

COMMANDS = ("--help", "level 0.5", "status", "log", "recipient list", "grant university patients --level partner")
_TARGET = 0.3


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({"id": np.arange(rows), "age": rng.normal(45, 15, rows), "ward": rng.choice(list("ABC"), rows)})


def commands() -> Iterator[Line]:
    """CPU seconds of whole commands, Python's start included."""
    with tempfile.TemporaryDirectory() as folder:
        source = _written(Path(folder))
        vault = sf.Vault.create(Path(folder, "small"))
        vault.add(sf.Policy.loads(POLICY), source)
        vault.recipient("university")
        vault.grant("university", "patients", "partner")
        environment = {**_installed(), "SFUMATO_VAULT": str(Path(folder, "small"))}
        for command in COMMANDS:
            used = statistics.median(_cpu(["sfumato", *command.split()], environment) for _ in range(7))
            met = used <= _TARGET
            yield Line(f"CPU time of `sfumato {command}`", used, _TARGET, "the limit", "at most 0.3 s", met)
        floor = statistics.median(_cpu(["python", "-c", "import numpy, pyarrow"], environment) for _ in range(7))
        yield Line("CPU time of importing NumPy and Arrow alone", floor, _TARGET, "the limit", "(for comparison)", True)


def releases() -> Iterator[Line]:
    """The first release with nothing compiled, of noise and of margin-preserving copies, and of one record."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source = _written(home)
        margins = POLICY.replace('"gaussian"', '"copula"').replace(
            '{ role = "uniform", domain = ["A", "B", "C"] }', '"copula"'
        )
        for name, text in (("noise", POLICY), ("margins", margins)):
            (home / f"{name}.toml").write_text(text)
            sf.Key.generate().save(home / f"{name}.key")
            environment = {**_installed(), "NUMBA_CACHE_DIR": str(home / f"cache-{name}")}
            given = ["--policy", f"{name}.toml", "--key-file", f"{name}.key", "--level", "partner"]
            command = [_program("sfumato"), "release", *given, str(source), f"{name}.parquet"]
            took = seconds(lambda: subprocess.run(command, cwd=home, env=environment, capture_output=True, check=True))  # noqa: B023
            what = f"first release after installation, {name}, 1,000 x 3"
            yield Line(what, took, 2.0, "the limit", "at most 2 s", took <= 2)
    table = _table(1000)
    scheme, key = sf.Policy.loads(POLICY).fit(table), sf.Key.generate()
    one = table.slice(0, 1)
    times = [seconds(lambda: scheme.release(one, "partner", key)) for _ in range(300)]
    took = statistics.median(times[50:])
    yield Line("release of one record, 3 columns", took, 1e-3, "the limit", "at most 1 ms", took <= 1e-3)


def _written(folder: Path) -> Path:
    path = folder / "patients.parquet"
    pq.write_table(_table(1000), path)
    return path


def _installed() -> dict[str, str]:
    """The environment of commands of an installed package, whose modules pip compiles to bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def _cpu(command: list[str], environment: Mapping[str, str]) -> float:
    """CPU seconds of a process and all its threads."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([_program(command[0]), *command[1:]], env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
