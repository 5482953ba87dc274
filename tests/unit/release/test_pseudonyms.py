"""Pseudonyms: texts of each recipient's own in the stead of identifiers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests import longitudinal, wards

import sfumato as sf
from sfumato.audit.audit_input import AuditInput
from sfumato.mining.copies.copy import Copy
from sfumato.models import of_type
from sfumato.models.pseudonym import Pseudonym
from sfumato.release.evidence import identifiers_of

KEY = sf.Key.from_bytes(bytes(range(32)))


def _policy(name: str = "ward") -> sf.Policy:
    return sf.Policy.loads(
        wards.POLICY.replace('"ward"', f'"{name}"').replace('id = "id"', 'id = { role = "id", publish = "pseudonym" }')
    )


def _names(copy: pa.Table) -> list[str]:
    return list(copy["id"].to_pylist())


def test_they_are_texts_that_tell_nothing() -> None:
    table = wards.table()
    scheme = _policy().fit(table)
    shown, again, lower = scheme.release_levels(table, ["partner", "partner", "public"], KEY)
    assert all(re.fullmatch("[0-9a-f]{20}", name) for name in _names(shown))
    assert len(set(_names(shown))) == table.num_rows
    assert _names(again) == _names(shown)
    assert not set(_names(shown)) & set(_names(lower))  # of recipients of another level
    other = scheme.release(table, "partner", sf.Key.from_bytes(bytes(32)))
    assert not set(_names(shown)) & set(_names(other))
    manifest = sf.Manifest.of(shown)
    assert of_type(manifest.models, Pseudonym) == [Pseudonym(("id",), "id")]
    assert identifiers_of(manifest) == []
    assert any("Replaced by pseudonyms: id." in limit for limit in manifest.limits)
    assert Copy.of(shown).is_identifier("id")
    manifest.verify(shown)


def test_recipients_cannot_join_their_copies(tmp_path: Path) -> None:
    """They have the same noise, and no pseudonym in common; over versions, a recipient's pseudonyms stay."""
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(_policy(), wards.table())
    copies = {}
    for name in ("clinic", "lab"):
        vault.recipient(name)
        vault.grant(name, "ward", "partner")
        copies[name] = sf.read_copy(vault.release(name, "ward", tmp_path / f"{name}.parquet")[0])
    assert not set(_names(copies["clinic"])) & set(_names(copies["lab"]))
    assert copies["clinic"].drop(["id"]).equals(copies["lab"].drop(["id"]))
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    later = sf.read_copy(vault.release("clinic", "ward", tmp_path / "later.parquet")[0])
    assert set(_names(later)) == set(_names(copies["clinic"]))
    assert vault.verify().sound
    assert vault.audit("ward", attacks=["llse"], rows=300).soundness.alarms == ()


def test_rows_of_an_entity_share_a_pseudonym() -> None:
    table, patient = longitudinal.patients(np.random.default_rng(1), np.full(200, 5))
    text = longitudinal.policy().dumps()
    asked = text.replace('patient = "entity"', 'patient = { role = "entity", publish = "pseudonym" }')
    copy = sf.Policy.loads(asked).fit(table).release(table, "partner", KEY)
    shown = np.array(copy["patient"].to_pylist())
    assert "p0" not in shown
    assert len(set(shown)) == 200
    assert all(len(set(shown[patient == i])) == 1 for i in range(200))
    audited = AuditInput.of(table, {"partner": copy})
    assert audited.copies[0].public is not None  # whom rows belong to counts as known


def test_streams_show_them_too() -> None:
    table = wards.table()
    scheme = _policy().fit(table)
    stream = scheme.stream("partner", KEY, table)
    expected = set(map(str, scheme.release(table, "partner", KEY).to_pylist()))
    assert all(str(stream.record(record)) in expected for record in table.slice(0, 20).to_pylist())
