"""MappedRows copies on the command line: advice, refusal, release, and attacks that are scored."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from sfumato.cli import main

POLICY = 'dataset = "labs"\n[levels]\na = 0.8\n%s[columns]\n' + "".join(f'c{i} = "rotation"\n' for i in range(4))
TAKEN = '[rotation]\naccept = "this is a test"\n'


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    real = rng.gamma(2.0, size=(400, 4)) * [1, 2, 3, 4]
    real[:7, 0] = np.nan
    columns = {f"c{i}": pa.array(real[:, i], mask=np.isnan(real[:, i])) for i in range(4)}
    pq.write_table(pa.table(columns), "labs.parquet")
    Path("plain.toml").write_text(POLICY % "")
    Path("taken.toml").write_text(POLICY % TAKEN)
    Path("noisy.toml").write_text(POLICY % "[rotation]\nnoise = true\n")
    assert run("key", "new", "k.key").exit_code == run("key", "new", "other.key").exit_code == 0
    return tmp_path


def test_the_risk_is_assessed_before_any_release(workspace: Path) -> None:
    refused = run("advise", "labs.parquet", "--policy", "plain.toml", "--picture", "danger.svg")
    assert refused.exit_code == 1
    assert "DO NOT RELEASE" in refused.stdout
    assert "7 of 400 records have a missing value" in refused.stdout
    assert "without a copy" in refused.stdout
    assert "`accept` the risk with a reason" in refused.stdout
    assert "<svg" in Path("danger.svg").read_text()
    taken = run("advise", "labs.parquet", "--policy", "taken.toml", "--json")
    assert taken.exit_code == 0
    found = json.loads(taken.stdout)
    assert found["accepted"] == "this is a test"
    assert found["known_records"][3]["breached_share"] == [1.0, 1.0]
    noisy = run("advise", "labs.parquet", "--policy", "noisy.toml")
    assert noisy.exit_code == 0
    assert "at the most trusted level" in noisy.stdout


def test_copies_are_refused_released_and_recovered(workspace: Path) -> None:
    words = ("--level", "a", "--key-file", "k.key")
    refused = run("release", "labs.parquet", "no.parquet", "--policy", "plain.toml", *words)
    assert refused.exit_code == 1
    assert "must withstand 10" in refused.output
    assert not Path("no.parquet").exists()
    assert run("release", "labs.parquet", "copy.parquet", "--policy", "taken.toml", *words).exit_code == 0
    assert "a linear combination of 4 columns (rotation)" in run("show", "copy.parquet").stdout

    attack = ("attack", "known-input", "copy.parquet", "--truth", "labs.parquet", "--known", "6")
    done = run(*attack, "--arrange", "k.key", "taken.toml", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["explanation"]["linked"] == found["explanation"]["known"]
    assert found["score"]["breaches"]["euclidean"]["attack"]["estimate"] == 1.0
    assert "Diagnostics of the attack" in run(*attack, "--arrange", "k.key", "taken.toml").stdout
    for wrong, what in ((("other.key", "taken.toml"), "the key that"), (("k.key", "plain.toml"), "the policy that")):
        failed = run(*attack, "--arrange", *wrong)
        assert failed.exit_code == 1
        assert what in failed.output
    unarranged = run(*attack)
    assert unarranged.exit_code == 1
    assert "secret row order" in unarranged.output
