"""Self-test of the mutation campaign: a fault in a module with a good test is noticed, one without a test is not."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from tests.mutation import campaign
from tests.mutation.planting import chosen, faults

SOURCE = '''"""A module."""


def allowed(age: int, banned: bool) -> bool:
    """Whether somebody may enter."""
    if age < 0:
        raise ValueError("an age must not be negative")
    return age >= 18 and not banned
'''
TEST = """
import pytest
from sfumato.entrance import allowed

def test_it() -> None:
    assert allowed(18, False)
    assert not allowed(17, False)
    assert not allowed(18, True)
    with pytest.raises(ValueError):
        allowed(-1, False)
    {more}
"""


def test_faults_of_every_kind_are_planted() -> None:
    found = {str(fault).split("  ->  ")[1] for fault in faults(SOURCE)}
    assert {"(age <= 0)", "pass", "return None", "(age > 18)", "(age >= 18 or not banned)", "(banned)", "19"} <= found
    for fault in faults(SOURCE):
        assert ast.dump(ast.parse(fault.planted(SOURCE))) != ast.dump(ast.parse(SOURCE))
    assert chosen(SOURCE, "1", 3) == chosen(SOURCE, "1", 3) != chosen(SOURCE, "2", 3)
    script = "if (a <= 1) { return x; } // a <= 2\n"
    assert {fault.planted(script)[:13] for fault in faults(script, javascript=True)} > {
        "if (a < 1) { ",
        "if (a <= 2) {",
    }


def test_every_module_is_tested_by_tests_that_exist() -> None:
    for module, tests in campaign.TESTS.items():
        assert (campaign.ROOT / "src" / "sfumato" / module).exists(), module
        assert all((campaign.ROOT / name.partition("::")[0]).exists() for name in tests), module


def test_what_is_listed_as_equivalent_is_in_the_source_and_has_a_reason() -> None:
    for one in campaign.equivalents():
        source = (campaign.ROOT / "src" / "sfumato" / one["module"]).read_text()
        assert one["before"] in source, one
        assert one["reason"].endswith("."), one


@pytest.mark.slow
def test_a_fault_is_noticed_if_there_is_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a package of its own, called as ours, so that little is imported."""
    root = tmp_path / "root"
    (root / "src" / "sfumato").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src" / "sfumato" / "__init__.py").touch()
    (root / "src" / "sfumato" / "entrance.py").write_text(SOURCE)
    (root / "tests" / "test_all.py").write_text(TEST.format(more="assert allowed(0, False) is False"))
    (root / "tests" / "test_some.py").write_text(TEST.format(more="pass"))
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["slow", "server", "long"]\n')
    monkeypatch.setattr(campaign, "ROOT", root)
    monkeypatch.setattr(campaign, "_PRELOADED", ())
    for name, survivors in (("test_all", set()), ("test_some", {"(age <= 0)", "1"})):
        trials = campaign.planned(["entrance.py"], "1", 100)
        campaign.run(trials, 2, 60, lambda trial: None, {"entrance.py": (f"tests/{name}.py",)})
        survived = {str(trial.fault).split("  ->  ")[1] for trial in trials if trial.fate == "survived"}
        assert survived == survivors
        assert len(trials) >= 8
    assert (root / "src" / "sfumato" / "entrance.py").read_text() == SOURCE
    assert "sfumato.entrance" not in sys.modules
