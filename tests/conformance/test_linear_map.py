"""What every mechanism must do, for those that turn columns together."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import models
from sfumato.errors import PolicyError, SourceError

SETTINGS = [
    ("rotation", ""),
    ("rotation", "translation = true\nstandardise = true\nshuffle = false\n"),
    ("rotation", "noise = true\n"),
    ("projection", "dimensions = 5\n"),
]


def policy(role: str, settings: str, columns: str = "abc", extra: str = "") -> sf.Policy:
    said = "".join(f'{name} = "{role}"\n' for name in columns)
    return sf.Policy.loads(
        f'dataset = "d"\n[levels]\nx = 0.7\ny = 0.3\n[{role}]\naccept = "this is a test"\n{settings}'
        f'[columns]\nid = {{ role = "id", publish = false }}\n{said}{extra}'
    )


@pytest.fixture(params=SETTINGS, ids=str)
def made(request: pytest.FixtureRequest) -> sf.Policy:
    return policy(*request.param)


@pytest.fixture
def table(rng: np.random.Generator) -> pa.Table:
    rows = 3000
    return pa.table(
        {
            "id": rng.permutation(rows),
            "a": rng.normal(5, 2, rows),
            "b": pa.array(rng.integers(0, 50, rows), mask=rng.random(rows) < 0.1),
            "c": rng.exponential(300.0, rows),
        }
    )


def test_it_survives_encoding_and_pickling(made: sf.Policy, table: pa.Table, key: sf.Key, tmp_path: object) -> None:
    scheme = made.fit(table)
    expected = scheme.release(table, 0.5, key)
    assert sf.Policy.loads(made.dumps()) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own
    path = f"{tmp_path}/scheme.json"
    scheme.save(path)
    for other in (sf.TableScheme.load(path), pickle.loads(pickle.dumps(scheme))):  # noqa: S301
        assert other.release(table, 0.5, key).equals(expected)


def test_batches_threads_and_company_do_not_matter(made: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = made.fit(table)
    whole = scheme.release(table, "x", key, threads=1)
    parts = pa.concat_tables([table.slice(i, 700) for i in range(0, 3000, 700)])
    assert made.fit(parts).digest() == scheme.digest()
    assert scheme.release(parts, "x", key, threads=2).equals(whole)
    assert scheme.release_levels(table, ["y", "x"], key)[1].equals(whole)
    assert sf.Manifest.of(scheme.release(parts, "x", key)).digest == sf.Manifest.of(whole).digest
    assert not scheme.release(table, "x", sf.Key.generate()).equals(whole)


def test_the_model_is_public_and_plain(made: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = made.fit(table)
    manifest = sf.Manifest.of(scheme.release(table, "y", key))
    text = manifest.dumps()
    assert sf.Manifest.loads(text) == manifest
    assert key.expose().hex() not in text
    matrix, shift = scheme.schemes[0].linear_map(key.derive("dataset", "d"))  # type: ignore[attr-defined]
    assert all(repr(float(entry)) not in text for entry in [*matrix.ravel(), *shift[shift != 0]])
    for model in manifest.models:
        assert models.decode(json.loads(json.dumps(models.encode(model)))) == model


def test_a_record_that_misses_a_number_shows_none(made: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = made.fit(table)
    copy, real = scheme.release(table, "x", key), scheme.arranged(table, key)
    for name in copy.column_names:
        assert copy.column(name).is_null().equals(real.column("b").is_null())
    for rows in (0, 1, 2):
        small = table.slice(0, rows)
        assert len(scheme.release(small, "x", key)) == len(made.fit(small).release(small, "x", key)) == rows


def test_unusable_values_are_refused(made: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    bad = table.set_column(1, "a", pa.array([float("nan")] * 3000))
    for attempt in (lambda: made.fit(bad), lambda: made.fit(table).release(bad, "x", key)):
        with pytest.raises(SourceError, match="'a'"):
            attempt()
    with pytest.raises(SourceError, match="needs numbers"):
        made.fit(table.set_column(1, "a", pa.array(["x"] * 3000)))
    name = made.fit(table).schemes[0].columns[0]
    other = table.append_column(name, pa.array(range(3000)))
    crowded = policy(made.roles()[0], "", extra=f'{name} = "keep"\n').fit(other)
    with pytest.raises(SourceError, match="rename"):
        crowded.release(other, "x", key)


def test_it_tells_fresh_randomness_and_drift(made: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    [part] = made.fit(table).schemes
    [batch] = table.combine_chunks().to_batches()
    rows = table["id"].to_numpy().astype(np.uint64)
    before = part.draws(batch, rows, key)
    assert len(np.unique(before)) == len(rows)
    moved = batch.set_column(1, "a", pa.array(np.roll(batch.column("a").to_numpy(), 1)))
    noisy = part.model(next(iter(made.ladder))).noise  # type: ignore[attr-defined]
    assert (part.draws(moved, rows, key) == before).mean() < (0.01 if noisy else 1e-9)  # noise has a coarser lattice
    assert part.drift(made.fit(table).schemes[0]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ("noise = 1\n", "true or false"),
        ('shuffle = "no"\n', "true or false"),
        ("withstand = 0\n", "whole number"),
        ("withstand = true\n", "whole number"),
        ("dimensions = 4\n", "no key 'dimensions'"),
        ("tilt = 4\n", "no key 'tilt'"),
    ],
)
def test_settings_are_checked(settings: str, word: str) -> None:
    with pytest.raises(PolicyError, match=word):
        policy("rotation", settings)


def test_policies_that_make_no_sense() -> None:
    with pytest.raises(PolicyError, match="two columns"):
        policy("rotation", "", columns="a")
    with pytest.raises(PolicyError, match="reason"):
        sf.Policy.loads('dataset="d"\n[levels]\na=0.5\n[rotation]\naccept=""\n[columns]\na="rotation"\nb="rotation"\n')
    with pytest.raises(PolicyError, match="there is none"):
        sf.Policy.loads('dataset="d"\n[levels]\na=0.5\n[rotation]\nnoise=true\n[columns]\na="gaussian"\n')
    with pytest.raises(PolicyError, match="this role has none"):
        sf.Policy.loads('dataset="d"\n[levels]\na=0.5\n[uniform]\nnoise=true\n[columns]\na="uniform"\n')
