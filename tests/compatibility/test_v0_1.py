"""What version 0.1 wrote must be read by every later one, and its copies made again to the last bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.errors import ManifestError
from sfumato.release.certificate import check
from sfumato.survey.surveys import Surveys
from sfumato.tables import content_digest
from sfumato.tables.content_digest import SHA256
from sfumato.vault.tokens import authenticate

MADE = Path(__file__).with_name("v0.1")
OWNER = sf.Key.from_bytes(bytes(range(32)))
LOCK = sf.Key.from_bytes(bytes(range(1, 33)))
FACTS = json.loads((MADE / "facts.json").read_text())
SCHEMES = ("ward", "turned", "projected", "naive")
SIGNED = ("clinic", "university", "insurer", "insurer-turned", "clinic-2")


@pytest.fixture
def vault(tmp_path: Path) -> sf.Vault:
    shutil.copytree(MADE / "vault", tmp_path / "vault")
    return sf.Vault.open(tmp_path / "vault", secret=LOCK)


def _digest(copy: object) -> str:
    return str(json.loads(sf.Manifest.of(copy).dumps())["digest"])


def _earlier_digest(copy: pa.Table) -> str:
    """The digest that version 0.1 had written."""
    return content_digest.of_batches((content_digest.of_batch(one, SHA256) for one in copy.to_batches()), SHA256)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_scheme_makes_the_same_copy(name: str) -> None:
    scheme = sf.TableScheme.load(MADE / f"{name}.scheme.json")
    policy = sf.Policy.load(MADE / f"{name}.toml")
    whole = pyarrow.parquet.read_table(MADE / "table.parquet")
    table = whole.select([column for column in whole.column_names if column in policy.columns])
    assert policy.digest() == scheme.policy.digest()
    assert _earlier_digest(scheme.release(table, "partner", OWNER)) == _digest(MADE / f"{name}.parquet")


@pytest.mark.parametrize("name", [f"{name}.parquet" for name in (*SCHEMES, *SIGNED)] + ["ward.csv"])
def test_a_copy_is_still_whole(name: str) -> None:
    sf.Manifest.of(MADE / name).verify(MADE / name)
    assert isinstance(sf.read_copy(MADE / name), pa.Table)


@pytest.mark.parametrize("name", SIGNED)
def test_a_certificate_is_still_valid(name: str, tmp_path: Path) -> None:
    assert check(MADE / f"{name}.parquet", FACTS["public"]).signer == FACTS["public"]
    for suffix in (".parquet", ".parquet.manifest.json"):
        shutil.copy(MADE / f"{name}{suffix}", tmp_path / f"other{suffix}")
    with pytest.raises(ManifestError, match="must be signed by"):
        check(tmp_path / "other.parquet", "0" * 64)


def test_a_vault_opens_and_agrees_with_itself(vault: sf.Vault) -> None:
    report = vault.verify(contains=FACTS["head"])
    assert report.sound, report
    assert vault.dataset("ward").version == 2
    assert vault.dataset("ward").scheme.digest() == sf.TableScheme.load(_scheme_of(vault, "ward")).digest()
    assert {grant.recipient for grant in vault.grants()} == {"clinic", "university", "insurer"}
    assert authenticate(vault, FACTS["token"]) is not None
    assert [one.survey for one in Surveys(vault).summaries()] == ["travel"]


def _scheme_of(vault: sf.Vault, name: str) -> Path:
    [path] = (Path(vault.location) / "datasets" / name).glob("scheme-*.json")
    return path


def test_a_vault_gives_the_same_copy_again(vault: sf.Vault, tmp_path: Path) -> None:
    before = len(vault.log())
    path, manifest = vault.release("clinic", "ward", tmp_path / "again.parquet")
    assert _digest(path) == _digest(MADE / "clinic-2.parquet")
    assert len(vault.log()) == before  # it is known to have been given
    assert check(path, FACTS["public"]) == manifest


def test_a_vault_goes_on(vault: sf.Vault, tmp_path: Path) -> None:
    vault.recipient("auditor")
    vault.grant("auditor", "ward", "public")
    vault.release("auditor", "ward", tmp_path / "auditor.parquet")
    vault.update(
        "ward", pyarrow.parquet.read_table(MADE / "table.parquet"), accept_overlap="both datasets were in the vault"
    )
    assert vault.dataset("ward").version == 3
    assert vault.verify(contains=FACTS["head"]).sound


def test_a_leaked_copy_is_traced(vault: sf.Vault) -> None:
    found = vault.trace("ward", sf.read_copy(MADE / "insurer.parquet"))
    assert [suspect.recipients for suspect in found.accused] == [("insurer",)]


def test_a_backup_restores(tmp_path: Path) -> None:
    restored = sf.Vault.restore(MADE / "vault.backup", tmp_path / "restored", secret=LOCK)
    assert restored.verify(contains=FACTS["head"]).sound
