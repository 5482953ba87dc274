"""Grants: nobody gets more than the granted level, and each recipient of a traced dataset has a number of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import GrantError, UnknownSubject
from sfumato.vault.dataset_entries import GIVEN
from sfumato.vault.grants import Terms


def test_a_lower_level_is_given_and_a_higher_one_is_not(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    out = tmp_path / "copy.parquet"
    for requested, fidelity in (("partner", 0.5), (0.5, 0.5), (0.3, 0.3), (sf.Level(0.3), 0.3)):
        _, manifest = vault.release("clinic", "ward", out, level=requested)
        assert manifest.fidelity == pytest.approx(fidelity, rel=0.01)
        assert manifest.fidelity <= fidelity
    for higher in (0.51, sf.Level(0.8), "0.8"):
        with pytest.raises(GrantError, match=r"must not be above that of the grant, 0\.5"):
            vault.release("clinic", "ward", out, level=higher)
    for unknown in ("internal", "public", "none"):  # the names of other levels are not the recipient's to know
        with pytest.raises(GrantError, match=r"a level must be partner or a fidelity below 0\.5"):
            vault.release("clinic", "ward", out, level=unknown)


def test_nobody_gets_what_was_not_granted(vault: sf.Vault, tmp_path: Path) -> None:
    vault.recipient("lab")
    vault.grant("lab", "ward", "partner")
    with pytest.raises(GrantError, match="clinic must have a grant for ward, and has none"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")
    with pytest.raises(UnknownSubject, match=r"no recipient called 'clinc'; .*'clinic'"):
        vault.release("clinc", "ward", tmp_path / "copy.parquet")
    assert not list(tmp_path.glob("copy*"))


def test_every_grant_of_a_traced_dataset_has_a_fingerprint_of_its_own(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table(), traced=True)
    names = ("clinic", "lab", "insurer")
    for name in names:
        vault.recipient(name)
    numbers = [vault.grant(name, "ward", "partner").body["mark"] for name in names[:2]]
    assert numbers == [0, 1]
    assert vault.grant("clinic", "ward", "partner").body["mark"] == 0
    vault.backup(tmp_path / "backup.tar")
    restored = sf.Vault.restore(
        tmp_path / "backup.tar", site.new()[0], secret=site.secret, store=str(tmp_path / "store")
    )
    later = restored.grant("insurer", "ward", "partner").body["mark"]
    assert later > 1000  # far from those that were given after the backup
    assert restored.grant("lab", "ward", "partner").body["mark"] == 1
    assert vault.grant("insurer", "ward", "partner").body["mark"] == 2


@pytest.mark.parametrize("step", ["added", "updated", "appended"])
def test_a_grant_by_name_is_what_the_fitted_scheme_says(vault: sf.Vault, step: str) -> None:
    """The entry of each version says what copies have, so that a grant need not read the scheme."""
    if step == "updated":
        vault.update("ward", wards.table(seed=2), replace=True)
    elif step == "appended":
        vault.append("ward", wards.table(wards.ROWS + 7).slice(wards.ROWS))
    with vault.ledger.reading(vault.keys()) as reading:
        entry = reading.latest("dataset", "ward")
        assert entry is not None
        without = entry.__class__(**{**entry.__dict__, "body": {k: v for k, v in entry.body.items() if k != GIVEN}})
        for name in vault.dataset("ward").levels:
            recorded, read = (Terms.of(one, vault.store, name, None, None) for one in (entry, without))
            assert recorded.fitted is None
            assert read.fitted is not None  # as for versions that were added before entries said so
            assert recorded.body(reading, "clinic") == read.body(reading, "clinic")


def test_grants_and_looks_at_a_vault_load_neither_numpy_nor_arrow(vault: sf.Vault, site: Site, tmp_path: Path) -> None:
    """They take longer to load than a command may."""
    commands = [
        ["grant", "clinic", "ward", "--level", "partner"],
        ["revoke", "clinic", "ward"],
        ["status"],
        ["log"],
        ["recipient", "list"],
        ["level", "0.5"],
    ]
    script = """
import json, sys
from sfumato.cli.main import main
for words in json.loads(sys.argv[1]):
    main(words, standalone_mode=False)
print(json.dumps(sorted({"numpy", "pyarrow", "numba", "scipy", "pydantic"} & set(sys.modules))))
"""
    site.secret.save(tmp_path / "secret.key")
    environment = {**os.environ, "SFUMATO_VAULT": vault.location, "SFUMATO_KEY_FILE": str(tmp_path / "secret.key")}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
