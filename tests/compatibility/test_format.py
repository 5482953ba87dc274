"""The published file format: a JSON schema that says what the reader takes, and test vectors that do not change."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from tests.doc_scripts import doc_script

import sfumato as sf
from sfumato.models import MODELS
from sfumato.release.certificate import check

ROOT = Path(__file__).parents[2]
FORMAT = ROOT / "docs/format"


@pytest.fixture(scope="module")
def schema() -> Any:
    read = json.loads((FORMAT / "manifest.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(read)
    return jsonschema.Draft202012Validator(read)


def test_the_published_files_are_fresh() -> None:
    for name, content in doc_script("make_format").files().items():
        assert (FORMAT / name).read_bytes() == content, f"run `python docs/make_format.py`: {name}"


def test_the_vector_is_a_signed_copy() -> None:
    manifest = check(FORMAT / "vector.csv", sf.Manifest.of(FORMAT / "vector.csv").signer)
    assert manifest.rows == 50
    assert manifest.digest.startswith("blake3:")


POLICIES = {
    "gaussian-noise": 'x = "gaussian"\ny = { role = "gaussian", clip = [-2, 2], scale = 2 }\nc = "drop"',
    "uniform-replacement": 'x = "keep"\ny = "keep"\nc = { role = "uniform", unseen = "missing", domain = ["a", "b"] }',
    "gaussian-copula": 'x = "copula"\ny = "copula"\nc = "copula"',
    "rotation": 'x = "rotation"\ny = "rotation"\nc = "drop"\n[rotation]\naccept = "this is a test"\nnoise = true',
    "projection": 'x = "projection"\ny = "projection"\nc = "drop"\n'
    '[projection]\naccept = "this is a test"\ndimensions = 1',
    "pseudonym": 'id = { role = "id", publish = "pseudonym" }\nx = "gaussian"\ny = "keep"\nc = "keep"',
    "unchanged": 'id = "id"\nx = "gaussian"\ny = "keep"\nc = "keep"',
}


@pytest.fixture(scope="module")
def manifests() -> dict[str, Any]:
    draw = np.random.default_rng(1)
    x = draw.normal(size=2000)
    columns: dict[str, Any] = {"x": x, "y": x + draw.normal(size=2000), "c": draw.choice(["a", "b"], 2000)}
    made = {}
    for kind, text in POLICIES.items():
        has_id = text.startswith("id")
        table = pa.table({"id": np.arange(2000), **columns} if has_id else columns)
        policy = sf.Policy.loads(f'dataset = "d"\n[levels]\na = 0.5\n[columns]\n{text}')
        made[kind] = json.loads(sf.Manifest.of(policy.fit(table).release(table, "a", sf.Key.generate())).dumps())
    return made


def test_manifests_of_all_models_are_valid(schema: Any, manifests: dict[str, Any]) -> None:
    assert set(manifests) == set(MODELS.names())
    for kind, manifest in manifests.items():
        schema.validate(manifest)
        assert kind in {model["kind"] for model in manifest["models"]}


@pytest.mark.parametrize("kind", POLICIES)
def test_what_the_reader_refuses_for_its_type_the_schema_does_too(
    kind: str, schema: Any, manifests: dict[str, Any]
) -> None:
    """Every member of the wrong type, and every required one that is missing."""
    manifest = manifests[kind]
    [index] = [i for i, model in enumerate(manifest["models"]) if model["kind"] == kind][:1]
    tried = 0
    for branch in ((), ("models", index)):
        for name in _at(manifest, branch):
            if name in ("sfumato", "kind"):
                continue
            for wrong in ({"a": 1}, None):
                changed = copy.deepcopy(manifest)
                if wrong is None:
                    del _at(changed, branch)[name]
                else:
                    _at(changed, branch)[name] = wrong
                if not _is_read(changed) and not _is_free(schema, branch, kind, name):
                    tried += 1
                    assert not schema.is_valid(changed), (branch, name, wrong)
    assert tried > 15


def _at(manifest: Any, branch: tuple[Any, ...]) -> Any:
    for step in branch:
        manifest = manifest[step]
    return manifest


def _is_read(manifest: Any) -> bool:
    try:
        sf.Manifest.loads(json.dumps(manifest))
    except sf.SfumatoError:
        return False
    return True


def _is_free(schema: Any, branch: tuple[Any, ...], kind: str, name: str) -> bool:
    """Members whose inner form the schema leaves open."""
    record = schema.schema["$defs"][kind] if branch else schema.schema
    return json.dumps(record["properties"][name]).find('"items": {}') >= 0 or "object" in json.dumps(
        record["properties"][name].get("items", record["properties"][name])
    )
