"""The documentation is run, not believed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.doc_scripts import doc_script

import sfumato as sf
from sfumato.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


_SAME_KEYS = "import random, secrets\nsecrets.token_bytes = random.Random(1).randbytes\n"


@pytest.mark.parametrize("page", [p for p in PAGES if _blocks(p, "python")], ids=lambda p: p.name)
def test_code_runs(page: Path, tmp_path: Path) -> None:
    """All Python blocks of a page, in order, in an empty folder, with keys that are always the same ones.

    A page that asserts that the truth is in a 95 % interval would otherwise fail one time in twenty.
    """
    code = _SAME_KEYS + "\n".join(_blocks(page, "python"))
    script = tmp_path / "page.py"
    script.write_text(code)
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_policy_page_shows_a_policy_that_is_one() -> None:
    [text] = _blocks(ROOT / "docs/policy.md", "toml")
    assert sf.Policy.loads(text).dataset == "clinic"


def test_every_option_of_every_role_is_documented() -> None:
    from sfumato.mechanisms import MECHANISMS
    from sfumato.policy.roles import PLAIN_ROLES

    text = (ROOT / "docs/policy.md").read_text()
    for role in [*PLAIN_ROLES, *MECHANISMS.names()]:
        assert f"`{role}`\n:" in text, role
    for role in MECHANISMS.names():
        for option in MECHANISMS[role].options:
            assert f"`{option}" in text, option


def test_the_parameters_are_what_levels_say() -> None:
    text = (ROOT / "docs/parameters.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| 0\.\d", line)]
    numbers = [row for row in rows if len(row) == 6]
    categories = [row for row in rows if len(row) == 7]
    assert len(numbers) == len(categories) == 10
    for row in numbers:
        level = sf.Level(float(row[0]))
        left = 1 - level.fidelity
        said = (level.noise, level.noise**0.5, left, left**0.5, 1 / level.fidelity)
        assert row[1:] == [f"{value:.{digits}f}" for value, digits in zip(said, (3, 3, 2, 3, 2), strict=True)]
    for row in categories:
        level = sf.Level(float(row[0]))
        epsilons = [level.epsilon(domain=size) for size in (2, 10, 50)]
        beliefs = [level.rho2(0.1, domain=size) for size in (2, 10, 50)]
        assert row[1:] == [f"{value:.3f}" for value in (*epsilons, *beliefs)]


def test_every_attack_is_documented() -> None:
    from sfumato.attacks import ATTACKS

    text = (ROOT / "docs/attacks.md").read_text()
    for name in ATTACKS.names():
        assert f"| `{name}` |" in text, name
        for option in ATTACKS[name].__dataclass_fields__:
            assert f"`{option}" in text, (name, option)


def test_every_miner_and_its_parameters_are_documented() -> None:
    from sfumato.mining import MINERS

    text = (ROOT / "docs/mining.md").read_text()
    for name in MINERS.names():
        miner = MINERS[name]
        assert f"`{miner.__name__}" in text or f"{miner.__name__}(" in text, name
        for parameter in miner().get_params():
            assert parameter in text, (name, parameter)


def test_the_commands_page_is_fresh() -> None:
    module = doc_script("make_commands")
    assert module.PAGE.read_text() == module.page(), "run `python docs/make_commands.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_console_lines_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    people = {"id": np.arange(300), "age": draw.integers(0, 99, 300), "income": draw.normal(3e4, 5e3, 300)}
    pq.write_table(pa.table(people), tmp_path / "patients.parquet")
    lines = [
        line.split("#")[0].strip() for block in _blocks(ROOT / "README.md", "console") for line in block.splitlines()
    ]
    commands = [line for line in lines if line.startswith("sfumato ")]
    assert len(commands) >= 4
    monkeypatch.chdir(tmp_path)
    for command in commands:
        run = CliRunner().invoke(main, command.split()[1:])
        assert run.exit_code == 0, f"{command}: {run.output}"


def test_documents_are_spelt_right() -> None:
    """Common misspellings, by codespell's dictionary; `sav` is the suffix of SPSS files."""
    pages = [*map(str, PAGES), *map(str, (ROOT / "docs/notebooks").glob("*.md")), str(ROOT / "CHANGELOG.md")]
    command = [
        sys.executable,
        "-m",
        "codespell_lib",
        "--ignore-words-list",
        "sav",
        *pages,
        str(ROOT / "src/sfumato/cli"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_every_promise_against_an_adversary_names_its_tests() -> None:
    rows = [line for line in (ROOT / "docs" / "threats.md").read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        named = re.findall(r"`([a-z_0-9/]+\.py)`", row.split("|")[-2])
        assert named, row
        assert all((ROOT / "tests" / name).is_file() for name in named), named


def test_every_public_name_has_an_example_and_a_reference_under_its_public_path() -> None:
    import sfumato.mining

    page = ROOT / "docs/api.md"
    code, text = "\n".join(_blocks(page, "python")), page.read_text()
    for name in sf.__all__:
        assert re.search(rf"\bsf\.{name}\b", code) or name == "connect", name
        assert re.search(rf"auto\w+:: sfumato\.{name}$", text, re.MULTILINE), name
    for name in sfumato.mining.__all__:
        assert re.search(rf"\b{name}\b", code.split("from sfumato.mining import", 1)[1]), name
        described = re.search(rf"auto\w+:: sfumato\.mining\.{name}$", text, re.MULTILINE)
        assert described or name in ("MINERS", "Miner"), name
