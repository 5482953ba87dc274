"""Appending: new rows alone are stored, looked at and released, and versions stay what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests import longitudinal, wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import GrantError, PolicyError, SourceError, VaultError
from sfumato.ledger.reader import Query
from sfumato.vault import known_ids, record_changes
from sfumato.vault.dataset_entries import variance_ratio
from sfumato.vault.table_parts import TablePart, carried, parts_of

ROWS = 300


def more(day: int, rows: int = 20) -> pa.Table:
    """New rows with new ids."""
    table = wards.table(rows, seed=100 + day)
    return table.set_column(0, "id", pa.array(np.arange(rows) + 10_000 + 100 * day))


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    made = site.create()
    made.add(wards.policy(), wards.table())
    made.recipient("clinic")
    made.grant("clinic", "ward", "partner")
    return made


def _sorted(copy: pa.Table) -> pa.Table:
    return copy.sort_by("id").replace_schema_metadata(None)


def test_the_copy_is_that_of_the_whole_table(vault: sf.Vault, tmp_path: Path) -> None:
    tables = [wards.table(), *(more(day) for day in range(5))]
    for table in tables[1:]:
        vault.append("ward", table)
    whole = pa.concat_tables(tables)
    dataset = vault.dataset("ward")
    assert (dataset.version, dataset.rows) == (6, whole.num_rows)
    with dataset.source() as source:
        assert pa.Table.from_batches(source.batches()).equals(whole.replace_schema_metadata(source.schema.metadata))
    path, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    key = vault.keys()[1]
    assert _sorted(sf.read_copy(path)).equals(_sorted(dataset.scheme.release(whole, "partner", key)))
    assert (manifest.rows, manifest.since) == (whole.num_rows, 0)
    assert vault.verify().sound


def test_few_files_are_read_after_many_appends(vault: sf.Vault) -> None:
    """The parts are the digits of a binary counter: 11 appends of equal size are 8 + 2 + 1."""
    for day in range(11):
        vault.append("ward", more(day))
    assert [part.rows for part in vault.dataset("ward").parts] == [ROWS, 160, 40, 20]
    parts = [TablePart(i, rows, {}, {}) for i, rows in enumerate([ROWS, 50, 8, 3])]
    kept, again = carried(parts, 9)
    assert ([part.rows for part in kept], [part.rows for part in again]) == ([ROWS, 50], [8, 3])


def test_ids_that_exist_are_refused(vault: sf.Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first rows, in appended ones, and by filters that cannot tell."""
    vault.append("ward", more(1))
    before = vault.log(Query(last=100))
    for known in (
        wards.table().slice(7, 1),
        more(1).slice(3, 2),
        pa.concat_tables([more(2), wards.table().slice(0, 1)]),
    ):
        with pytest.raises(SourceError, match="rows to be appended must have new ids"):
            vault.append("ward", known)
    monkeypatch.setattr(known_ids, "may_contain", lambda bits, ids, count: np.ones(len(ids), bool))
    assert vault.log(Query(last=100)) == before
    vault.append("ward", more(3))
    assert vault.verify().sound


def test_texts_that_exist_are_refused(site: Site) -> None:
    """Ids that are no numbers are known by their hashes."""

    def named(table: pa.Table) -> pa.Table:
        return table.set_column(0, "id", pc.cast(table["id"], pa.string()))

    vault = site.create()
    vault.add(wards.policy(), named(wards.table()))
    vault.append("ward", named(more(1)))
    for known in (wards.table().slice(7, 1), more(1).slice(3, 2)):
        with pytest.raises(SourceError, match="rows to be appended must have new ids"):
            vault.append("ward", named(known))


def test_large_parts_have_filters(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.vault.stored_rows.UNDIVIDED", 100)
    monkeypatch.setattr(record_changes, "UNDIVIDED", 100)
    made = site.create()
    made.add(wards.policy(), wards.table())
    assert made.dataset("ward").parts[0].ids is not None
    looked: list[Any] = []
    exact = known_ids._known

    def noted(store: Any, records: Any, suspect: Any) -> Any:
        looked.append(len(suspect))
        return exact(store, records, suspect)

    monkeypatch.setattr(known_ids, "_known", noted)
    made.append("ward", more(1))
    assert looked == [0]  # the filter knows that none of them exists
    with pytest.raises(SourceError, match="must have new ids"):
        made.append("ward", wards.table().slice(5, 3))
    assert looked[-1] >= 3


def test_repeated_and_empty_appends_change_nothing(vault: sf.Vault) -> None:
    entry = vault.append("ward", more(1))
    assert vault.append("ward", more(1)) == entry
    assert vault.append("ward", more(2).slice(0, 0)) == entry


def test_rows_since_a_version(vault: sf.Vault, tmp_path: Path) -> None:
    """They are the cells that the whole copy has, in an order of their own."""
    for day in range(3):
        vault.append("ward", more(day))
    whole = sf.read_copy(vault.release("clinic", "ward", tmp_path / "whole.parquet")[0])
    path, manifest = vault.release("clinic", "ward", tmp_path / "since.parquet", since=2)
    found = sf.read_copy(path)
    assert (manifest.since, manifest.version, found.num_rows) == (2, 4, 40)
    new = whole.filter(pc.greater_equal(whole["id"], 10_100))
    assert _sorted(found).equals(_sorted(new))
    assert found["id"].to_pylist() != sorted(found["id"].to_pylist())
    assert vault.release("clinic", "ward", tmp_path / "since.parquet", since=2)[1] == manifest
    assert [entry.body.get("since") for entry in vault.log(Query(kind="release"))] == [None, 2]
    assert vault.verify().sound


def test_rows_without_ids_keep_their_numbers(site: Site, tmp_path: Path) -> None:
    policy = sf.Policy.loads(
        wards.POLICY.replace('id = "id"', 'id = "drop"').replace("[levels]", 'order = "keep"\n[levels]')
    )
    vault = site.create()
    vault.add(policy, wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.append("ward", more(1))
    vault.append("ward", more(2))
    whole = sf.read_copy(vault.release("clinic", "ward", tmp_path / "whole.parquet")[0])
    new = sf.read_copy(vault.release("clinic", "ward", tmp_path / "new.parquet", since=2)[0])
    assert new.replace_schema_metadata(None).equals(whole.slice(ROWS + 20).replace_schema_metadata(None))


@pytest.mark.parametrize(
    ("since", "message"),
    [(9, "need an earlier one"), (0, "need an earlier one"), (1, "version 2 of ward was an update")],
)
def test_rows_since_a_version_that_is_none(vault: sf.Vault, tmp_path: Path, since: int, message: str) -> None:
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    vault.append("ward", more(1))
    with pytest.raises(GrantError, match=message):
        vault.release("clinic", "ward", tmp_path / "copy.parquet", since=since)
    vault.release("clinic", "ward", tmp_path / "copy.parquet", since=2)


def test_an_update_with_new_rows_first_is_no_append(vault: sf.Vault, tmp_path: Path) -> None:
    """Rows since a version are found by their position."""
    vault.update("ward", pa.concat_tables([more(1), wards.table()]))
    with pytest.raises(GrantError, match="was an update"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet", since=1)


def test_entities_are_appended_to_and_not_traced(site: Site) -> None:
    table, _ = longitudinal.patients(np.random.default_rng(1), np.full(300, 6))
    vault = site.create()
    with pytest.raises(PolicyError, match="records of one entity share some"):
        vault.add(longitudinal.policy(), table, traced=True)
    vault.add(longitudinal.policy(), table.slice(0, 1500))
    assert variance_ratio(vault.append("visits", table.slice(1500)).body) < 1.2
    vault.recipient("lab")
    vault.grant("lab", "visits", "partner")
    path, _ = vault.release("lab", "visits")
    with pytest.raises(VaultError, match="records of one entity share some"):
        vault.trace("visits", path)


def test_records_that_stay_have_one_draw(vault: sf.Vault, tmp_path: Path) -> None:
    """However many versions a recipient holds, unchanged records have the noise of one."""
    vault.release("clinic", "ward", tmp_path / "0.parquet")
    for day in range(5):
        vault.append("ward", more(day))
        vault.release("clinic", "ward", tmp_path / f"{day + 1}.parquet")
    assert vault.log(Query(kind="release"))[-1].body["exposure"]["draws"] == {"1": ROWS + 100}
    vault.rekey()
    vault.append("ward", more(7))
    vault.release("clinic", "ward", tmp_path / "later.parquet")
    assert vault.log(Query(kind="release"))[-1].body["exposure"]["draws"] == {"1": 20, "2": ROWS + 100}
    vault.encrypt()
    assert vault.verify().sound


def test_a_drift_of_appended_rows_is_seen(vault: sf.Vault) -> None:
    assert variance_ratio(vault.append("ward", more(1)).body) < 1.1
    wide = more(2, 60)
    wide = wide.set_column(2, "age", pa.array(45 + 20 * (wide["age"].to_numpy() - 45)))
    last = vault.append("ward", wide)
    assert variance_ratio(last.body) > 10
    whole = pa.concat_tables([wards.table(), more(1), wide])
    assert variance_ratio(vault.update("ward", wards.changed(whole, "age", slice(0, 1), 0.5)).body) == pytest.approx(
        variance_ratio(last.body), rel=0.05
    )


def test_a_version_that_others_build_on_is_not_erased(vault: sf.Vault) -> None:
    vault.append("ward", more(1))
    with pytest.raises(VaultError, match="version 1 of ward is a part of the current one"):
        vault.erase("ward", version=1)
    vault.update("ward", wards.table(), replace=True)
    for version in (1, 2):
        vault.erase("ward", version=version)
    with vault.dataset("ward").source() as source:
        assert source.rows == ROWS


def test_other_datasets_see_appended_records(vault: sf.Vault) -> None:
    for day in range(4):
        vault.append("ward", more(day))
    other = pa.concat_tables([more(day) for day in range(4)])
    with pytest.raises(VaultError, match="must not be in another dataset"):
        vault.add(wards.policy("other"), other)


def test_an_older_version_without_moments_and_filters_is_appended_to(vault: sf.Vault) -> None:
    with vault.ledger.writing(vault.keys()) as writing:
        latest = writing.latest("dataset", "ward")
        assert latest is not None
        body = {name: value for name, value in latest.body.items() if name not in ("moments", "ids")}
        writing.append("updated", "dataset", body | {"version": 2}, dataset="ward")
    vault.append("ward", more(1))
    assert len(parts_of(vault.dataset("ward").body)) == 2
    assert vault.dataset("ward").variance_ratio == pytest.approx(1, abs=0.2)


def test_entities_that_grow_are_known_to_mining(site: Site, tmp_path: Path) -> None:
    """A manifest states the most rows that an entity may have now, so that intervals are not too narrow."""
    visits, _ = longitudinal.patients(np.random.default_rng(3), np.full(200, 3))
    vault = site.create()
    vault.add(longitudinal.policy(), visits)
    vault.recipient("lab")
    vault.grant("lab", "visits", "partner")

    def rows(name: str) -> float:
        _, manifest = vault.release("lab", "visits", tmp_path / name)
        return max(float(getattr(model, "entity_rows", 1)) for model in manifest.models)

    assert rows("1.parquet") == 4
    one = visits.slice(0, 1).to_pylist()[0]
    grown = pa.Table.from_pylist(
        [{**one, "visit": 10_000 + i, "pressure": 120.0 + i} for i in range(40)], visits.schema
    )
    vault.append("visits", grown)
    assert rows("2.parquet") == 64  # 4 and 40, rounded up
    vault.update("visits", pa.concat_tables([visits, grown.slice(0, 12)]))
    assert rows("3.parquet") == 16  # counted: 3 and 12
