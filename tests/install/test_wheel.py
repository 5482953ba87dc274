"""A fresh machine: the wheel in an empty environment, and the README's commands, in their order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import offices

import sfumato as sf

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow]


def run(*words: object, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    [made] = folder.glob("*.whl")
    return made


def readme_commands() -> list[str]:
    """The commands of the README's main list, but for the installation."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    [main] = [block for block in blocks if "pip install" in block]
    lines = [line.partition("#")[0].strip() for line in main.splitlines()]
    return [line for line in lines if line.startswith("sfumato ")]


def test_the_readme_works_after_installing_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    run("env/bin/pip", "install", "--quiet", wheel, cwd=tmp_path)
    pq.write_table(offices.table(2000), tmp_path / "patients.parquet")
    commands = readme_commands()
    assert len(commands) > 10
    for command in commands:
        words = command.split()
        out = run(tmp_path / "env/bin/sfumato", *words[1:], cwd=tmp_path, SFUMATO_PASSPHRASE="correct horse battery")
        assert out.strip(), command
        if words[1] == "suggest":
            policy = tmp_path / "policy.toml"
            policy.write_text(
                re.sub(r'^dataset = ".*"', 'dataset = "patients"', policy.read_text(), flags=re.MULTILINE)
            )
    assert (tmp_path / "copy.parquet").exists()
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert "demonstration" in run(tmp_path / "env/bin/sfumato", "demo", "--help", cwd=tmp_path)


def test_recipients_need_no_vault(wheel: Path, tmp_path: Path) -> None:
    """`check`, `show` and `mine` work with the few packages of requirements/recipient.txt."""
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(offices.policy(), offices.table(2000))
    vault.recipient("university")
    vault.grant("university", "office", "far")
    vault.release("university", "office", tmp_path / "copy.parquet")
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    run("env/bin/pip", "install", "--quiet", "-r", ROOT / "requirements/recipient.txt", cwd=tmp_path)
    run("env/bin/pip", "install", "--quiet", "--no-deps", wheel, cwd=tmp_path)
    for words in (["check"], ["show"], ["mine"], ["mine", "--describe", "-o", "profile.html"]):
        name, *options = words
        assert run("env/bin/sfumato", name, "copy.parquet", *options, cwd=tmp_path).strip()
    installed = run("env/bin/pip", "list", "--format", "freeze", cwd=tmp_path).lower()
    assert not [name for name in ("sqlalchemy", "alembic", "mako") if f"{name}==" in installed]


def test_distributions_are_well_formed(tmp_path: Path) -> None:
    """The source distribution builds a wheel, and both have the metadata that an index asks for."""
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    run("env/bin/pip", "install", "--quiet", "build", "twine", cwd=tmp_path)
    run(tmp_path / "env/bin/python", "-m", "build", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    made = sorted(path.name for path in (tmp_path / "dist").iterdir())
    assert [name.endswith(end) for name, end in zip(made, (".whl", ".tar.gz"), strict=True)] == [True, True]
    run("env/bin/twine", "check", "--strict", *(tmp_path / "dist").iterdir(), cwd=tmp_path)


@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_one_command_without_an_installation(wheel: Path, tool: str, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    run("env/bin/pip", "install", "--quiet", "uv" if tool == "uvx" else "pipx", cwd=tmp_path)
    words = ["--from", wheel, "sfumato"] if tool == "uvx" else ["run", "--spec", wheel, "sfumato"]
    home = {"PIPX_HOME": str(tmp_path / "pipx"), "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_LINK_MODE": "copy"}
    run(f"env/bin/{tool}", *words, "demo", "shown", "--rows", "1000", cwd=tmp_path, **home)
    assert (tmp_path / "shown/picture.png").exists()


def test_a_machine_without_a_network(wheel: Path, tmp_path: Path) -> None:
    locked = ROOT / "requirements/locked.txt"
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    fetch = ("download", "--quiet", "--only-binary", ":all:", "--require-hashes", "-r", locked, "-d", "wheels")
    run("env/bin/pip", *fetch, cwd=tmp_path)
    (tmp_path / "wheels" / wheel.name).write_bytes(wheel.read_bytes())
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels"), "PIP_EXTRA_INDEX_URL": ""}
    run("env/bin/pip", "install", "--quiet", "--require-hashes", "-r", locked, cwd=tmp_path, **offline)
    run("env/bin/pip", "install", "--quiet", "--no-deps", "sfumato", cwd=tmp_path, **offline)
    assert "demonstration" in run("env/bin/sfumato", "demo", "--help", cwd=tmp_path)
