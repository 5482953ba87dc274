"""The vault commands, in both databases, for the owner, a recipient and an auditor."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import CustodyError


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(main, list(words), env=environment)


def ok(*words: str, **environment: str) -> str:
    done = run(*words, **environment)
    assert done.exit_code == 0, done.output
    assert "Next: " in done.stdout or "--json" in words or "--csv" in words
    return done.stdout


def output(*words: str) -> Any:
    return json.loads(ok(*words, "--json"))


@pytest.fixture
def workspace(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two versions of a table and a policy, and a vault that commands find in the environment."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(wards.table(), "one.parquet")
    pq.write_table(wards.changed(wards.table(), "age", slice(0, 7), 1.0), "two.parquet")
    Path("policy.toml").write_text(wards.POLICY)
    location, store = site.new()
    monkeypatch.setenv("SFUMATO_VAULT", location)
    monkeypatch.setenv("SFUMATO_PASSPHRASE", "correct horse")
    made = ok("init", *([] if store is None else ["--store", store]))
    assert "locked with a passphrase" in made
    return tmp_path


def test_the_complete_workflow(workspace: Path) -> None:
    assert "300 rows, levels internal, partner, public, leaks can be traced" in ok(
        "add", "one.parquet", "--policy", "policy.toml", "--trace"
    )
    ok("recipient", "add", "university", "--note", "the one in town")
    ok("recipient", "add", "insurer")
    assert "NOTE" not in ok("grant", "university", "ward", "--level", "partner")
    assert "NOTE: above fidelity 0.9" in ok("grant", "university", "ward", "--level", "0.95")
    ok("grant", "university", "ward", "--level", "partner")
    ok("grant", "insurer", "ward", "--level", "partner", "--columns", "id,age", "--until", "2999-12-31")
    released = ok("release", "university", "ward", "-o", "university.parquet")
    assert "300 rows of ward (version 1) for university" in released
    ok("release", "insurer", "ward", "-o", "insurer.csv")
    public = output("status")["public key"]
    checked = ok("check", "university.parquet", "--signer", public)
    assert "The certificate is valid" in checked
    assert "Collusion-resistant" in checked
    updated = ok("update", "ward", "two.parquet")
    assert "0 records added, 7 changed (7 of them with new noise in their numbers), 0 deleted" in updated
    assert "SECOND NOISE: 7 records" in updated
    assert "No released value has changed" in ok("update", "ward", "two.parquet")
    ok("release", "university", "ward", "-o", "university2.parquet")
    log = ok("log", "--recipient", "university")
    assert "Independent noise draws: 7 records received 2; averaging reduces the residual error from " in log
    assert "% to 33." in log
    assert "university" in ok("status", "ward")
    assert "up to 2" in ok("status", "ward")
    assert "The vault is intact" in ok("verify")
    assert "was made from the copy of insurer" in ok("trace", "ward", "insurer.csv")
    assert output("trace", "ward", "insurer.csv")["accused"] == ["insurer"]
    assert "of its numbers equal the original: the original table has leaked" in ok("trace", "ward", "one.parquet")
    ok("revoke", "insurer", "ward")
    ok("recipient", "disable", "insurer")
    assert "no" in ok("recipient", "list")
    ok("recipient", "enable", "insurer")


def test_the_log_is_exported(workspace: Path) -> None:
    ok("add", "one.parquet", "--policy", "policy.toml")
    for number in range(20):
        ok("recipient", "add", f"r{number}")
    assert len(output("log")["entries"]) == 20
    assert len(output("log", "--all")["entries"]) == 22
    assert [e["recipient"] for e in output("log", "--last", "1")["entries"]] == ["r19"]
    assert [e["action"] for e in output("log", "--dataset", "ward")["entries"]] == ["added"]
    assert output("log", "--since", "2999-01-01")["entries"] == []
    assert len(output("log", "--all", "--until", "2999-01-01")["entries"]) == 22
    assert "No entry matches" in ok("log", "--action", "released")
    rows = list(csv.DictReader(io.StringIO(ok("log", "--all", "--csv"))))
    assert len(rows) == 22
    assert json.loads(rows[1]["body"])["rows"] == 300


def test_custody(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = run("recipient", "add", "x", SFUMATO_PASSPHRASE="battery staple")
    assert wrong.exit_code == CustodyError.exit_code
    assert wrong.stderr == (
        "sfumato: the vault could not be opened with this passphrase or key; give the one it was locked with\n"
    )
    ok("passphrase", SFUMATO_NEW_PASSPHRASE="battery staple")
    assert run("verify").exit_code == CustodyError.exit_code
    ok("verify", SFUMATO_PASSPHRASE="battery staple")
    ok("passphrase", "--new-key-file", "new.key", SFUMATO_PASSPHRASE="battery staple")
    monkeypatch.delenv("SFUMATO_PASSPHRASE")
    ok("verify", "--key-file", "new.key")
    lost = run("verify")
    assert "If it is lost, it cannot be recovered" in lost.stderr
    Path("new.key").unlink()
    unsure = run("rekey", "--lost", "--new-key-file", "newer.key")
    assert unsure.exit_code == 1
    assert "Who holds which copy, you have to know" in unsure.stderr
    ok("rekey", "--lost", "--yes", "--new-key-file", "newer.key")
    checked = ok("verify", "--key-file", "newer.key")
    assert "the key of generation 1 is lost" in checked


def test_backup_and_restore(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ok("add", "one.parquet", "--policy", "policy.toml")
    head = output("backup", "vault.tar")["head"]
    ok("restore", "vault.tar", "again")
    monkeypatch.setenv("SFUMATO_VAULT", "again")
    ok("verify", "--contains", head)
    missing = run("verify", "--contains", "0" * 64)
    assert missing.exit_code == 1
    assert "VERIFICATION FAILED" in missing.stdout


def test_errors_are_one_sentence(workspace: Path) -> None:
    ok("add", "one.parquet", "--policy", "policy.toml")
    ok("recipient", "add", "lab")
    before = output("log", "--all")
    for words in [
        ("init",),
        ("add", "two.parquet", "--policy", "policy.toml"),
        ("add", "nothing.parquet", "--policy", "policy.toml"),
        ("grant", "lab", "ward", "--level", "parner"),
        ("grant", "lab", "ward", "--level", "partner", "--where", "age > 3"),
        ("grant", "lab", "ward", "--level", "partner", "--until", "soon"),
        ("grant", "nobody", "ward", "--level", "partner"),
        ("release", "lab", "ward", "-o", "x.parquet"),
        ("release", "lab", "wrad", "-o", "x.parquet"),
        ("revoke", "lab", "ward"),
        ("trace", "ward", "one.parquet"),
        ("status", "wrad"),
        ("update", "ward", "policy.toml"),
        ("restore", "policy.toml", "elsewhere"),
        ("check", "one.parquet"),
        ("log", "--since", "yesterday"),
    ]:
        refused = run(*words)
        assert refused.exit_code in (1, 10, 11, 13), (words, refused.output)
        assert re.fullmatch(r"sfumato: [^\n]+\n", refused.stderr), (words, refused.stderr)
    assert output("log", "--all") == before
    for words in [
        ("release", "lab", "ward", "--policy", "policy.toml"),
        ("grant", "lab", "ward"),
        ("log", "--last", "0"),
    ]:
        assert run(*words).exit_code == 2, words


def test_without_a_terminal_a_key_file_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = ok("init")
    assert "vault.key" in made
    ok("recipient", "add", "lab")
    assert ok("init", "other", "--key-file", "mine.key")
    assert sf.Key.load("mine.key")
    loose = sf.Key.generate()
    loose.save("loose.key")
    ok("init", "third", "--master-key", "loose.key", "--key-file", "mine.key")
    assert sf.Vault.open("third", secret=sf.Key.load("mine.key")).keys()[1] == loose
