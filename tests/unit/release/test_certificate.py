"""Certificates: verification of copies with the public key alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests import wards

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import ManifestError
from sfumato.keys.signature import is_signed, public_key, sign, succession
from sfumato.release.certificate import check, signed
from sfumato.release.manifest import attach, sidecar

KEY = sf.Key.from_bytes(bytes(range(32)))
COMPATIBLE = Path(__file__).parents[2] / "compatibility" / "v0.1"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> sf.Vault:
    made = sf.Vault.create(tmp_path_factory.mktemp("owner") / "vault")
    made.add(wards.policy(), wards.table())
    made.recipient("clinic")
    made.grant("clinic", "ward", "partner", where="region == 'north'")
    return made


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_a_copy_is_checked_with_the_public_key(vault: sf.Vault, tmp_path: Path, ending: str) -> None:
    path, manifest = vault.release("clinic", "ward", tmp_path / f"copy.{ending}")
    assert check(path, vault.public_key) == manifest
    (tmp_path / "public").write_text(vault.public_key + "\n")
    assert check(path, str(tmp_path / "public")).recipient == "clinic"
    assert check(path).signer == vault.public_key
    with pytest.raises(ManifestError, match="signed it; do not trust"):
        check(path, "0" * 64)
    with pytest.raises(ManifestError, match="64 hexadecimal digits"):
        check(path, "my friend")
    assert json.loads(sidecar(path).read_text())["signature"] == manifest.signature


def test_an_old_key_names_its_successor(tmp_path: Path) -> None:
    made = sf.Vault.create(tmp_path / "vault")
    made.add(wards.policy(), wards.table())
    made.recipient("clinic")
    made.grant("clinic", "ward", "partner")
    old, entry = made.public_key, made.rekey()
    path, manifest = made.release("clinic", "ward", tmp_path / "copy.parquet")
    signature = entry.body["succession"]
    assert (entry.body["previous public"], entry.body["public"]) == (old, made.public_key)
    assert check(path, old, signature) == manifest == check(path, made.public_key)
    for wrong in (None, "0" * 128, "x", made.rekey().body["succession"]):
        with pytest.raises(ManifestError, match="signed it; do not trust"):
            check(path, old, wrong)
    lost = made.rekey(lost=True, secret=sf.Key.generate())
    assert "succession" not in lost.body
    output = CliRunner().invoke(main, ["check", str(path), "--signer", old, "--succession", signature]).output
    assert "the key that you named, or its successor" in output


def test_any_change_of_the_manifest_is_found(vault: sf.Vault, tmp_path: Path) -> None:
    path, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    table = pq.read_table(path)
    for field in dataclasses.fields(manifest):
        value = getattr(manifest, field.name)
        if field.name in ("schema", "models", "columns", "earlier"):
            continue  # they are refused when read, or change how the table or the manifest is read
        other = (
            value + 1 if isinstance(value, int | float) else (*value, "x") if isinstance(value, tuple) else f"{value}0"
        )
        change: dict[str, Any] = {field.name: other}
        forged = attach(table, dataclasses.replace(manifest, **change))
        with pytest.raises(ManifestError):
            check(forged, vault.public_key)
    shorter = attach(table.slice(1), manifest)
    with pytest.raises(ManifestError, match="has been changed"):
        check(shorter, vault.public_key)
    assert check(table, vault.public_key) == manifest


def test_a_forged_copy_with_another_key(vault: sf.Vault, tmp_path: Path) -> None:
    path, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    forged = signed(dataclasses.replace(manifest, fidelity=0.2), sf.Key.generate())
    table = attach(pq.read_table(path), forged)
    assert check(table).fidelity == 0.2  # the signature is valid, but of another key
    with pytest.raises(ManifestError, match="do not trust"):
        check(table, vault.public_key)


def test_a_copy_without_a_vault_has_no_certificate(tmp_path: Path) -> None:
    table = pa.table({"x": [1.0, 2.0, 4.0]})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nx = "gaussian"\n')
    copy = policy.fit(table).release(table, "a", sf.Key.generate())
    with pytest.raises(ManifestError, match="not released from a vault"):
        check(copy)


def test_a_manifest_cannot_bring_the_signed_text_of_another() -> None:
    """A forgery: a genuine signed manifest as the field `earlier` of a false one."""
    table = wards.table()
    copy = wards.policy().fit(table).release(table, "partner", KEY)
    genuine = signed(sf.Manifest.of(copy), KEY)
    false = json.loads(genuine.dumps()) | {"recipient": "mallory", "rows": 7, "earlier": json.loads(genuine.dumps())}
    with pytest.raises(ManifestError, match="malformed"):
        sf.Manifest.loads(json.dumps(false))
    old = json.loads((COMPATIBLE / "clinic.parquet.manifest.json").read_text())
    read = sf.Manifest.loads(json.dumps(old))
    assert json.loads(read.dumps()) == old
    assert dataclasses.replace(read, recipient="mallory").earlier is None  # what is changed is not what was signed
    assert not is_signed(dataclasses.replace(read, recipient="mallory").signed_content(), read.signature, read.signer)


def test_public_keys_and_signatures_are_those_of_earlier_versions() -> None:
    assert public_key(KEY) == "0963c63a0abdaaefe3c32b522185d51cbd8596be206dc774ab591d1e1b3c1cd6"
    assert sign(KEY, b"content").startswith("a38c524f77b0d1879b844dec2b8d90af")
    assert succession("a", "b") == b"sfumato-key-succession-1 a b"
    assert is_signed(b"content", sign(KEY, b"content"), public_key(KEY)) is True
    for content, signature, public in (
        *((b"other", sign(KEY, b"content"), public_key(KEY)), (b"content", sign(KEY, b"content"), "0" * 64)),
        *((b"content", "zz", public_key(KEY)), (b"content", "", public_key(KEY)), (b"content", "00" * 64, "short")),
    ):
        assert is_signed(content, signature, public) is False


def test_a_copy_in_a_folder_is_whole_and_has_its_manifest(tmp_path: Path) -> None:
    table, (source, copy) = wards.table(), (tmp_path / "table", tmp_path / "copy")
    source.mkdir()
    for i in range(2):
        pq.write_table(table.slice(150 * i, 150), source / f"{i}.parquet")
    sf.release_folder(wards.policy().fit(table), source, copy, "partner", KEY)
    manifest = sf.Manifest.of(copy)
    manifest.verify(copy)
    part = min(copy.glob("*.parquet"))
    pq.write_table(pq.read_table(part).slice(1), part)
    with pytest.raises(ManifestError, match="has been changed"):
        manifest.verify(copy)
    (copy / "_sfumato.manifest.json").unlink()
    with pytest.raises(ManifestError, match="must have its manifest in it"):
        sf.Manifest.of(copy)


def test_a_manifest_is_signed_as_it_is_written() -> None:
    table = wards.table()
    manifest = dataclasses.replace(
        sf.Manifest.of(wards.policy().fit(table).release(table, "partner", KEY)), recipient="Übung"
    )
    assert "Übung" in manifest.dumps()
    assert manifest.signed_content().startswith(b"sfumato manifest\0{")
    assert "Übung".encode() in manifest.signed_content()
