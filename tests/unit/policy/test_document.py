from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import LevelError, PolicyError, SfumatoError

HEAD = 'dataset = "d"\n[levels]\na = 0.5\n[columns]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not toml [", "valid TOML"),
        ("[levels]\na = 0.5\n[columns]\nx = 'keep'", "must name its dataset"),
        ('dataset = "d"\n[columns]\nx = "keep"', r"table \[levels\]"),
        ('dataset = "d"\n[levels]\na = 0.5', r"table \[columns\]"),
        ('datset = "d"\n[levels]\na = 0.5\n[columns]\nx = "keep"', "no key 'datset'; did you mean 'dataset'"),
        (HEAD + 'x = "gausian"', "no known role: 'gausian'; did you mean 'gaussian'"),
        (HEAD + 'x = { role = "gaussian", clipp = [0, 1] }', "no option 'clipp'; did you mean 'clip'"),
        (HEAD + 'x = { role = "drop", clip = [0, 1] }', "this role has none"),
        (HEAD + 'x = { role = "id", publish = "no" }', "must be true, false or 'pseudonym'"),
        (HEAD + "x = 3", "must have a role"),
        (HEAD + 'x = { role = "gaussian", clip = [1, 0] }', "lowest first"),
        (HEAD + 'x = { role = "gaussian", clip = 3 }', "lowest first"),
        (HEAD + 'x = { role = "gaussian", scale = 0 }', "must be a number above 0"),
        (HEAD + 'x = { role = "gaussian", scale = "big" }', "must be a number above 0"),
        (HEAD + 'x = { role = "gaussian", integer = 1 }', "true or false"),
        (HEAD + 'x = { role = "uniform", domain = [] }', "list of distinct values"),
        (HEAD + 'x = { role = "uniform", domain = ["a", "a"] }', "list of distinct values"),
        (HEAD + 'x = { role = "uniform", domain = { min = 3, max = 1 } }', "min at most max"),
        (HEAD + 'x = { role = "uniform", nulls = "hide" }', "'keep' or 'perturb'"),
        (HEAD + 'x = { role = "uniform", joint = 3 }', "name of its group"),
        (
            HEAD + 'x = { role = "uniform", joint = "g", scale = 2 }\ny = { role = "uniform", joint = "g" }',
            "same `scale`",
        ),
        (HEAD + 'x = "independent"', "needs `of`"),
        (HEAD + 'x = { role = "independent", of = "gaussian", domain = [1] }', "cannot have"),
        (HEAD + 'x = { role = "gaussian", clip = [0, 1], max_clipped = 2 }', "between 0 and 1"),
        (HEAD + 'x = { role = "gaussian", special = [0] }', "each with its share"),
        (HEAD + 'x = { role = "gaussian", special = [[0, 0.5], [1, 0.6]] }', "less than 1"),
        (HEAD + 'x = { role = "gaussian", special = [[0, 0.5], [0, 0.1]] }', "different values"),
        ("digits = 0\n" + HEAD + 'x = "keep"', "1 to 32"),
        ('default = "id"\n' + HEAD + 'x = "keep"', "'keep' or 'drop'"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        sf.Policy.loads(text)


def test_levels_must_be_possible_and_in_order() -> None:
    with pytest.raises(LevelError, match="level 'a'"):
        sf.Policy.loads('dataset = "d"\n[levels]\na = 1.0\n[columns]\nx = "keep"')
    with pytest.raises(LevelError, match=r"'0.2' has 0\.9.*name it in words"):
        sf.Policy.loads('dataset = "d"\n[levels]\n"0.2" = 0.9\n[columns]\nx = "keep"')
    with pytest.raises(LevelError, match="most to the least trusted"):
        sf.Policy.loads('dataset = "d"\n[levels]\na = 0.2\nb = 0.4\n[columns]\nx = "keep"')


def test_a_policy_comes_back_from_toml(tiny_policy: sf.Policy) -> None:
    assert sf.Policy.loads(tiny_policy.dumps()) == tiny_policy
    dated = sf.Policy.loads(HEAD + 'x = { role = "gaussian", clip = [2020-01-01, 2025-01-01] }')
    assert sf.Policy.loads(dated.dumps()) == dated
    assert dated.columns["x"].options["clip"][0] == dt.date(2020, 1, 1)


def test_a_policy_is_text() -> None:
    with pytest.raises(PolicyError, match="must be TOML text, got dict"):
        sf.Policy.loads({})  # type: ignore[arg-type]


def test_the_digest_is_of_the_content() -> None:
    one = sf.Policy.loads(HEAD + 'x = "gaussian"')
    same = sf.Policy.loads("# a comment\n" + HEAD + 'x = { role = "gaussian" }')
    other = sf.Policy.loads(HEAD + 'x = { role = "gaussian", scale = 2 }')
    assert one.digest() == same.digest() != other.digest()


def test_a_policy_file_must_be_readable(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file"):
        sf.Policy.load(tmp_path / "none.toml")
    (tmp_path / "p.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SfumatoError, match="UTF-8"):
        sf.Policy.load(tmp_path / "p.toml")


def test_a_clip_in_another_unit_is_refused() -> None:
    table = pa.table({"x": [40.0 + i for i in range(20)], "y": [float(i) for i in range(20)]})
    for role, other in (("gaussian", "gaussian"), ("rotation", "rotation")):
        column = f'x = {{ role = "{role}", clip = [1000, 2000] }}\ny = "{other}"\n'
        with pytest.raises(PolicyError, match=r"at most 25% of its values, and 1000.0 to 2000.0 moves 20 of 20; widen"):
            sf.Policy.loads(HEAD + column).fit(table)
        accepted = column.replace("2000]", "2000], max_clipped = 1")
        sf.Policy.loads(HEAD + accepted).fit(table)
        sf.Policy.loads(HEAD + column.replace("1000, 2000", "45, 60")).fit(table)  # moves a quarter


@pytest.mark.parametrize("columns", ['x = "drop"', 'x = { role = "id", publish = false }'])
def test_a_policy_that_shows_no_column_is_refused(columns: str) -> None:
    with pytest.raises(PolicyError, match="at least one column, and the policy drops or hides all of them"):
        sf.Policy.loads(HEAD + columns).fit(pa.table({"x": [1, 2]}))
