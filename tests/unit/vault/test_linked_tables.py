"""Datasets of several tables: one policy, consistent keys, noise of each table's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import PolicyError, SourceError, UnknownSubject, VaultError
from sfumato.release.files import read_copy
from sfumato.vault.linked_tables import add_tables, check_links
from sfumato.vault.names import tables_of

POLICY = """
dataset = "clinic"
[levels]
internal = 0.8
partner = 0.5

[tables.patients.columns]
patient = { role = "id", publish = "pseudonym" }
age = "gaussian"
ward = { role = "uniform", domain = ["a", "b", "c"] }

[tables.doctors.columns]
doctor = { role = "id", publish = "pseudonym", format = "A99" }
experience = "gaussian"

[tables.visits.columns]
visit = { role = "id", publish = false }
patient = { role = "entity", publish = "pseudonym", references = "patients.patient" }
doctor = { role = "keep", publish = "pseudonym", format = "A99", references = "doctors.doctor" }
pressure = "gaussian"
"""


def _tables() -> dict[str, pa.Table]:
    rng = np.random.default_rng(3)
    of_visit, shared = rng.integers(0, 300, 900), rng.normal(0, 8, 300)
    doctors = [f"D{i}" if i % 7 else None for i in rng.integers(10, 40, 900)]
    return {
        "patients": pa.table(
            {
                "patient": np.arange(300) + 5000,
                "age": rng.normal(50, 15, 300),
                "ward": np.array(["a", "b", "c"])[rng.integers(0, 3, 300)],
            }
        ),
        "doctors": pa.table({"doctor": [f"D{i}" for i in range(10, 40)], "experience": rng.normal(15, 5, 30)}),
        "visits": pa.table(
            {
                "visit": np.arange(900),
                "patient": of_visit + 5000,
                "doctor": pa.array(doctors, pa.string()),
                "pressure": rng.normal(120, 10, 900) + shared[of_visit],
            }
        ),
    }


def _policies(folder: Path, text: str = POLICY) -> dict[str, sf.Policy]:
    (folder / "clinic.toml").write_text(text)
    return sf.Policy.load_tables(folder / "clinic.toml")


def test_keys_are_replaced_consistently_and_for_each_recipient(tmp_path: Path) -> None:
    """What could be joined in the original can be joined in the copies of one recipient, and of two it cannot."""
    vault, tables = sf.Vault.create(tmp_path / "vault"), _tables()
    add_tables(vault, _policies(tmp_path), tables)
    assert add_tables(vault, _policies(tmp_path), tables)  # again: nothing changes
    assert (
        vault.tables("clinic") == tables_of(vault, "clinic") == ["clinic.doctors", "clinic.patients", "clinic.visits"]
    )
    copies: dict[str, dict[str, pa.Table]] = {}
    for name in ("lab", "insurer"):
        vault.recipient(name)
        copies[name] = {}
        for table in tables:
            vault.grant(name, f"clinic.{table}", "partner")
            path, manifest = vault.release(name, f"clinic.{table}", tmp_path / f"{name}.{table}.parquet")
            copies[name][table] = read_copy(path)
            assert any("Other tables of this dataset" in limit for limit in manifest.limits)
    for key, other in (("patient", "patients"), ("doctor", "doctors")):
        before = tables["visits"].join(tables[other], key, join_type="inner").num_rows
        assert copies["lab"]["visits"].join(copies["lab"][other], key, join_type="inner").num_rows == before
        crossed = copies["lab"]["visits"].join(copies["insurer"][other], key, join_type="inner").num_rows
        assert crossed < before / 4  # of 900 possible names of a doctor some are equal
    found = copies["lab"]["visits"]["doctor"]
    assert found.null_count == tables["visits"]["doctor"].null_count
    assert pc.all(pc.match_substring_regex(found.drop_null(), "^[A-Z][0-9]{2}$")).as_py()


def test_noise_is_that_of_each_table(tmp_path: Path) -> None:
    """Of equal ids and values too: one draw in two sizes could be solved for."""
    values = np.random.default_rng(1).normal(size=500)
    tables = {name: pa.table({"id": np.arange(500), "x": values}) for name in ("a", "b")}
    text = 'dataset = "d"\n[levels]\nl = 0.5\n' + "".join(
        f'[tables.{name}.columns]\nid = "id"\nx = "gaussian"\n' for name in tables
    )
    key = sf.Key.from_bytes(bytes(range(32)))
    noise = []
    for name, policy in _policies(tmp_path, text).items():
        copy = policy.fit(tables[name]).release(tables[name], "l", key).sort_by("id")
        noise.append(np.asarray(copy["x"]) - np.asarray(tables[name]["x"]))
    assert abs(np.corrcoef(noise)[0, 1]) < 0.25  # a correlation of 500 pairs: false alarms below 1e-7


def test_a_column_that_repeats_another_is_refused(tmp_path: Path) -> None:
    """Numbers and categories; what merely has the same values now and then is not."""
    tables, policies = _tables(), _policies(tmp_path, POLICY + 'age_then = "gaussian"\n')
    at = tables["visits"]["patient"].to_numpy() - 5000
    tables["visits"] = tables["visits"].append_column("age_then", tables["patients"]["age"].take(pa.array(at)))
    sources = {name: policies[name].source(table) for name, table in tables.items()}
    with pytest.raises(PolicyError, match=r"visits\.age_then repeats patients\.age"):
        check_links(policies, sources)
    with pytest.raises(PolicyError, match="repeats"):
        add_tables(sf.Vault.create(tmp_path / "vault"), policies, tables)
    unrelated = tables["visits"].set_column(4, "age_then", tables["visits"]["pressure"])
    check_links(policies, sources | {"visits": policies["visits"].source(unrelated)})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('references = "patients.patient"', 'references = "patients.age"', "must name an identifier"),
        ('references = "patients.patient"', 'references = "nobody.patient"', "must name an identifier"),
        ('publish = "pseudonym" }\nage', "publish = false }\nage", "pseudonyms of one kind"),
        (
            'doctor = { role = "id", publish = "pseudonym", format = "A99" }',
            'doctor = { role = "id", publish = "pseudonym" }',
            "of one kind",
        ),
        ('dataset = "clinic"', 'dataset = "clinic"\naudit = {}', "in the table that it is about"),
        ('dataset = "clinic"', "", "must name its dataset"),
        ("[tables.patients.columns]", '[tables."a/b".columns]', "the name of a table"),
        ("[tables.doctors.columns]", "[tables.doctors]\nlevels = {}\n[tables.doctors.columns]", "holds for all tables"),
    ],
)
def test_what_is_wrong_is_said(before: str, after: str, message: str, tmp_path: Path) -> None:
    assert before in POLICY
    with pytest.raises(PolicyError, match=message):
        _policies(tmp_path, POLICY.replace(before, after))


def test_policies_and_tables_must_fit(tmp_path: Path) -> None:
    policies, tables = _policies(tmp_path), _tables()
    vault = sf.Vault.create(tmp_path / "vault")
    with pytest.raises(PolicyError, match="several tables"):
        sf.Policy.load(tmp_path / "clinic.toml")
    with pytest.raises(SourceError, match="one for each"):
        add_tables(vault, policies, {"patients": tables["patients"]})
    texts = tables["visits"].set_column(1, "patient", tables["visits"]["patient"].cast(pa.string()))
    with pytest.raises(SourceError, match="texts instead of whole numbers"):
        add_tables(vault, policies, tables | {"visits": texts})
    with pytest.raises(UnknownSubject):
        tables_of(vault, "clinic")
    with pytest.raises(PolicyError, match="needs a dataset of several tables"):
        sf.Policy.loads(
            'dataset = "d"\n[levels]\nl = 0.5\n[columns]\n'
            'id = { role = "id", publish = "pseudonym", references = "a.b" }'
        )


def test_one_command_is_for_all_tables(tmp_path: Path) -> None:
    """`add`, `grant`, `release` and `revoke` take the name of the dataset."""
    (tmp_path / "clinic.toml").write_text(POLICY)
    for name, table in _tables().items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    vault = ("--vault", str(tmp_path / "vault"))

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, [*arguments, *vault], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    CliRunner().invoke(main, ["init", vault[1]], catch_exceptions=False)
    named = [f"{name}={tmp_path / name}.parquet" for name in _tables()]
    run("add", *named, "--policy", str(tmp_path / "clinic.toml"))
    run("recipient", "add", "lab")
    assert run("grant", "lab", "clinic", "--level", "partner").count("Granted") == 3
    assert "about one table" in run("grant", "lab", "clinic", "--level", "partner", "--columns", "age", code=2)
    out = tmp_path / "copies"
    assert run("release", "lab", "clinic", "--out", str(out)).count("Wrote") == 3
    assert sorted(path.name for path in out.glob("*.parquet")) == [
        "doctors.parquet",
        "patients.parquet",
        "visits.parquet",
    ]
    assert run("revoke", "lab", "clinic").count("Revoked") == 3
    assert "no dataset called 'nowhere'" in run("release", "lab", "nowhere", code=13)


def test_a_draft_of_several_tables_can_be_added_as_it_is(tmp_path: Path) -> None:
    """References are found by names and values, and not between columns that merely have the same name."""
    tables = _tables()
    tables["doctors"] = tables["doctors"].append_column("age", pa.array(np.linspace(30, 60, 30)))
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in tables]
    out = tmp_path / "clinic.toml"
    made = CliRunner().invoke(main, ["suggest", *files, "--dataset", "clinic", "-o", str(out)], catch_exceptions=False)
    assert "3 tables" in made.output
    policies = sf.Policy.load_tables(out)
    found = {
        f"{name}.{column}": stated.options["references"]
        for name, policy in policies.items()
        for column, stated in policy.columns.items()
        if "references" in stated.options
    }
    assert found == {"visits.patient": "patients.patient", "visits.doctor": "doctors.doctor"}
    assert policies["visits"].columns["patient"].role == "entity"
    assert out.read_text().count("An attacker recovers") >= 4
    add_tables(sf.Vault.create(tmp_path / "vault"), policies, tables)
    twice = CliRunner().invoke(main, ["suggest", files[0], files[0]])
    assert twice.exit_code == 2
    assert "a name of its own" in twice.output


@pytest.mark.parametrize("change", ["exact", "shifted", "rounded", "reversed"])
def test_a_repeated_number_is_found_however_it_is_written(tmp_path: Path, change: str) -> None:
    """Two draws of nearly one value would be averaged as well as two of the same."""
    tables, policies = _tables(), _policies(tmp_path, POLICY + 'age_then = "gaussian"\n')
    age = tables["patients"]["age"].to_numpy()[tables["visits"]["patient"].to_numpy() - 5000]
    written = {"exact": age, "shifted": age + 0.01, "rounded": np.round(age), "reversed": 2026 - age}[change]
    tables["visits"] = tables["visits"].append_column("age_then", pa.array(written))
    with pytest.raises(PolicyError, match=r"visits\.age_then repeats patients\.age"):
        check_links(policies, {name: policies[name].source(table) for name, table in tables.items()})


def test_sibling_tables_with_a_row_for_each_patient_are_no_overlap(tmp_path: Path) -> None:
    """Both refer to the patients, and are about other things."""
    rng = np.random.default_rng(6)
    key = np.arange(600) + 5000
    tables = {
        "patients": pa.table({"patient": key, "age": rng.normal(50, 15, 600)}),
        "labs": pa.table({"lab": np.arange(600), "patient": rng.permutation(key), "iron": rng.normal(size=600)}),
        "scans": pa.table({"scan": np.arange(600), "patient": rng.permutation(key), "dose": rng.normal(size=600)}),
    }
    text = 'dataset = "clinic"\n[levels]\npartner = 0.5\n[tables.patients.columns]\nage = "gaussian"\n'
    text += 'patient = { role = "id", publish = "pseudonym" }\n'
    for name, own, value in (("labs", "lab", "iron"), ("scans", "scan", "dose")):
        text += f'[tables.{name}.columns]\n{own} = {{ role = "id", publish = false }}\n{value} = "gaussian"\n'
        text += 'patient = { role = "keep", publish = "pseudonym", references = "patients.patient" }\n'
    vault = sf.Vault.create(tmp_path / "vault")
    assert len(add_tables(vault, _policies(tmp_path, text), tables)) == 3
    single = sf.Policy.loads('dataset = "clinic"\n[levels]\na = 0.5\n[columns]\nx = "gaussian"')
    with pytest.raises(VaultError, match="the name of one dataset"):
        vault.add(single, pa.table({"x": rng.normal(size=700)}))


def test_references_have_the_pseudonyms_of_other_widths_and_encodings(tmp_path: Path) -> None:
    """Whole numbers of 32 and 64 bits, and dictionaries, that are the same identifiers."""
    rng = np.random.default_rng(2)
    of = rng.integers(0, 300, 900)
    text = """
dataset = "d"
[levels]
l = 0.5
[tables.a.columns]
n = { role = "id", publish = "pseudonym", format = "99999" }
x = "gaussian"
[tables.b.columns]
id = { role = "id", publish = false }
n = { role = "keep", publish = "pseudonym", format = "99999", references = "a.n" }
y = "gaussian"
"""
    policies = _policies(tmp_path, text)
    a = pa.table({"n": pa.array(np.arange(300) + 10_000, pa.int32()), "x": rng.normal(size=300)})
    b = pa.table({"id": np.arange(900), "n": pa.array(of + 10_000, pa.int64()), "y": rng.normal(size=900)})
    check_links(policies, {"a": policies["a"].source(a), "b": policies["b"].source(b)})
    key = sf.Key.from_bytes(bytes(range(32)))
    copies = [policies[name].fit(t).release(t, "l", key) for name, t in (("a", a), ("b", b))]
    assert set(copies[1]["n"].to_pylist()) <= set(copies[0]["n"].to_pylist())
    assert copies[0].schema.field("n").type == pa.int32()
    far = b.set_column(1, "n", pa.array(of + 10_000_000, pa.int64()))
    check_links(policies, {"a": policies["a"].source(a), "b": policies["b"].source(far)})


def test_siblings_that_repeat_each_other_are_refused(tmp_path: Path) -> None:
    """As a column of another rounding and type, and as a whole table."""
    rng = np.random.default_rng(6)
    key, weight = np.arange(600) + 5000, rng.normal(70, 10, 600).round()
    order = rng.permutation(600)
    text = 'dataset = "clinic"\n[levels]\npartner = 0.5\n[tables.patients.columns]\nage = "gaussian"\n'
    text += 'patient = { role = "id", publish = "pseudonym" }\n'
    for name in ("first", "second"):
        text += f'[tables.{name}.columns]\nn = {{ role = "id", publish = false }}\nweight = "gaussian"\n'
        text += 'patient = { role = "keep", publish = "pseudonym", references = "patients.patient" }\n'
    tables = {
        "patients": pa.table({"patient": key, "age": rng.normal(50, 15, 600)}),
        "first": pa.table({"n": np.arange(600), "patient": key, "weight": weight}),
        "second": pa.table({"n": np.arange(600), "patient": key[order], "weight": weight[order]}),
    }
    policies = _policies(tmp_path, text)
    with pytest.raises(PolicyError, match=r"first\.weight repeats second\.weight"):
        add_tables(sf.Vault.create(tmp_path / "vault"), policies, tables)
    vault = sf.Vault.create(tmp_path / "other")  # each by itself: the overlap of whole tables is seen
    vault.add(policies["first"], tables["first"])
    with pytest.raises(VaultError, match="must not be in another dataset"):
        vault.add(policies["second"], tables["second"])


@pytest.mark.parametrize("kind", [pa.decimal128(8, 2), pa.string(), pa.float16()])
def test_repeated_numbers_are_found_in_other_types(tmp_path: Path, kind: pa.DataType) -> None:
    tables, policies = _tables(), _policies(tmp_path, POLICY.replace('"entity"', '"keep"') + 'age_then = "copula"\n')
    age = tables["patients"]["age"].to_numpy().round(1)[tables["visits"]["patient"].to_numpy() - 5000]
    column = (
        pa.array(age.astype(np.float16)) if kind == pa.float16() else pa.array(age).cast(pa.decimal128(8, 2)).cast(kind)
    )
    tables["visits"] = tables["visits"].append_column("age_then", column)
    with pytest.raises(PolicyError, match=r"visits\.age_then repeats patients\.age"):
        check_links(policies, {name: policies[name].source(table) for name, table in tables.items()})
