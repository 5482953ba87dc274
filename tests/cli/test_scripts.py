"""What scripts rely on: exit codes by class of error, errors as JSON, and output without progress and next steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import SfumatoError

COMMANDS = Path(__file__).parents[2] / "docs/commands.md"

FAILING = {
    "level 7": ("LevelError", 10),
    "suggest missing.csv": ("SourceError", 11),
    "show missing.parquet": ("SourceError", 11),
    "release --policy p.toml --key-file missing.key --level a in.parquet out.parquet": ("CustodyError", 12),
    "status --vault nowhere": ("VaultError", 13),
    "status --url http://127.0.0.1:9": ("ServiceError", 15),
    "level 0.5 --domain many": ("UsageError", 2),
    "no-such-command": ("UsageError", 2),
}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_KEY_FILE", "")
    Path("p.toml").write_text('dataset = "d"\n[levels]\na = 0.5\n[columns]\nx = "gaussian"\n')
    monkeypatch.setenv("SFUMATO_TOKEN", "sfu_" + "0" * 40)
    return tmp_path


@pytest.mark.parametrize("words", FAILING)
def test_a_failure_has_the_code_of_its_class_and_is_json_where_the_result_is(folder: Path, words: str) -> None:
    kind, code = FAILING[words]
    told = run(*words.split())
    assert told.exit_code == code, told.output
    assert told.stdout == ""
    assert told.stderr
    found = run(*words.split(), "--json")
    assert found.exit_code == code
    assert found.stderr == ""
    error = json.loads(found.stdout)["error"]
    assert (error["class"], error["exit_code"]) == (kind, code)
    assert error["message"]
    assert error["message"] in told.stderr


def test_a_copy_that_must_not_leave_is_refused_with_1(folder: Path) -> None:
    sf.Key.generate().save("k")
    Path("in.csv").write_text("x\n1\n2\n3\n")
    words = ["release", "--policy", "p.toml", "--key-file", "k", "--level", "a", "in.csv"]
    assert run(*words, "out.parquet").exit_code == 0
    again = run(*words[:-1], "out.parquet", "copy.parquet", "--json")
    assert (again.exit_code, json.loads(again.stdout)["error"]["class"]) == (11, "SourceError")
    Path("p.toml").write_text(Path("p.toml").read_text() + '[audit]\nx = "error >= 0.99"\n')
    refused = run(*words, "third.parquet", "--json")
    assert (refused.exit_code, json.loads(refused.stdout)["error"]["class"]) == (1, "ReleaseError")
    assert not Path("third.parquet").exists()


def _classes(root: type[SfumatoError]) -> Iterator[type[SfumatoError]]:
    yield root
    for inner in root.__subclasses__():
        yield from _classes(inner)


def test_every_code_is_documented() -> None:
    documented = {line.split("|")[1].strip() for line in COMMANDS.read_text().splitlines() if line.startswith("| ")}
    assert {str(one.exit_code) for one in _classes(SfumatoError)} <= documented


def test_quiet_output_has_no_next_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = run("level", "0.5").stdout
    assert "\nNext: " in usual
    quiet = run("level", "0.5", "--quiet").stdout
    assert quiet.strip() == usual.partition("\nNext: ")[0].strip()
    monkeypatch.setenv("SFUMATO_QUIET", "1")
    assert run("level", "0.5").stdout == quiet


CONFIGURATION = """
vault = "{vault}"
port = 9000
proxied = true
max_streams = 3
"""


def test_the_configuration_in_force_and_where_it_comes_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("serve.toml").write_text(CONFIGURATION.format(vault="postgresql://me:topsecret@host/db?sslpassword=other"))
    monkeypatch.setenv("SFUMATO_SERVE_PORT", "7000")
    monkeypatch.setenv("SFUMATO_KEY_FILE", "vault.key")
    shown = run("config", "--show", "--config", "serve.toml", "--json").stdout
    assert "topsecret" not in shown
    assert "other" not in shown
    found = {one["name"]: one for one in json.loads(shown)["settings"]}
    assert (found["port"]["value"], found["port"]["source"]) == (7000, "environment")
    assert (found["proxied"]["value"], found["proxied"]["source"]) == (True, "file")
    assert found["max_streams"]["value"] == 3
    assert (found["host"]["value"], found["host"]["source"]) == ("127.0.0.1", "default")
    assert (found["key_file"]["value"], found["key_file"]["source"]) == ("vault.key", "environment")
    assert found["vault"]["value"] == "postgresql://me@host/db"
    assert len({one["variable"] for one in found.values()}) == len(found)


def test_every_setting_can_be_in_the_file_and_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file made of the printed template, with values uncommented, is read back; so is each variable."""
    template = run("config").stdout
    names = [line[2:].partition(" = ")[0] for line in template.splitlines() if " = " in line and "(" not in line]
    settings = {one["name"]: one for one in json.loads(run("config", "--json").stdout)["settings"]}
    assert names == list(settings)
    for name, one in settings.items():
        if type(one["value"]) is int:
            Path("one.toml").write_text(f"{name} = {one['value'] + 1}\n")
            shown = json.loads(run("config", "--config", "one.toml", "--json").stdout)["settings"]
            assert {s["name"]: s["value"] for s in shown}[name] == one["value"] + 1
            monkeypatch.setenv(one["variable"], str(one["value"] + 2))
            shown = json.loads(run("config", "--config", "one.toml", "--json").stdout)["settings"]
            assert {s["name"]: s["value"] for s in shown}[name] == one["value"] + 2
            monkeypatch.delenv(one["variable"])


@pytest.mark.parametrize("text", ["ports = 1", "port = [", "port = 'many'"])
def test_a_configuration_that_cannot_be_used_is_refused(folder: Path, text: str) -> None:
    Path("serve.toml").write_text(text)
    refused = run("serve", "--config", "serve.toml", "--json")
    assert refused.exit_code in (2, 15)
    assert json.loads(refused.stdout)["error"]["message"]
