"""The path tree: covariances of the Wiener process, rounding of levels, and the number of draws."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import LevelError
from sfumato.keys.path import Node, PathTree, Point, Slot, ancestry


def _tree(*fidelities: float, digits: int = 8) -> PathTree:
    return PathTree(sf.Ladder.of({f"l{i}": f for i, f in enumerate(fidelities)}), digits)


def terms(node: Node | None) -> dict[Slot, float]:
    """The path at a node as a sum of standard normals."""
    if node is None:
        return {}
    parts = {slot: (1 - node.weight) * c for slot, c in terms(node.left).items()}
    for slot, c in terms(node.right).items():
        parts[slot] = parts.get(slot, 0.0) + node.weight * c
    return {**parts, node.slot: node.size}


def _covariance(one: Point, other: Point) -> float:
    weights = terms(other.node)
    return sum(c * weights.get(slot, 0.0) for slot, c in terms(one.node).items())


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 30, 100])
def test_declared_levels_are_exact_and_need_few_draws(count: int) -> None:
    fidelities = np.linspace(0.95, 0.05, count).tolist()
    tree = _tree(*fidelities)
    for fidelity in fidelities:
        point = tree.locate(sf.Level(fidelity))
        assert point.level.fidelity == fidelity
        assert len(ancestry([point.node])) <= 1 + math.ceil(math.log2(max(count, 2)))


def test_all_points_have_the_covariance_of_a_wiener_process() -> None:
    """`Cov(W(s), W(t)) = min(s, t)`, the corner-wave matrix, for declared levels, gaps, below and above the ladder."""
    tree = _tree(0.8, 0.5, 0.2)
    points = [tree.locate(sf.Level(f)) for f in (0.999, 0.97, 0.9, 0.8, 0.79, 0.6, 0.5, 0.33, 0.2, 0.19, 0.05, 1e-4)]
    for point in points:
        assert _covariance(point, point) == pytest.approx(point.node.time, rel=1e-12)
    for one, other in combinations(points, 2):
        assert _covariance(one, other) == pytest.approx(min(one.node.time, other.node.time), rel=1e-12)


def test_a_level_is_rounded_to_no_more_fidelity_and_rounding_is_idempotent() -> None:
    tree = _tree(0.8, 0.5, 0.2)
    for fidelity in np.linspace(0.01, 0.99, 500):
        point = tree.locate(sf.Level(fidelity))
        assert point.level.fidelity <= fidelity * (1 + 1e-9)
        assert point.node.time <= sf.Level(fidelity).noise * (1 + 1 / 64)
        again = tree.locate(point.level)
        assert (again.level, terms(again.node)) == (point.level, terms(point.node))


def test_more_digits_are_more_precise_and_share_the_coarser_grid() -> None:
    coarse, fine = _tree(0.8, 0.2, digits=4), _tree(0.8, 0.2, digits=12)
    requested = sf.Level(0.456)
    assert requested.fidelity - fine.locate(requested).level.fidelity < 1e-3
    shared = coarse.locate(requested)
    assert terms(fine.locate(shared.level).node) == terms(shared.node)


def test_a_level_far_from_the_ladder_is_refused() -> None:
    with pytest.raises(LevelError, match="octaves"):
        _tree(0.5).locate(sf.Level(1e-14))


def test_the_nearest_level_is_at_its_true_distance() -> None:
    tree = _tree(0.9, 0.8, 0.5, 0.45, 0.2)
    times = [level.noise for level in tree.declared]
    for time in (*times, 0.01, 0.6, 1.1, 3.0, 9.0):
        others = [other for other in (0.0, *times) if abs(other - time) > 1e-6]
        assert tree.distance_to_nearest(time) == pytest.approx(min(abs(other - time) for other in others))
        assert tree.distance_to_nearest(time * (1 + 1e-12)) == pytest.approx(tree.distance_to_nearest(time))


@pytest.mark.parametrize(
    ("fidelity", "draws"),
    [
        (0.95, {"halving/0 0": 0.125, "halving/0 2": 0.03125, "below/2/ 0": 0.046875, "below/2/ 2": 0.0546875}),
        (0.6, {"ladder/ 0": 1.0, "ladder/ 1": 0.25, "gap/0/ 0": 0.625, "gap/0/ 2": 0.8125}),
        (0.05, {"ladder/ 2": 4.0, "doubling/0 0": 8.0, "doubling/0 2": 32.0, "above/2/ 0": 24.0, "above/2/ 1": 20.0}),
    ],
)
def test_a_level_draws_what_it_drew_in_earlier_versions(fidelity: float, draws: dict[str, float]) -> None:
    nodes = ancestry([_tree(0.8, 0.5, 0.2, digits=2).locate(sf.Level(fidelity)).node])
    found = {f"{node.slot[0]} {node.slot[1]}": node.time for node in nodes}
    assert len(found) == len(nodes)
    assert {slot: found[slot] for slot in draws} == pytest.approx(draws)
