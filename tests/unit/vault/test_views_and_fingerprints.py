"""Views of a table, and fingerprinted levels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import GrantError, PolicyError, SourceError
from sfumato.keys.path import PathTree
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables.formats import BATCH
from sfumato.tables.view import View
from sfumato.vault.fingerprints import BAND, DIGITS, fingerprinted, random_offset, without_fingerprint
from sfumato.vault.likelihood_ratio import bridge

BATCHES = pa.record_batch(
    {"town": ["A", None, "B", "A"], "year": [2019, 2020, None, 2021], "free": [True, False, True, None]}
)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("town == 'A'", [0, 3]),
        ("town != 'A'", [2]),
        ("not town == 'A'", [2]),
        ("year >= 2020 and town == 'A'", [3]),
        ("year < 2020 or town == 'B'", [0, 2]),
        ("town in ['A', 'B'] and year > -5", [0, 3]),
        ("town not in ('A',)", [2]),
        ("not (town in ['A'])", [2]),
        ("free == True", [0, 2]),
        ("year <= 2019.5", [0]),
        ("town == 'Z'", []),
    ],
)
def test_conditions(where: str, rows: list[int]) -> None:
    found = View(None, where).filter(BATCHES)
    assert found.equals(BATCHES.take(pa.array(rows, pa.int64())))


def test_a_condition_of_wrong_types() -> None:
    with pytest.raises(SourceError, match=r"must fit the types of its columns: year \(int64\)"):
        View(None, "year == 'x'").filter(BATCHES)
    with pytest.raises(PolicyError, match="at least one column"):
        View(())


def test_rows_keep_their_noise_in_any_view_of_a_table_without_ids(key: sf.Key) -> None:
    """Without an id column, the row number is the id, also where the view leaves out earlier rows."""
    rows = 2 * BATCH + 100
    draw = np.random.default_rng(1)
    table = pa.table({"half": np.arange(rows) % 3, "n": draw.normal(size=rows)})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nhalf = "keep"\nn = "gaussian"\n')
    scheme = policy.fit(table)
    full = scheme.release(table, "a", key)
    part = scheme.with_view(View(("n",), "half == 1")).release(table, "a", key)
    expected = full["n"].to_numpy()[full["half"].to_numpy() == 1]
    assert (part["n"].to_numpy() == expected).all()
    sf.Manifest.of(part).verify(part)
    assert sf.Manifest.of(part).scheme == sf.Manifest.of(full).scheme


def test_a_narrowed_model_is_the_marginal() -> None:
    noise = GaussianNoise(
        ("a", "b", "c"),
        ((1.0,), (2.0, 5.0), (3.0, 7.0, 9.0)),
        1.0,
        (1.0, 2.0, 3.0),
        (0.1, 0.2, 0.3),
        (None,) * 3,
        (0.0,) * 3,
        True,
    )
    part = noise.narrowed(["c", "a"])
    assert isinstance(part, GaussianNoise)
    assert (part.columns, part.covariance, part.scale) == (("a", "c"), ((1.0,), (3.0, 9.0)), (1.0, 3.0))
    pair = UniformReplacement(("x", "y"), ({"count": 2}, {"count": 5}), 0.4, False, True)
    assert pair.narrowed(["y"]) == UniformReplacement(("y",), ({"count": 5},), 0.4, False, True)
    assert noise.narrowed(["q"]).columns == ()


@pytest.mark.parametrize("levels", [(0.8, 0.5, 0.2), (0.99, 0.01), (0.5,), (0.5, 0.4999)])
def test_fingerprints_are_distinct_and_slightly_below_the_level(levels: tuple[float, ...]) -> None:
    ladder = sf.Ladder.of({f"l{i}": level for i, level in enumerate(levels)})
    tree = PathTree(ladder, DIGITS)
    for level in ladder:
        found = [fingerprinted(ladder, level, number) for number in range(300)]
        assert [tree.locate(one).level for one in found] == found  # they are on the grid, exactly
        assert len(set(found)) == len(found)
        below = [other for other in ladder if other < level]
        for one in found:
            assert one < level
            assert one.noise <= level.noise * (1 + 1 / BAND)
            assert not below or one > below[0]
        times = np.sort([one.noise for one in found[:127]])
        assert np.diff(times).min() == pytest.approx(np.diff(times).max(), rel=1e-3)  # evenly spaced


def test_after_a_restoration_numbers_are_new_and_still_fit_between_levels_that_are_far_apart() -> None:
    offsets = [random_offset() for _ in range(200)]
    assert {offset.bit_length() for offset in offsets} == {DIGITS // 2}
    assert len(set(offsets)) > 150  # of 32,768; a false alarm has a probability below 1e-90
    ladder = sf.Ladder({"a": sf.Level(0.99), "b": sf.Level(0.05)})
    assert fingerprinted(ladder, ladder.level("a"), 2**16 - 2).fidelity < 0.99


def test_the_number_of_fingerprints_is_limited() -> None:
    wide, wider = (sf.Ladder.of({"a": 1 - rest, "b": rest}) for rest in (0.001, 0.000001))
    assert fingerprinted(wide, sf.Level(0.999), 126) < sf.Level(0.999)
    with pytest.raises(GrantError, match="no more than 127 recipients can have fingerprints"):
        fingerprinted(wide, sf.Level(0.999), 127)
    with pytest.raises(GrantError, match="too close"):
        fingerprinted(sf.Ladder.of({"a": 0.5, "b": 0.49999}), sf.Level(0.5), 0)
    with pytest.raises(GrantError, match="no more than 0 recipients"):
        fingerprinted(wider, sf.Level(1 - 0.000001), 0)


@pytest.mark.parametrize("requested", [0.5001, 0.499, 0.497, 0.496, 0.37, 0.79, 0.05])
def test_a_numeric_level_is_no_fingerprint(requested: float) -> None:
    ladder = sf.Ladder.of({"a": 0.8, "b": 0.5, "c": 0.2})
    given = without_fingerprint(ladder, sf.Level(requested))
    assert given <= sf.Level(requested)
    assert PathTree(ladder, DIGITS).locate(given).level.fidelity == pytest.approx(given.fidelity, rel=1e-12)
    assert not {given} & {fingerprinted(ladder, level, number) for level in ladder for number in range(2000)}


def test_the_bridge_between_neighbours() -> None:
    weights, v = bridge([0.0, 1.0, 1.5, 3.0], 2)
    assert weights.tolist() == [0.0, 0.75, 0.0, 0.25]
    assert v == pytest.approx(0.5 * 1.5 / 2)
    weights, v = bridge([0.0, 1.0, 1.5], 2)
    assert (weights.tolist(), v) == ([0.0, 1.0, 0.0], 0.5)
