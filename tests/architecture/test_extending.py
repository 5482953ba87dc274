"""Tests of the guide for plug-in authors: its examples are a package that is installed, found and tested as one.

The files of the package are the blocks of `docs/extending.md` whose first line is a comment with their path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()
FILES = {
    path: f"# {path}\n{text}" for path, text in re.findall(r"```\w+\n# (\S+\.(?:py|toml))\n(.*?)```", PAGE, re.DOTALL)
}
EXAMPLES = ["bands", "halfway", "median", "serial", "smith2020_fig1"]


def entry_points(project: str) -> str:
    """The file `entry_points.txt` that an installer writes for a `pyproject.toml`."""
    groups = tomllib.loads(project)["project"]["entry-points"]
    lines = [
        [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())] for group, points in groups.items()
    ]
    return "\n".join(line for group in lines for line in [*group, ""])


def install(folder: Path, name: str, points: str) -> None:
    """Write the metadata of an installed package."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages: that of the page, and one whose only module cannot be imported."""
    folder = tmp_path_factory.mktemp("site")
    for path, text in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    (folder / "my_package" / "__init__.py").touch()
    install(folder, "my-package", entry_points(FILES["pyproject.toml"]))
    (folder / "faulty_package.py").write_text('raise ImportError("it needs a library that is not there")\n')
    install(folder, "faulty-package", "[sfumato.attacks]\nfaulty = faulty_package\n")
    return folder


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=site, env=environment, capture_output=True, text=True, check=False
    )


def test_the_page_has_one_example_per_family() -> None:
    assert {f"my_package/{name}.py" for name in EXAMPLES} < set(FILES)
    modules = [line.split(" = ")[1] for line in entry_points(FILES["pyproject.toml"]).splitlines() if " = " in line]
    assert modules == [f"my_package.{name}" for name in EXAMPLES]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_import_public_names_only(name: str) -> None:
    text = FILES[f"my_package/{name}.py"]
    imports = re.findall(r"^(?:from|import) .*", text, re.MULTILINE)
    assert any("sfumato" in line for line in imports)
    assert not [line for line in imports if re.search(r"(?<![a-z])_[a-z]", line)]


@pytest.mark.slow
def test_members_are_found_by_both_spellings_and_conform(site: Path) -> None:
    """The test files of the page, run as the author of the package would."""
    result = run(site, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "11 passed" in result.stdout


def test_members_are_used_by_their_names(site: Path) -> None:
    """In a policy, an attack, an import, an engine and the list of figures."""
    script = """
import numpy as np, pyarrow as pa, sfumato as sf
from sfumato.engines import ENGINES
from sfumato.mining import Median
table = pa.table({"id": np.arange(2000), "age": np.random.default_rng(1).uniform(0, 100, 2000)})
text = 'dataset = "d"\\n[levels]\\nnear = 0.8\\n[columns]\\nid = "id"\\nage = { role = "bands", low = 0, high = 100 }'
policy = sf.Policy.loads(text)
with ENGINES["serial"].at(None, None) as engine:
    scheme = policy.fit(table, engine=engine)
copy = scheme.release(table, "near", sf.Key.generate())
print(sf.score(sf.attack("halfway", [copy], weight=0.8), table).number("age").error.attack.estimate)
print(Median().fit(copy).median_[0].estimate)
"""
    result = run(site, "-W", "ignore::sfumato.family.FaultyPlugin", "-c", script)
    assert result.returncode == 0, result.stderr
    error, median = map(float, result.stdout.split())
    assert 0.15 < error < 0.25
    assert 40 < median < 60
    listed = run(site, "-m", "sfumato", "reproduce", "--list")
    assert listed.returncode == 0, listed.stderr
    assert "smith2020/fig1" in listed.stdout


def test_thresholds_are_not_tested_without_an_attack(site: Path) -> None:
    """A copy leaves only if every installed attack was tried: a faulty one holds it back, by name."""
    script = """
import numpy as np, pyarrow as pa, sfumato as sf
table = pa.table({"id": np.arange(200), "age": np.random.default_rng(1).uniform(0, 100, 200)})
text = 'dataset = "d"\\n[levels]\\nnear = 0.8\\n[columns]\\nid = "id"\\nage = "gaussian"'
scheme = sf.Policy.loads(text + '\\n[audit]\\nage = "error >= 0.05"').fit(table)
try:
    scheme.release(table, "near", sf.Key.generate())
except sf.SfumatoError as error:
    print(error)
"""
    result = run(site, "-c", script)
    assert "could not be tested, so nothing was released" in result.stdout, result.stderr
    assert "'faulty' of faulty-package" in result.stdout


def test_an_audit_runs_them(site: Path) -> None:
    script = """
import numpy as np, pyarrow as pa, sfumato as sf
table = pa.table({"id": np.arange(2000), "age": np.random.default_rng(1).uniform(0, 100, 2000)})
text = 'dataset = "d"\\n[levels]\\na = 0.8\\n[columns]\\nid = "id"\\nage = { role = "bands", low = 0, high = 100 }'
vault = sf.Vault.create("vault")
vault.add(sf.Policy.loads(text), table)
found = vault.audit("d")
print(found.passed, "halfway" in {score.attack for run in found.single_copy for score in run.scores})
"""
    result = run(site, "-c", script)
    assert result.stdout.split() == ["True", "True"], result.stderr
    assert "FaultyPlugin" in result.stderr
    assert "'faulty' of faulty-package" in result.stderr


def test_a_faulty_plugin_is_named_and_left_out(site: Path) -> None:
    script = """
import json, warnings
from sfumato.attacks import ATTACKS
from sfumato.errors import UnknownMember
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    members = list(ATTACKS.members())
try:
    ATTACKS["faulty"]
except UnknownMember as error:
    print(json.dumps([members, [(w.category.__name__, str(w.message)) for w in caught], str(error)]))
"""
    result = run(site, "-c", script)
    members, [[category, message]], error = json.loads(result.stdout)
    assert "halfway" in members
    assert "llse" in members
    assert "faulty" not in members
    assert category == "FaultyPlugin"
    for text in (message, error):
        assert "'faulty' of faulty-package" in text
        assert "it needs a library that is not there" in text


def test_a_faulty_plugin_does_not_break_the_list(site: Path) -> None:
    result = run(site, "-m", "sfumato", "attack", "--list")
    assert result.returncode == 0, result.stderr
    assert "halfway" in result.stdout
    assert "faulty" not in result.stdout
    assert "faulty-package" in result.stderr
    as_json = run(site, "-m", "sfumato", "attack", "--list", "--json")
    assert json.loads(as_json.stdout)["halfway"]["parameters"] == ["weight"]


def test_an_engine_of_another_package_can_share_a_key() -> None:
    """By the public name that the page gives: what the broker returns is what `shared_key` must return."""
    from sfumato.engines import key_broker
    from sfumato.keys.key import Key

    key = Key.generate()
    with key_broker("127.0.0.1", key) as secret:
        assert secret().fingerprint() == key.fingerprint()
    assert key.expose().hex() not in repr(secret)
