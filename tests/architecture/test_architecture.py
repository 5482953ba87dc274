"""The architecture, as tests."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from radon.complexity import cc_visit

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
    """Only synthetic data, experiments, conformance suites, attackers, analysts, and fits with differential privacy."""
    drawn = [file for file in FILES if file.parent.name != "experiments"]
    users = [file for file in drawn if re.search(r"np\.random|^import random|default_rng", file.read_text())]
    assert {file.relative_to(ROOT / "src/sfumato").as_posix() for file in users} == {
        "attacks/evidence/arrays.py",
        "attacks/evidence/simulation.py",
        "audit/known_scores.py",
        "attacks/known_input.py",
        "attacks/known_sample.py",
        "attacks/linkage/distances.py",
        "attacks/linkage/signs.py",
        "audit/measures/inference.py",
        "audit/measures/information_loss.py",
        "audit/measures/singling_out.py",
        "cli/survey.py",
        "demo/clinic.py",
        "kernels/class_estimation.py",
        "kernels/joint_model.py",
        "kernels/marginal_atoms.py",
        "kernels/mixture.py",
        "kernels/posterior_draws.py",
        "mechanisms/_published_statistics.py",
        "mechanisms/gaussian.py",
        "mining/copies/estimation.py",
        "mining/copies/plausible_originals.py",
        "mining/copies/perturbed_again.py",
        "mining/features/performance.py",
        "mining/sql/plan.py",
        "mining/copies/simulation.py",
        "mining/density.py",
        "mining/features/reconstruction.py",
        "mining/tree.py",
        "mining/trees/feature_selection.py",
        "mining/trees/hyperplanes.py",
        "mining/trees/local.py",
        "risk/linear_map_simulation.py",
        "survey/leakage.py",
        "survey/simulation.py",
        "testing/attacks.py",
        "testing/mechanisms.py",
        "testing/miners.py",
        "vault/invented.py",
    }


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


def test_tests_mirror_the_source() -> None:
    """Every package has its tests in a folder of its name, and every test file of a unit names its package's folder."""
    packages = {path.parent.name for path in (ROOT / "src/sfumato").glob("*/__init__.py")}
    tested = {path.name for root in ("tests", "tests/unit") for path in (ROOT / root).iterdir() if path.is_dir()}
    elsewhere = {
        "client": "tests/service, with the service that it talks to",
        "demo": "tests/cli/test_main.py",
        "experiments": "tests/conformance/test_experiments.py",
        "pages": "tests/cli/test_audit.py and tests/cli/test_mine.py, with the reports",
        "testing": "tests/conformance, where the suites run and find planted faults",
    }
    assert packages - tested == set(elsewhere)
    assert {path.name for path in (ROOT / "tests/unit").iterdir() if path.is_dir()} - {"__pycache__"} <= packages


def test_every_module_says_what_it_is() -> None:
    """The first line of a module is a sentence of its own, with a word to search for."""
    for file in FILES:
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        first = text.split("\n")[0]
        assert len(first) > 20, file
        assert first.endswith((".", ":", "?")) or len(text.split("\n")) > 1, file
        assert "TODO" not in text, file


def test_no_docstring_is_a_fragment() -> None:
    """A docstring is understood without its neighbours: not "Of both.", not "As above."."""
    found = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").split("\n")[0]
                if first and re.match(r"(Of|As|From|With|And|Or|But|Also|At)\b[^,]{0,24}\.$|The same\.$", first):
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno}: {first}")
    assert found == []


def test_functions_are_simple() -> None:
    """No function has a cyclomatic complexity above 15, conditions in comprehensions and boolean operators included."""
    complex_ones = [
        f"{file.relative_to(ROOT)}:{block.name} ({block.complexity})"
        for file in FILES
        for block in cc_visit(file.read_text())
        if block.letter != "C" and block.complexity > 15
    ]
    assert complex_ones == []
