"""Digests of copies: the hash is named, earlier ones still hold, and a recorded copy is released again alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests import wards

import sfumato as sf
from sfumato.errors import ManifestError
from sfumato.release.manifest import METADATA, Manifest
from sfumato.tables import content_digest
from sfumato.tables.content_digest import BLAKE3, SHA256
from sfumato.vault import releases
from sfumato.vault.delivery import Delivery


def _with_sha256(copy: pa.Table) -> pa.Table:
    """The copy as version 0.3 had it: format 2, with a digest that names no hash."""
    digests = [content_digest.of_batch(batch, SHA256) for batch in copy.combine_chunks().to_batches()]
    manifest = replace(Manifest.of(copy), digest=content_digest.of_batches(digests, SHA256))
    text = json.dumps(json.loads(manifest.dumps()) | {"sfumato": 2})
    return copy.replace_schema_metadata({METADATA: text.encode()})


def test_the_manifest_names_the_hash(key: sf.Key) -> None:
    copy = wards.policy().fit(wards.table()).release(wards.table(), "partner", key)
    assert Manifest.of(copy).digest.startswith("blake3:")
    Manifest.of(copy).verify(copy)


def test_an_earlier_copy_is_still_whole(key: sf.Key) -> None:
    copy = _with_sha256(wards.policy().fit(wards.table()).release(wards.table(), "partner", key))
    manifest = Manifest.of(copy)
    manifest.verify(copy)
    assert json.loads(manifest.dumps())["sfumato"] == 2  # as it was written, since a signature covers that
    changed = wards.changed(copy, "age", slice(0, 1), 1.0)
    with pytest.raises(ManifestError, match="it has been changed"):
        manifest.verify(changed)


@pytest.mark.parametrize("digest", ["md5:00", "sha256:00", "blake2:00"])
def test_an_unknown_hash_is_refused(digest: str, key: sf.Key) -> None:
    copy = wards.policy().fit(wards.table()).release(wards.table(), "partner", key)
    with pytest.raises(ManifestError, match="malformed"):
        Manifest.loads(replace(Manifest.of(copy), digest=digest).dumps())


def test_a_hash_never_passes_for_another(key: sf.Key) -> None:
    batch = pa.record_batch({"x": np.arange(10)})
    plain = [content_digest.of_batches([content_digest.of_batch(batch, one)], one) for one in (BLAKE3, SHA256)]
    assert len({content_digest.as_bytes(one) for one in plain}) == 2
    assert [content_digest.algorithm_of(one) for one in plain] == [BLAKE3, SHA256]


def test_a_recorded_copy_is_released_again_with_its_hash(
    vault: sf.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.grant("clinic", "ward", "partner")
    with monkeypatch.context() as earlier:
        earlier.setattr(releases, "BLAKE3", SHA256)  # as a version did that knew no other hash
        _, first = vault.release("clinic", "ward", tmp_path / "first.parquet")
    assert ":" not in first.digest
    _, again = vault.release("clinic", "ward", tmp_path / "again.parquet")
    assert again.digest == first.digest
    sent = Delivery.of(vault, "clinic", "ward")
    assert list(sent.chunks("parquet"))
    manifest = sent.manifest()
    assert manifest is not None
    assert manifest.digest == first.digest
    assert vault.verify().problems == []
