"""Previews of margin-preserving columns: the errors of attackers in their own values, missing ones among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests import wards

import sfumato as sf
from sfumato.demo.clinic import clinic
from sfumato.vault.invented import invented
from sfumato.vault.preview import collusion, preview


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> sf.Vault:
    folder: Path = tmp_path_factory.mktemp("preview")
    table = clinic(4000)
    income = pa.array(table["income"].to_numpy(), mask=np.random.default_rng(1).random(4000) < 0.2)
    table = table.set_column(table.column_names.index("income"), "income", income)
    made = sf.Vault.create(folder / "vault")
    made.add(sf.Policy.suggest(table, dataset="clinic"), table)
    for name, level in (("one", "internal"), ("two", "partner"), ("three", "public")):
        made.recipient(name)
        made.grant(name, "clinic", level)
    return made


def test_errors_grow_as_the_level_falls(vault: sf.Vault) -> None:
    found = [{one["name"]: one for one in preview(vault, "clinic", level)["columns"]} for level in (0.95, 0.5, 0.05)]
    assert set(found[0]) == {"visit", "age", "income", "systolic", "diastolic", "diagnosis", "region"}
    table = clinic(4000)
    for name in ("age", "systolic"):
        attackers = [one[name]["attacker"] for one in found]
        deviation = float(table[name].to_numpy().std())
        assert attackers == sorted(attackers)
        assert attackers[1] == pytest.approx(deviation * 0.5**0.5, rel=0.05)
        assert found[1][name]["mean"] == pytest.approx(float(table[name].to_numpy().mean()), rel=0.02)
    accuracies = [one["diagnosis"]["attacker"] for one in found]
    assert accuracies == sorted(accuracies, reverse=True)
    assert accuracies[2] < found[2]["diagnosis"]["baseline"] + 0.02
    assert found[1]["visit"]["day"].startswith("2025-0")


def test_collusion_is_shown_in_the_values_of_columns(vault: sf.Vault) -> None:
    found = collusion(vault, "clinic", ["one", "two", "three"])
    columns = {one["name"]: one for one in found["numbers"]["columns"]}
    assert set(columns) == {"visit", "age", "income", "systolic", "diastolic"}
    for one in columns.values():
        assert one["independent"] < one["actual"] < 0.6 * one["standard_deviation"]
    for one in found["categories"]:
        assert one["independent"] > one["actual"] > 0.2
    ages = next(one for one in found["numbers"]["estimates"] if one["column"] == "age")
    assert all(18 <= value <= 98 for value in ages["actual"])


def test_records_that_are_shown_are_nobodys_unless_asked_for(vault: sf.Vault) -> None:
    """Invented records have the types of the originals and none of their rows; who looks at originals is recorded."""
    table = clinic(4000)
    shown = preview(vault, "clinic", 0.9)
    assert "patient" not in shown["original"]
    real = {tuple(str(row[name]) for name in ("age", "diagnosis", "region", "visit")) for row in table.to_pylist()}
    for row in zip(*(shown["original"][name] for name in ("age", "diagnosis", "region", "visit")), strict=True):
        assert row not in real
    assert set(shown["original"]["diagnosis"]) <= set(table["diagnosis"].to_pylist())
    assert shown["copy"] != shown["original"]
    asked = preview(vault, "clinic", 0.9, originals=True)
    people = {tuple(str(row[name]) for name in ("age", "diagnosis", "region")) for row in table.to_pylist()}
    assert set(zip(*(asked["original"][name] for name in ("age", "diagnosis", "region")), strict=True)) <= people
    assert [one.body["originals"] for one in vault.accesses()[-2:]] == [False, True]
    estimates = collusion(vault, "clinic", ["one", "two"])["numbers"]["estimates"]
    asked = collusion(vault, "clinic", ["one", "two"], originals=True)["numbers"]["estimates"]
    ages = [next(one for one in found if one["column"] == "age")["truth"] for found in (estimates, asked)]
    assert ages[0] != ages[1]


@pytest.mark.parametrize("table", [wards.table(400), clinic(400)], ids=["wards", "clinic"])
def test_invented_records_have_the_columns_of_any_table(table: pa.Table) -> None:
    rare = pa.array([f"only {i}" for i in range(len(table))])
    table = table.append_column("rare", rare).append_column("when", pa.array([f"{i}:00" for i in range(len(table))]))
    table = table.append_column("coded", table["region"].combine_chunks().dictionary_encode())
    table = table.append_column("empty", pa.nulls(len(table), pa.float64()))
    found = invented(table, 10, [table.column_names[0]])
    assert found.schema == table.schema
    assert found["rare"].null_count == found["empty"].null_count == 10
    assert len(set(found.column(0).to_pylist())) == 10
    found.validate(full=True)
