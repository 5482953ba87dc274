"""Margin-preserving datasets in a vault: parts of the columns, appended rows, another key, and an audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.conftest import Site

import sfumato as sf
from sfumato.ledger.reader import Query
from sfumato.vault.dataset_entries import variance_ratio

POLICY = """
dataset = "people"
[levels]
near = 0.8
far = 0.3
[columns]
id = "id"
age = "copula"
income = "copula"
town = "copula"
"""


def _people(rows: int, first: int = 0) -> pa.Table:
    rng = np.random.default_rng(first)
    z = rng.normal(size=(rows, 3)) @ np.linalg.cholesky(0.5 * np.eye(3) + 0.5).T
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "age": np.round(45 + 15 * z[:, 0]).astype(np.int64),
            "income": pa.array(np.round(np.exp(10 + 0.5 * z[:, 1])), mask=rng.random(rows) < 0.1),
            "town": np.array(["Arles", "Brest", "Calais"])[np.digitize(z[:, 2], [-0.5, 1])],
        }
    )


def _released(vault: sf.Vault, name: str, folder: Path) -> pa.Table:
    """The copy of a recipient, in the order of the ids."""
    return sf.read_copy(vault.release(name, "people", folder / f"{name}.parquet")[0]).sort_by("id")


def test_parts_of_the_columns_appended_rows_and_another_key(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _people(3000))
    vault.recipient("whole")
    vault.recipient("part")
    vault.grant("whole", "people", "near")
    vault.grant("part", "people", "near", columns=["id", "income"])
    whole, part = (_released(vault, name, tmp_path) for name in ("whole", "part"))
    assert part.column_names == ["id", "income"]
    assert part["income"].equals(whole["income"])  # the same noise
    vault.append("people", _people(500, first=3000))
    later = _released(vault, "whole", tmp_path)
    assert later.num_rows == 3500
    assert later.slice(0, 3000).to_pydict() == whole.to_pydict()  # unchanged records keep their noise
    vault.rekey()
    rotated = _released(vault, "whole", tmp_path)
    assert rotated["age"].to_pylist() != later["age"].to_pylist()
    [*_, release] = vault.log(Query(kind="release", recipient="whole"))
    assert release.body["exposure"]["error"] < release.body["exposure"]["alone"]  # two keys: their copies add up
    found = vault.audit("people")
    assert found.soundness.sound
    assert (found.paths, found.collusion_gains) == (2, True)  # one copy is from before the new key
    assert vault.verify().sound


def test_drift_of_margin_preserving_columns_is_recorded(site: Site) -> None:
    """Values that were rare in the first version, and are frequent in a later one, have scores that vary more."""
    rng = np.random.default_rng(3)
    table = pa.table({"id": np.arange(2000), "x": rng.normal(size=2000), "y": rng.normal(size=2000)})
    policy = 'dataset = "d"\n[levels]\na = 0.5\n[columns]\nid = "id"\nx = "copula"\ny = "copula"\n'
    vault = site.create()
    assert variance_ratio(vault.add(sf.Policy.loads(policy), table).body) == 1
    same = table.set_column(1, "x", pa.array(rng.normal(size=2000)))
    assert variance_ratio(vault.update("d", same).body) < 1.25
    wide = table.set_column(1, "x", pa.array(2 * table["x"].to_numpy()))
    assert variance_ratio(vault.update("d", wide).body) > 1.8
