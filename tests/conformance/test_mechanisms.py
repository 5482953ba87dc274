"""What every mechanism must do, ours or a stranger's: each runs on each scheme that the family offers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import models
from sfumato.errors import SfumatoError
from sfumato.mechanisms import MECHANISMS

# a column of numbers `n`, with nulls, and one of categories `c`, with nulls; `of` is for the mechanism that needs it
ROLES = {
    "gaussian": ["n"],
    "uniform": ["c"],
    "independent": ["n", "c"],
}
IMITATED = {"n": "gaussian", "c": "uniform"}


def test_every_mechanism_is_tested() -> None:
    assert set(MECHANISMS.names()) == set(ROLES) | {"rotation", "projection"}  # the last two: test_turned.py


@pytest.fixture(params=[(role, column) for role, columns in ROLES.items() for column in columns], ids=str)
def policy(request: pytest.FixtureRequest) -> sf.Policy:
    role, column = request.param
    options = f', of = "{IMITATED[column]}"' if role == "independent" else ""
    other = "drop"
    lines = dict.fromkeys(("n", "c"), f'"{other}"') | {column: f'{{ role = "{role}"{options} }}'}
    columns = "\n".join(f"{name} = {said}" for name, said in lines.items())
    return sf.Policy.loads(f'dataset = "conformance"\n[levels]\na = 0.7\nb = 0.3\n[columns]\nid = "id"\n{columns}')


@pytest.fixture
def table(rng: np.random.Generator) -> pa.Table:
    rows = 3000
    numbers, hidden = rng.normal(5, 2, rows), rng.random(rows) < 0.1
    letters = np.array(list("abcde"))[rng.integers(0, 5, rows)]
    return pa.table(
        {
            "id": pa.array(rng.permutation(rows)),
            "n": pa.array(numbers, mask=hidden),
            "c": pa.array(letters, mask=rng.random(rows) < 0.1),
        }
    )


def test_it_survives_encoding_and_pickling(policy: sf.Policy, table: pa.Table, key: sf.Key, tmp_path: object) -> None:
    scheme = policy.fit(table)
    expected = scheme.release(table, 0.5, key)
    assert sf.Policy.loads(policy.dumps()) == policy
    path = f"{tmp_path}/scheme.json"
    scheme.save(path)
    for twin in (sf.TableScheme.load(path), pickle.loads(pickle.dumps(scheme)), policy.fit(table)):  # noqa: S301
        assert twin.digest() == scheme.digest()
        assert twin.release(table, 0.5, key).equals(expected, check_metadata=True)


def test_parameters_are_frozen_and_documented(policy: sf.Policy, table: pa.Table) -> None:
    for mechanism in policy.fit(table).mechanisms:
        assert mechanism.reference
        with pytest.raises(AttributeError):
            mechanism.columns = ("other",)  # type: ignore[misc]


def test_the_order_of_columns_in_a_policy_says_nothing(tiny: pa.Table, tiny_policy: sf.Policy, key: sf.Key) -> None:
    """A policy that is written in another order, or comes back from a file, is the same policy."""
    turned = sf.Policy("tiny", tiny_policy.ladder, dict(reversed(list(tiny_policy.columns.items()))))
    schemes = [policy.fit(tiny) for policy in (tiny_policy, turned, sf.Policy.loads(tiny_policy.dumps()))]
    assert len({scheme.digest() for scheme in schemes}) == 1
    copies = [scheme.release(tiny, 0.4, key) for scheme in schemes]
    assert copies[0].equals(copies[1], check_metadata=True)
    assert copies[0].equals(copies[2], check_metadata=True)


def test_a_scheme_of_many_columns_comes_back_from_its_file(
    tiny: pa.Table, tiny_scheme: sf.TableScheme, key: sf.Key, tmp_path: object
) -> None:
    tiny_scheme.save(f"{tmp_path}/s.json")
    again = sf.TableScheme.load(f"{tmp_path}/s.json")
    assert again.release(tiny, 0.4, key).equals(tiny_scheme.release(tiny, 0.4, key), check_metadata=True)


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(table), 700):
        yield table.slice(start, 700)


def test_batches_order_threads_and_company_do_not_matter(policy: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = policy.fit(table)
    whole = scheme.release(table, 0.4, key)
    assert scheme.release(table, 0.4, key, threads=1).equals(whole, check_metadata=True)
    assert pa.concat_tables(scheme.release(piece, 0.4, key) for piece in _pieces(table)).equals(whole)
    backwards = table.take(np.arange(len(table))[::-1])
    assert scheme.release(backwards, 0.4, key).sort_by("id").equals(whole.sort_by("id"))
    several = scheme.release_levels(table, ["a", 0.4, "b", 0.1], key)
    assert several[1].equals(whole, check_metadata=True)


def test_the_fit_does_not_depend_on_batches(policy: sf.Policy, table: pa.Table) -> None:
    """Summaries merge exactly: in any order, from any partition."""
    scheme = policy.fit(table)
    for mechanism in scheme.mechanisms:
        before = None
        for _ in range(mechanism.passes):
            parts = [mechanism.summarise(batch, before) for piece in _pieces(table) for batch in piece.to_batches()]
            forward = parts[0]
            for part in parts[1:]:
                forward = forward.merge(part)
            backward = parts[-1]
            for part in parts[-2::-1]:
                backward = part.merge(backward)
            before = forward
        for summary in (forward, backward):
            assert mechanism.fit(summary, scheme.tree).state() == scheme.schemes[0].state()


def test_the_model_is_public_and_plain(policy: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    manifest = sf.Manifest.of(policy.fit(table).release(table, "b", key))
    text = manifest.dumps()
    assert sf.Manifest.loads(text) == manifest
    assert key.expose().hex() not in text
    for model in manifest.models:
        assert models.decode(json.loads(json.dumps(models.encode(model)))) == model


def test_nulls_stay_and_small_tables_work(policy: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = policy.fit(table)
    [column] = [name for name in ("n", "c") if policy.columns[name].role != "drop"]
    copy = scheme.release(table, "a", key)
    assert copy.column(column).is_null().equals(table.column(column).is_null())
    assert not copy.column(column).equals(table.column(column))
    for rows in (0, 1):
        small = table.slice(0, rows)
        assert len(scheme.release(small, "a", key)) == rows
        fresh = policy.fit(small)
        assert len(fresh.release(small, "a", key)) == rows


def test_unusable_values_are_refused(policy: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    scheme = policy.fit(table)
    [column] = [name for name in ("n", "c") if policy.columns[name].role != "drop"]
    strange = pa.array([float("nan")] * 3) if column == "n" else pa.array(["unheard of"] * 3)
    bad = pa.table({"id": [1, 2, 3], "n": [1.0, 2.0, 3.0], "c": ["a", "b", "c"]}).set_column(
        "nc".index(column) + 1, column, strange
    )
    with pytest.raises(SfumatoError, match=f"'{column}'"):
        scheme.release(bad, "a", key)


def test_a_changed_cell_gets_fresh_noise_and_others_keep_theirs(
    policy: sf.Policy, table: pa.Table, key: sf.Key
) -> None:
    [column] = [name for name in ("n", "c") if policy.columns[name].role != "drop"]
    scheme = policy.fit(table)
    before = scheme.release(table, "b", key).column(column).to_pylist()
    values = table.column(column).to_pylist()
    if column == "n":
        changed = [None if v is None else v + 0.25 for v in values]
        after = scheme.release(table.set_column(1, "n", pa.array(changed)), "b", key).column("n").to_pylist()
        moves = [a - b for a, b in zip(after, before, strict=True) if a is not None and b is not None]
        assert np.std(moves) > 1
        assert len(set(moves)) > 2500
    fewer = scheme.release(table.slice(1000), "b", key).column(column).to_pylist()
    assert fewer == before[1000:]
    grown = scheme.release(
        pa.concat_tables([table, table.set_column(0, "id", pa.array(range(10_000, 13_000)))]), "b", key
    )
    assert grown.column(column).to_pylist()[:3000] == before


def test_it_tells_fresh_randomness_and_drift(policy: sf.Policy, table: pa.Table, key: sf.Key) -> None:
    """`draws` changes for a row exactly when its value does; the same data have not drifted."""
    scheme = policy.fit(table)
    [part] = scheme.schemes
    [name] = part.columns
    rows = table["id"].to_numpy().astype(np.uint64)
    [batch] = table.combine_chunks().to_batches()
    before = part.draws(batch, rows, key)
    assert len(np.unique(before)) == len(rows)
    order = np.random.default_rng(1).permutation(len(rows))
    assert (part.draws(batch.take(pa.array(order)), rows[order], key) == before[order]).all()
    moved = batch.column(name).to_pylist()[1:] + batch.column(name).to_pylist()[:1]
    other = pa.record_batch({**{n: batch.column(n) for n in batch.schema.names}, name: pa.array(moved)})
    same = np.array([a == b for a, b in zip(moved, batch.column(name).to_pylist(), strict=True)])
    assert ((part.draws(other, rows, key) == before) == same).all()
    assert part.drift(policy.fit(table).schemes[0]) == pytest.approx(1.0)


def test_drift_is_a_ratio_of_variances(table: pa.Table) -> None:
    policy = sf.Policy.loads(
        'dataset = "d"\ndefault = "drop"\n[levels]\na = 0.5\n[columns]\nid = "id"\nn = "gaussian"\nm = "gaussian"\n'
    )
    draw = np.random.default_rng(2)
    base = draw.normal(size=(2, 3000))
    fits = []
    for spread in (1.0, 3.0):
        columns = {"id": np.arange(3000), "n": base[0] + 10 * base[1], "m": base[1] * 10 - spread * base[0]}
        fits.append(policy.fit(pa.table(columns)).schemes[0])
    truth = [np.cov(np.array([base[0] + 10 * base[1], base[1] * 10 - s * base[0]])) for s in (1.0, 3.0)]
    worst = max(np.linalg.eigvals(np.linalg.solve(truth[0], truth[1])).real)
    assert worst > 3  # each column alone hardly changes; their difference does
    assert fits[0].drift(fits[1]) == pytest.approx(worst, rel=0.02)
    line = {"id": np.arange(3000), "n": base[1], "m": 2 * base[1]}  # noise on a line does not cover a plane
    assert policy.fit(pa.table(line)).schemes[0].drift(fits[1]) > 1e3
