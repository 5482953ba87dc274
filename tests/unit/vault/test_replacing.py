"""A dataset that nobody has a grant for or a copy of may be stated anew: a wrong policy costs no name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import VaultError
from sfumato.vault.messages import sentence

TABLE = wards.table()


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    """A dataset with a policy that its owner did not want."""
    vault = site.create()
    vault.add(wards.policy(), TABLE)
    return vault


def _other_policy() -> sf.Policy:
    policy = wards.policy()
    return replace(policy, ladder=sf.Ladder({"close": sf.Level(0.6), "far": sf.Level(0.1)}))


def test_a_dataset_is_replaced_before_anybody_has_it(vault: sf.Vault, tmp_path: Path) -> None:
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.revoke("clinic", "ward")
    entry = vault.add(_other_policy(), TABLE, replace=True)
    assert (entry.action, entry.body["version"]) == ("added", 2)
    assert [name for name, _ in entry.body["levels"]] == ["close", "far"]
    assert "version 2" in sentence(entry)
    assert vault.add(_other_policy(), TABLE, replace=True) == entry  # again: nothing changes
    assert vault.add(_other_policy(), TABLE) == entry
    vault.grant("clinic", "ward", "far")
    _, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    assert (manifest.version, manifest.fidelity) == (2, 0.1)
    assert vault.verify().sound
    vault.erase("ward", version=1)
    assert vault.verify().sound
    assert vault.update("ward", TABLE.slice(1)).body["version"] == 3


def test_another_table_replaces_one_too(vault: sf.Vault) -> None:
    entry = vault.add(wards.policy(), TABLE.slice(5), replace=True)
    assert (entry.body["version"], entry.body["rows"]) == (2, TABLE.num_rows - 5)
    assert vault.verify().sound


def test_it_is_refused_once_somebody_has_a_grant_or_a_copy(vault: sf.Vault, tmp_path: Path) -> None:
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    with pytest.raises(VaultError, match="clinic may receive ward; revoke it first"):
        vault.add(_other_policy(), TABLE, replace=True)
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.revoke("clinic", "ward")
    with pytest.raises(VaultError, match="clinic received one of ward"):
        vault.add(_other_policy(), TABLE, replace=True)
    assert vault.dataset("ward").version == 1
    assert vault.verify().sound


def test_without_asking_nothing_is_replaced(vault: sf.Vault) -> None:
    with pytest.raises(VaultError, match="replace it"):
        vault.add(_other_policy(), TABLE)
    assert list(vault.dataset("ward").levels) == list(wards.policy().ladder.levels)
    assert vault.verify().sound


def test_a_later_version_is_not_added_again_under_an_erased_number(vault: sf.Vault) -> None:
    """The key of an erased version does not come back, which `verify` would report."""
    vault.update("ward", TABLE.slice(1))
    vault.erase("ward", version=1)
    with pytest.raises(VaultError, match="there is already a dataset"):
        vault.add(wards.policy(), TABLE)
    assert vault.verify().sound
    entry = vault.add(_other_policy(), TABLE, replace=True)
    assert entry.body["version"] == 3
    assert vault.verify().sound


def test_rows_since_a_replaced_version_are_not_released(vault: sf.Vault, tmp_path: Path) -> None:
    vault.add(_other_policy(), TABLE, replace=True)
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "far")
    with pytest.raises(VaultError):
        vault.release("clinic", "ward", tmp_path / "rows.parquet", since=1)
