"""Datasets that share records are refused without a reason, and count together in the exposure of a recipient."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests import wards

import sfumato as sf
from sfumato.errors import VaultError
from sfumato.ledger.reader import Query
from sfumato.vault import sketches
from sfumato.vault.sketches import overlap, read_sketch, sketch, write_sketch

KEY = sf.Key.from_bytes(bytes(range(32)))


def _policy(table: pa.Table, name: str = "other", **roles: str) -> sf.Policy:
    lines = [f'{column} = "{roles.get(column, "gaussian")}"' for column in table.column_names]
    return sf.Policy.loads("\n".join([f'dataset = "{name}"', "[levels]", "a = 0.5", "[columns]", *lines]))


def _overlap(one: pa.Table, other: pa.Table, **roles: str) -> float:
    layouts = [(_policy(table, **roles).fit(table), sf.tables.source.Source.of(table)) for table in (one, other)]
    return overlap(*(sketch(layout, source, KEY) for layout, source in layouts))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table({f"c{i}": draw.normal(size=3000) for i in range(3)} | {"age": draw.integers(18, 90, 3000)})


def test_the_same_records_are_recognised_in_part_and_in_another_order(table: pa.Table) -> None:
    draw = np.random.default_rng(6)
    shuffled = table.take(pa.array(draw.permutation(3000)))
    assert _overlap(table, shuffled) == pytest.approx(1)
    assert _overlap(table, shuffled.slice(0, 100)) == pytest.approx(1)
    assert _overlap(table, shuffled.select(["c1", "age"])) == pytest.approx(1)
    other = pa.table({name: draw.permutation(table[name].to_numpy()) + 0.5 for name in table.column_names})
    half = pa.concat_tables([other.cast(table.schema, safe=False).slice(0, 500), table.slice(0, 500)])
    assert _overlap(table, half) == pytest.approx(0.5, abs=0.05)


def test_records_without_a_unique_value_are_recognised_by_their_ids(table: pa.Table) -> None:
    few = table.select(["age"]).append_column("person", pa.array(np.arange(3000) + 7))
    assert _overlap(few, few.slice(1000), person="id") == pytest.approx(1, abs=0.02)
    assert _overlap(few.select(["age"]), few.select(["age"])) == pytest.approx(1, abs=0.02)  # by row numbers


def test_unrelated_records_do_not_overlap(table: pa.Table) -> None:
    """Neither the same distribution, nor the same ids, whole numbers or constants make an overlap."""
    draw = np.random.default_rng(8)
    for seed in range(20):
        rows = [30, 300, 3000][seed % 3]
        one, two = (
            pa.table(
                {
                    "person": np.arange(rows),
                    "age": draw.integers(18, 90, rows),
                    "sex": draw.integers(0, 2, rows),
                    "gain": np.where(draw.random(rows) < 0.9, 0.0, draw.lognormal(size=rows)),
                }
            )
            for _ in range(2)
        )
        assert _overlap(one, two, person="id") == 0
        assert _overlap(one.drop(["person"]), two.drop(["person"])) == 0
    other = pa.table({name: draw.normal(size=3000) for name in ("c0", "c1", "c2")} | {"age": table["age"]})
    assert _overlap(table.drop(["age"]), other.drop(["age"])) == 0


def test_large_tables_are_sampled_alike(table: pa.Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sketches, "SIZE", 256)
    assert _overlap(table, table.slice(2000)) == pytest.approx(1)
    found = sketch(_policy(table).fit(table), sf.tables.source.Source.of(table), KEY)
    write_sketch(tmp_path / "sketch", found)
    again = read_sketch(tmp_path / "sketch")
    assert {name: one.hashes.tolist() for name, one in again.items()} == {
        name: one.hashes.tolist() for name, one in found.items()
    }
    assert all(len(one.hashes) == 256 for one in found.values())
    assert overlap(again, found) == pytest.approx(1)


def test_a_second_dataset_with_the_same_records_needs_a_reason(vault: sf.Vault, tmp_path: Path) -> None:
    files = vault.store.names()
    part = wards.table().select(["id", "age", "income"]).slice(100)
    with pytest.raises(VaultError, match=r"and ward has 100% of those of the smaller.*--accept-overlap REASON"):
        vault.add(_policy(part, "second", id="id"), part)
    assert vault.store.names() == files
    entry = vault.add(_policy(part, "second", id="id"), part, accept_overlap="another study, other recipients")
    assert vault.add(_policy(part, "second", id="id"), part, accept_overlap="another study, other recipients") == entry
    assert entry.body["overlaps"] == {"ward": {"share": 1.0, "reason": "another study, other recipients"}}
    assert vault.add(wards.policy(), wards.table()).body == vault.dataset("ward").body
    vault.append("second", wards.table(310).slice(300).select(["id", "age", "income"]))  # accepted already
    for dataset, level in (("ward", "partner"), ("second", "a")):
        vault.grant("clinic", dataset, level)
        vault.release("clinic", dataset, tmp_path / f"{dataset}.parquet")
    first, second = (entry.body["exposure"] for entry in vault.log(Query(kind="release")))
    assert first == {"draws": {"1": 300}, "error": 0.5, "alone": 0.5}
    assert (second["draws"], second["error"]) == ({"2": 210}, pytest.approx(1 / 3, rel=0.1))
    for name, other in (("ward", "second"), ("second", "ward")):
        found = vault.overview(name)
        assert found["shares records with, which is included"] == other
        assert found["residual error of the best linear attack if all recipients collude"] < "40%"
    assert all(one["residual error"] < 0.4 for one in vault.rekey_cost())


def test_overlaps_are_found_with_another_key_and_in_an_update(vault: sf.Vault) -> None:
    vault.rekey()
    with pytest.raises(VaultError, match="ward has 100%"):
        vault.add(wards.policy("second"), wards.table())
    vault.add(wards.policy("second"), wards.table(seed=4))
    with pytest.raises(VaultError, match="ward has 100%"):
        vault.update("second", wards.table())
    with pytest.raises(VaultError, match="ward has"):
        vault.append("second", wards.table().slice(0, 80).set_column(0, "id", pa.array(np.arange(80))))
    assert vault.update("second", wards.table(), accept_overlap="moved").body["overlaps"]["ward"]["reason"] == "moved"
    assert vault.verify().notes == []


def test_thresholds_count_copies_of_overlapping_datasets(vault: sf.Vault, tmp_path: Path) -> None:
    """One copy at fidelity 0.5 leaves half of the variance; with one of the other dataset, a third."""
    strict = wards.POLICY.replace('"ward"', '"strict"') + '[audit]\nage = "error >= 0.4"\n'
    vault.add(sf.Policy.loads(strict), wards.table(), accept_overlap="needed")
    for dataset in ("strict", "ward"):
        vault.grant("clinic", dataset, "partner")
    vault.release("clinic", "strict", tmp_path / "1.parquet")
    vault.release("clinic", "ward", tmp_path / "2.parquet")
    vault.recipient("lab")
    vault.grant("lab", "strict", 0.45)
    with pytest.raises(sf.SfumatoError, match="age"):
        vault.release("lab", "strict", tmp_path / "3.parquet")
