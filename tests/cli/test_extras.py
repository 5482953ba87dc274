"""The commands after a plain installation: what needs an optional dependency says so at once, and how to install it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
BLOCKED = [
    *("argon2", "deltalake", "distributed", "dask", "fastapi", "fsspec", "httpx2", "jinja2"),
    *("prometheus_client", "psycopg", "pyreadstat", "pyspark", "python_calamine", "structlog", "uvicorn", "xlsxwriter"),
]

COMMANDS = {
    "serve": ("the service needs", "serve"),
    "status --url https://example.org": ("httpx2", "client"),
    "status --vault postgresql://example.org/x": ("driver", "postgres"),
    "init --store s3://bucket/x": ("fsspec", "remote"),
    "release s3://bucket/in.parquet out.parquet --policy p.toml --key-file k --level 0.5": ("fsspec", "remote"),
    "release in.parquet out.xlsx --policy p.toml --key-file k --level 0.5": ("python_calamine", "files"),
    "release in.parquet out.sav --policy p.toml --key-file k --level 0.5": ("pyreadstat", "files"),
    "release in.parquet out.delta --policy p.toml --key-file k --level 0.5": ("deltalake", "lakes"),
    "suggest book.xlsx": ("python-calamine", "files"),
    "suggest survey.dta": ("pyreadstat", "files"),
    "suggest delta": ("deltalake", "lakes"),
    "release lake out --policy p.toml --key-file k --level 0.5 --engine dask": ("dask", "dask"),
    "release lake out --policy p.toml --key-file k --level 0.5 --engine spark": ("pyspark", "spark"),
}

_SCRIPT = """
import json, sys
for name in {blocked!r}:
    sys.modules[name] = None
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from click.testing import CliRunner
import sfumato as sf
from sfumato.cli import main
table = pa.table({{"x": np.arange(50.0), "y": np.arange(50.0) ** 2}})
pq.write_table(table, "in.parquet")
import os
os.makedirs("delta/_delta_log")
for name in ("book.xlsx", "survey.dta"):
    open(name, "w").write("x")
open("p.toml", "w").write('dataset = "d"\\n[levels]\\na = 0.5\\n[columns]\\nx = "rotation"\\ny = "rotation"\\n')
policy = sf.Policy.loads('dataset = "d"\\n[levels]\\na = 0.5\\n[columns]\\nx = "gaussian"\\ny = "gaussian"\\n')
sf.Key.generate().save("k")
sf.release_file(policy.fit(table), table, "copy.parquet", "a", sf.Key.load("k"))
results = {{}}
for line in {commands!r}:
    done = CliRunner().invoke(main, line.split())
    results[line] = done.exit_code, done.stderr, repr(done.exception)
helps = [CliRunner().invoke(main, [name, "--help"]).output for name in main.list_commands(None)]
print(json.dumps([results, helps]))
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The results of all commands, in one process without any extra."""
    script = _SCRIPT.format(blocked=BLOCKED, commands=list(COMMANDS))
    folder = tmp_path_factory.mktemp("plain")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    made = {path.name for path in folder.iterdir() if path.is_file() or any(path.iterdir())}
    assert made == {
        "copy.parquet",
        "copy.parquet.manifest.json",
        "in.parquet",
        "k",
        "p.toml",
        "book.xlsx",
        "survey.dta",
        "delta",
    }
    found: list[object] = json.loads(done.stdout)
    return found


FAILURES = (1, *range(10, 16))
"""The exit codes of errors, by class."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_missing_extra_is_named_before_any_work(plain: list[dict[str, tuple[int, str, str]]], line: str) -> None:
    needs, extra = COMMANDS[line]
    code, message, exception = plain[0][line]
    assert code in FAILURES, (message, exception)
    assert message.startswith("sfumato: ")
    assert needs in message
    assert f"in a clone of the repository, run `pip install '.[{extra}]'`" in message
    assert extra in EXTRAS


def test_help_is_readable_without_extras(plain: list[list[str]]) -> None:
    assert len(plain[1]) > 25
    assert all("\b" not in text and "\\b" not in text and text.startswith("Usage:") for text in plain[1])


def test_the_package_is_a_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "sfumato", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sfumato, version")
