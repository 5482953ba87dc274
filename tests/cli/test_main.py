"""The command line, as a user meets it: what it prints, how it exits, what it leaves behind."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import CustodyError, LevelError, PolicyError, SourceError

POLICY = 'dataset = "d"\n[levels]\ninside = 0.8\noutside = 0.3\n[columns]\nid = "id"\nn = "gaussian"\nc = "uniform"\n'


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a policy and a key."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(1)
    table = pa.table({"id": np.arange(500), "n": draw.normal(size=500), "c": ["a", "b", "c", "d", "e"] * 100})
    pq.write_table(table, "in.parquet")
    Path("p.toml").write_text(POLICY)
    sf.Key.from_bytes(bytes(range(32))).save("k")
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


RELEASE = ("release", "--policy", "p.toml", "--key-file", "k", "--level")


def test_the_whole_journey_of_an_owner_without_a_vault(workspace: Path) -> None:
    made = run("key", "new", "owner.key")
    assert made.exit_code == 0
    assert "Next: sfumato suggest" in made.stdout
    drafted = run("suggest", "in.parquet", "-o", "draft.toml")
    assert drafted.exit_code == 0
    assert "Next: sfumato add in.parquet --policy draft.toml" in drafted.stdout
    released = run(
        "release", "--policy", "draft.toml", "--key-file", "owner.key", "--level", "partner", "in.parquet", "out.csv"
    )
    assert released.exit_code == 0, released.output
    assert "500 rows at fidelity 0.5 (partner)" in released.stdout
    shown = run("show", "out.csv")
    assert "unaltered" in shown.stdout
    assert "Collusion-resistant" in shown.stdout


def test_the_key_may_come_from_the_environment(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy is that of --key-file, and only its owner may read it and the scheme."""
    words = ("release", "--policy", "p.toml", "--level", "0.5", "in.parquet")
    assert run(*words, "one.parquet", "--key-file", "k", "--scheme", "s.json").exit_code == 0
    missing = run(*words, "two.parquet")
    assert missing.exit_code == 2
    assert "needs a key: --key-file, SFUMATO_KEY_FILE or SFUMATO_KEY." in missing.stderr
    monkeypatch.setenv("SFUMATO_KEY_FILE", "k")
    assert run(*words, "two.parquet").exit_code == 0
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    for name in ("one.parquet", "one.parquet.manifest.json", "s.json"):
        assert Path(name).stat().st_mode & 0o777 == 0o600, name


def test_a_level_by_what_it_shall_ensure(workspace: Path) -> None:
    for option in (("--error", "0.4"), ("--epsilon", "1"), ("--rho", "0.1", "0.5"), ("--growth", "0.2")):
        assert run("level", *option, "--json").exit_code == 0
    posterior = json.loads(run("level", "--rho", "0.1", "0.5", "--json").stdout)
    assert posterior["largest posterior from a prior of 10 %, 10 categories"] == pytest.approx(0.5)
    both = json.loads(run("level", "0.9", "--error", "0.4", "--json").stdout)
    assert both["fidelity"] == pytest.approx(0.6)  # the stricter one
    assert "give a fidelity" in run("level").stderr
    assert "by a linear attacker, at least" in run("level", "0.5").stdout


def test_json_everywhere(workspace: Path) -> None:
    commands = [
        ("key", "new", "k2"),
        ("suggest", "in.parquet"),
        (*RELEASE, "0.5", "in.parquet", "out.parquet"),
        ("show", "out.parquet"),
        ("level", "0.5"),
    ]
    for command in commands:
        result = run(*command, "--json")
        assert result.exit_code == 0, result.output
        assert isinstance(json.loads(result.stdout), dict)


def test_every_command_has_help() -> None:
    def walk(command: click.Command, words: list[str]) -> None:
        assert command.help, words
        assert run(*words, "--help").exit_code == 0
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                walk(inner, [*words, name])
        else:
            assert any("--json" in parameter.opts for parameter in command.params), words

    walk(main, [])


def test_an_edited_policy_is_never_replaced(workspace: Path) -> None:
    result = run("suggest", "in.parquet", "-o", "p.toml")
    assert result.exit_code == PolicyError.exit_code
    assert Path("p.toml").read_text() == POLICY


def test_the_scheme_is_spoken_of_where_it_is_not_kept(workspace: Path) -> None:
    assert "--scheme" in run(*RELEASE, "inside", "in.parquet", "out.parquet").stdout
    assert "--scheme" not in run(*RELEASE, "inside", "--scheme", "s", "in.parquet", "out.parquet").stdout


def test_times_are_shown_in_days_and_warnings_stand_out(workspace: Path) -> None:
    import datetime as dt

    days = [dt.date(2025, 1, 1) + dt.timedelta(days=i) for i in range(500)]
    table = pq.read_table("in.parquet").append_column("d", pa.array(days))
    pq.write_table(table.append_column("t", pa.array(days).cast(pa.timestamp("us"))), "in.parquet")
    Path("p.toml").write_text(POLICY + 'd = "gaussian"\nt = { role = "independent", of = "gaussian" }\n')
    run(*RELEASE, "outside", "in.parquet", "out.parquet")
    shown = run("show", "out.parquet").stdout
    assert shown.count(" days, in steps of ") == 2
    assert "! UNSAFE" in shown


def test_other_peoples_folders_are_left_alone(workspace: Path) -> None:
    for folder in (".", "p.toml"):
        result = run("demo", folder)
        assert result.exit_code == 1
        assert "sfumato: the " in result.stderr


def test_a_rounded_level_is_said(workspace: Path) -> None:
    result = run(*RELEASE, "0.5", "in.parquet", "out.parquet")
    assert "rounded down from 0.5" in result.stdout
    assert "rounded" not in run(*RELEASE, "inside", "in.parquet", "out.parquet").stdout


def test_the_file_is_the_one_that_the_library_makes(workspace: Path) -> None:
    run(*RELEASE, "outside", "in.parquet", "out.parquet")
    table = pq.read_table("in.parquet")
    copy = sf.Policy.load("p.toml").fit(table).release(table, "outside", sf.Key.load("k"))
    assert sf.read_copy("out.parquet").equals(copy, check_metadata=True)


def test_a_kept_scheme_holds_the_shape_for_later_versions(workspace: Path) -> None:
    first = run(*RELEASE, "outside", "--scheme", "s.json", "in.parquet", "one.parquet")
    assert first.exit_code == 0, first.output
    table = pq.read_table("in.parquet")
    pq.write_table(pa.concat_tables([table, pa.table({"id": [900], "n": [30.0], "c": ["a"]})]), "in2.parquet")
    again = run("release", "--scheme", "s.json", "--key-file", "k", "--level", "outside", "in2.parquet", "two.parquet")
    assert again.exit_code == 0, again.output
    later = sf.read_copy("two.parquet")
    assert later.filter(pc.not_equal(later["id"], 900)).equals(sf.read_copy("one.parquet"))
    Path("q.toml").write_text(POLICY.replace("0.3", "0.2"))
    other = run(
        "release",
        "--policy",
        "q.toml",
        "--scheme",
        "s.json",
        "--key-file",
        "k",
        "--level",
        "0.2",
        "in.parquet",
        "x.csv",
    )
    assert other.exit_code == PolicyError.exit_code
    assert "fitted with another policy" in other.stderr


BAD = [
    ("missing column", ("p.toml", POLICY + 'zz = "keep"'), "must have the policy's column 'zz'"),
    ("repeated id", ("in.parquet", {"id": [1, 1], "n": [1.0, 2.0], "c": ["a", "b"]}), "a record id must occur once"),
    ("wrong role", ("p.toml", POLICY.replace('c = "uniform"', 'c = "gaussian"')), "needs numbers or times"),
    (
        "unknown category",
        ("p.toml", POLICY.replace('c = "uniform"', 'c = { role = "uniform", domain = ["a", "b"] }')),
        "must be in its domain of 2 values, got 'c'",
    ),
    ("NaN", ("in.parquet", {"id": [1, 2], "n": [1.0, float("nan")], "c": ["a", "b"]}), "finite numbers"),
    ("infinity", ("in.parquet", {"id": [1, 2], "n": [1.0, float("inf")], "c": ["a", "b"]}), "finite numbers"),
    ("level too high", ("p.toml", POLICY.replace("0.8", "1.8")), "strictly between 0"),
    ("levels not in order", ("p.toml", POLICY.replace("0.8", "0.1")), "most to the least trusted"),
    ("unknown key", ("p.toml", "datset = 1\n" + POLICY), "no key 'datset'; did you mean 'dataset'?"),
    ("unknown option", ("p.toml", POLICY + "d = { role = 'gaussian', clp = [0, 1] }"), "did you mean 'clip'?"),
    ("truncated Parquet", ("in.parquet", 0.7), "could not be read as parquet"),
    ("no Parquet at all", ("in.parquet", b"PAR1 and then nothing"), "could not be read as parquet"),
    ("short key", ("k", b"sfumato-key-1 0011"), "64 hexadecimal digits"),
    ("no such table", ("in.parquet", None), "a file that exists"),
    ("no such key", ("k", None), "could not be read"),
    ("no such policy", ("p.toml", None), "could not be read"),
]


CODES = {
    "p.toml": (PolicyError.exit_code, SourceError.exit_code),
    "in.parquet": (SourceError.exit_code,),
    "k": (CustodyError.exit_code,),
}
"""What a command exits with if a file is wrong; a policy may be wrong in itself, or not fit the table."""


@pytest.mark.parametrize(("change", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_gets_one_sentence_and_changes_nothing(
    workspace: Path, change: tuple[str, str | bytes | float | dict[str, object] | None], message: str
) -> None:
    name, content = change
    if isinstance(content, dict):
        pq.write_table(pa.table(content), name)
    elif content is None:
        Path(name).unlink()
    elif isinstance(content, float):
        whole = Path(name).read_bytes()
        Path(name).write_bytes(whole[: int(len(whole) * content)])
    else:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    before = {p.name: p.read_bytes() for p in workspace.iterdir()}
    result = run(*RELEASE, "outside", "in.parquet", "out.parquet")
    assert result.exit_code in CODES[name]
    assert message in result.stderr
    assert result.stderr.startswith("sfumato: ")
    assert result.stderr.count("\n") == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert {p.name: p.read_bytes() for p in workspace.iterdir()} == before
    assert run(*RELEASE, "outside", "--scheme", "s.json", "in.parquet", "out.parquet").exit_code in CODES[name]
    assert {p.name: p.read_bytes() for p in workspace.iterdir()} == before


def test_a_key_that_others_can_read_is_refused(workspace: Path) -> None:
    Path("k").chmod(0o644)
    result = run(*RELEASE, "outside", "in.parquet", "out.parquet")
    assert result.exit_code == CustodyError.exit_code
    assert "chmod 600" in result.stderr


@pytest.mark.parametrize("level", ["0", "1", "1.5", "nan", "trusted", "-0.2"])
def test_a_level_that_cannot_be_is_refused(workspace: Path, level: str) -> None:
    result = run(*RELEASE, level, "in.parquet", "out.parquet")
    assert result.exit_code == LevelError.exit_code
    assert "sfumato: " in result.stderr
    assert not Path("out.parquet").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("release",),
        ("release", "in.parquet", "out.parquet", "--key-file", "k", "--level", "0.5"),
        ("relase", "in.parquet"),
        (*RELEASE, "0.5", "--threads", "0", "in.parquet", "out.parquet"),
        ("level", "high"),
    ],
)
def test_wrong_usage_exits_with_2(workspace: Path, words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2


def test_the_demonstration_shows_that_collusion_adds_no_information(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    result = run("demo", str(folder), "--rows", "10000", "--json")
    assert result.exit_code == 0, result.output
    errors = json.loads(result.stdout)["residual_errors"]
    assert len(errors) == 7
    for column, error in errors.items():
        best = error["single_copy"]["hospital"]
        assert error["all_copies"] == pytest.approx(best, abs=0.02), column
        assert error["independent_noise"] < best - 0.05, column
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {"picture.png", "README.md", "clinic.parquet", "policy.toml", "copies/insurer.parquet"} <= names
    assert {"vault/ledger.sqlite", "vault.key", "leaked.csv"} <= names
    assert json.loads(result.stdout)["leaked_by"] == ["insurer"]
    assert sf.Vault.open(folder / "vault").verify().sound
    assert (folder / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_no_warning_of_a_fit_reaches_the_terminal_whatever_another_thread_does_to_the_filters(workspace: Path) -> None:
    """A thread that leaves its own `catch_warnings` sets the filters back, amid the fit of another thread."""
    other, fit = warnings.catch_warnings(), warnings.catch_warnings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run("level", "0.5").exit_code == 0
        other.__enter__()
        fit.__enter__()
        warnings.simplefilter("ignore")
        other.__exit__(None, None, None)
        warnings.warn_explicit("One of the clusters is empty.", UserWarning, "a.py", 1, module="scipy._lib._util")
        with pytest.raises(UserWarning, match="of the table"):
            warnings.warn_explicit("of the table", UserWarning, "a.py", 1, module="sfumato.tables")
        fit.__exit__(None, None, None)
