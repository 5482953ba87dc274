"""Properties that hold for all inputs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.keys.path import PathTree, Slot, ancestry
from sfumato.tables import content_digest as digest
from sfumato.tables.source import Source

settings.register_profile("ours", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("ours")

KEY = sf.Key.from_bytes(bytes(range(32)))
FIDELITIES = st.floats(0.01, 0.99)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@st.composite
def ladders(draw: st.DrawFn) -> sf.Ladder:
    rungs = draw(st.lists(st.integers(1, 99), min_size=1, max_size=8, unique=True))
    return sf.Ladder.of({f"l{i}": r / 100 for i, r in enumerate(sorted(rungs, reverse=True))})


@st.composite
def policies(draw: st.DrawFn) -> sf.Policy:
    options: dict[str, list[dict[str, Any]]] = {
        "keep": [{}],
        "drop": [{}],
        "id": [{}, {"publish": False}],
        "gaussian": [{}, {"clip": [0, 2.5]}, {"integer": True, "scale": 3}, {"spread": 0.5}],
        "uniform": [{}, {"domain": ["a", "b"]}, {"nulls": "perturb"}, {"joint": "g"}, {"domain": {"min": 0, "max": 4}}],
    }
    from sfumato.policy.document import Column

    columns = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)):
        role = draw(st.sampled_from(sorted(options)))
        columns[name] = Column(role, draw(st.sampled_from(options[role])))
    return sf.Policy(draw(NAMES), draw(ladders()), columns, draw(st.integers(1, 20)))


@given(policies())
def test_policies_round_trip(policy: sf.Policy) -> None:
    assert sf.Policy.loads(policy.dumps()) == policy
    assert sf.Policy.loads(policy.dumps()).digest() == policy.digest()


@given(ladders(), FIDELITIES, FIDELITIES)
def test_any_two_levels_are_ordered_on_one_path(ladder: sf.Ladder, one: float, other: float) -> None:
    """What is given is never more faithful than asked, keeps the order, and has Brownian covariance."""
    tree = PathTree(ladder)
    a, b = tree.locate(sf.Level(max(one, other))), tree.locate(sf.Level(min(one, other)))
    assert a.level >= b.level
    assert a.level.fidelity <= max(one, other) * (1 + 1e-9)
    values: dict[Slot, dict[Slot, float]] = {}
    for node in ancestry([a.node, b.node]):  # each node as a sum of standard normals
        parts = {node.slot: node.size}
        for end, weight in ((node.left, 1 - node.weight), (node.right, node.weight)):
            for slot, c in values[end.slot].items() if end else ():
                parts[slot] = parts.get(slot, 0.0) + weight * c
        values[node.slot] = parts
    one_path, other_path = values[a.node.slot], values[b.node.slot]
    together = sum(c * other_path.get(slot, 0.0) for slot, c in one_path.items())
    assert np.isclose(together, a.node.time, rtol=1e-9)


TABLES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.floats(-1e6, 1e6).map(lambda number: number if abs(number) > 1e-90 else 0.0)),
        st.one_of(st.none(), st.sampled_from("abcd")),
    ),
    min_size=0,
    max_size=30,
)
POLICY = sf.Policy.loads(
    'dataset = "properties"\norder = "keep"\n[levels]\na = 0.7\nb = 0.3\n[columns]\nid = "id"\nn = "gaussian"\n'
    'c = { role = "uniform", domain = ["a", "b", "c", "d"] }'
)


def _table(rows: list[tuple[float | None, str | None]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "n": pa.array([n for n, _ in rows], pa.float64()),
            "c": pa.array([c for _, c in rows], pa.string()),
        }
    )


@given(TABLES, st.lists(st.integers(0, 30), max_size=4), FIDELITIES, st.randoms(use_true_random=False))
def test_splitting_and_shuffling_change_nothing(
    rows: list[tuple[float | None, str | None]], cuts: list[int], level: float, shuffler: Any
) -> None:
    table = _table(rows)
    bounds = [0, *sorted(min(c, len(rows)) for c in cuts), len(rows)]
    pieces = [table.slice(a, b - a) for a, b in pairwise(bounds)]
    scheme = POLICY.fit(table)
    assert POLICY.fit(pa.concat_tables(pieces)).digest() == scheme.digest()
    whole = scheme.release(table, level, KEY)
    assert pa.concat_tables(scheme.release(piece, level, KEY) for piece in pieces).equals(whole)
    indices = list(range(len(rows)))
    shuffler.shuffle(indices)
    order = pa.array(indices, pa.int64())
    assert scheme.release(table.take(order), level, KEY).equals(whole.take(order))


@given(TABLES, FIDELITIES, FIDELITIES)
def test_levels_do_not_depend_on_which_were_asked_before(
    rows: list[tuple[float | None, str | None]], one: float, other: float
) -> None:
    table = _table(rows)
    scheme = POLICY.fit(table)
    first = [scheme.release(table, level, KEY) for level in (one, other)]
    then = [scheme.release(table, level, KEY) for level in (other, one)]
    together = scheme.release_levels(table, [other, one], KEY)
    assert first[0].equals(then[1], check_metadata=True)
    assert first[0].equals(together[1], check_metadata=True)


@given(TABLES, st.integers(0, 29))
def test_the_digest_sees_every_cell(rows: list[tuple[float | None, str | None]], index: int) -> None:
    def digest_of(table: pa.Table) -> str:
        return digest.of_batches(map(digest.of_batch, Source.of(table).batches()))

    table = _table(rows)
    chunked = pa.concat_tables([table.slice(0, len(rows) // 2), table.slice(len(rows) // 2)])
    assert digest_of(table) == digest_of(chunked)
    if index < len(rows):
        n, c = rows[index]
        for changed in ((None if n is not None else 0.0, c), (n, None if c is not None else "a")):
            assert digest_of(_table([*rows[:index], changed, *rows[index + 1 :]])) != digest_of(table)
