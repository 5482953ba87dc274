"""The architecture, as tests."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "src").rglob("*.py"))
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_files_are_short() -> None:
    lengths = {file.name: len(file.read_text().splitlines()) for file in FILES}
    assert {name: n for name, n in lengths.items() if n > 400} == {}
    assert sorted(lengths.values())[len(lengths) // 2] <= 150


def test_functions_fit_a_screen() -> None:
    long = [
        f"{file.name}:{node.name}"
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 50
    ]
    assert long == []


def test_no_release_uses_a_random_generator() -> None:
    """Only invented people, experiments, and what attackers, miners and auditors draw for themselves, are drawn so."""
    drawn = [file for file in FILES if file.parent.name != "experiments"]
    users = [file for file in drawn if re.search(r"np\.random|^import random|default_rng", file.read_text())]
    assert [file.relative_to(ROOT / "src/sfumato").as_posix() for file in users] == [
        "attacks/linkage/distances.py",
        "attacks/linkage/signs.py",
        "attacks/evidence/simulation.py",
        "attacks/known_input.py",
        "attacks/known_sample.py",
        "cli/survey.py",
        "demo/clinic.py",
        "kernels/mixture.py",
        "mining/trees/feature_selection.py",
        "mining/trees/local.py",
        "mining/trees/hyperplanes.py",
        "mining/features/reconstruction.py",
        "mining/density.py",
        "mining/tree.py",
        "survey/leakage.py",
        "survey/simulation.py",
    ]


def test_importing_sfumato_is_cheap() -> None:
    """It loads none of its dependencies; the names arrive when they are used."""
    script = "import sys, json, sfumato; sfumato.__version__ if False else None; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    heavy = {"numpy", "pyarrow", "numba", "scipy", "cryptography", "click", "rich", "matplotlib"}
    assert heavy & set(json.loads(out)) == set()


def test_public_names_are_there() -> None:
    for name in sf.__all__:
        assert getattr(sf, name).__name__ == name
    assert set(sf.__all__) <= set(dir(sf))
    with pytest.raises(AttributeError):
        sf.nothing  # noqa: B018


def test_the_repository_names_no_machine_and_no_registry() -> None:
    suspicious = re.compile(r"(^|[^A-Za-z.])/(work|root|home)/|pypi\.org|files\.pythonhosted|registry\.npmjs")
    own = "tests/architecture/test_architecture.py"
    found = [name for name in TRACKED if name != own and suspicious.search((ROOT / name).read_text(errors="ignore"))]
    assert found == []
