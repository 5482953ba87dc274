"""The project's own files agree with each other: versions, workflows, hooks, and what the README promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import sfumato as sf

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]


def test_all_files_name_the_same_version() -> None:
    assert sf.__version__ == VERSION
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    [newest, *_] = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[0] == VERSION
    supported = re.findall(r"^\| (\S+) \| yes \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert supported == [VERSION.rpartition(".")[0]]


def test_the_workflow_runs_the_readmes_command_on_every_version() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert {"run": "make test"} in jobs["test"]["steps"]
    matrix = jobs["unit"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    assert {os.endswith("-arm") for os in matrix["os"]} == {True, False}
    assert {one["resolution"] for one in matrix["include"]} | set(matrix["resolution"]) == {"highest", "lowest-direct"}
    assert {one["pandas"] for one in matrix["include"]} | set(matrix["pandas"]) == {"2", "3"}


def test_ci_runs_the_readmes_test_command_and_nothing_else() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == ["make test"]
    readme = (ROOT / "README.md").read_text()
    for command in ("make demo", "make test"):
        assert re.search(rf"^{command} +#", readme, re.MULTILINE), command


@pytest.mark.parametrize("name", ["unit", "test", "demo", "sweep", "bench", "figures", "docs", "dist", "lock"])
def test_every_target_is_in_the_makefile_and_documented(name: str) -> None:
    assert re.search(rf"^{name}: ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"make {name}" in page.read_text() for page in pages) or name == "docs"


def test_hooks_use_what_is_installed() -> None:
    [local] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert local["repo"] == "local"
    assert all(hook["language"] == "system" for hook in local["hooks"])


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_github_files_are_valid(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_package_says_where_it_comes_from() -> None:
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])
    assert PROJECT["authors"]


def test_locked_versions_are_those_that_the_project_allows() -> None:
    """Every requirement of a plain installation is locked at an allowed version, with hashes and without addresses."""
    text = (ROOT / "requirements/locked.txt").read_text()
    assert "://" not in text
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE))
    assert text.count("--hash=sha256:") > len(locked) > 30
    for stated in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["serve"]):
        requirement = Requirement(stated)
        assert requirement.specifier.contains(locked[requirement.name]), stated
