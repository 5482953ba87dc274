"""What lies behind noise: humps to start from, sheared noise, and classes that change across few planes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, norm
from tests import offices

import sfumato as sf
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.mixture_density import MixtureDensity, simplest, widened
from sfumato.kernels.noise_channel import ShearedChannel
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.kernels.uniform_density import UniformDensity, flattest
from sfumato.mining import DecisionTree, Density
from sfumato.mining.features.features import Feature, Features, TrainingSet, lesson
from sfumato.mining.trees.feature_selection import _GROUPS, _alike, _telling, choose
from sfumato.mining.trees.hyperplanes import PRICES, Sight, _Search
from sfumato.mining.trees.joint_density import cut

Array = Any

NOISE = np.array([[0.04, -0.02, 0.0], [-0.02, 0.03, 0.01], [0.0, 0.01, 0.05]])


def grid(deviation: float, bins: int = 60) -> Grid:
    return Grid(np.zeros(1), np.ones(1), (bins,), np.array([[deviation**2]]), np.array([0.25]))


def expected(of: Grid, rows: float, weights: Array, tops: Array, width: float) -> tuple[Array, Array, Array, Array]:
    """The chances of some humps, the counts they make likely, and the middles of the bins of both."""
    ends, wide = of.edges(0), of.edges(0, wide=True)
    middles, seen = (ends[1:] + ends[:-1]) / 2, (wide[1:] + wide[:-1]) / 2
    shapes = norm.pdf((middles[:, None] - tops) / width)
    chances = (shapes / shapes.sum(axis=0)) @ weights
    return chances, rows * (of.column(0) @ chances), middles, seen


@pytest.mark.parametrize("tops", [[], [0.4], [0.3, 0.7], [0.2, 0.5, 0.8]])
def test_as_many_humps_are_found_as_there_are(tops: list[float]) -> None:
    """From the counts that are likeliest: nothing is left to chance."""
    of = grid(0.1)
    weights = np.arange(1, len(tops) + 1) / max(sum(range(1, len(tops) + 1)), 1)
    chances, counts, middles, seen = expected(of, 1e5, weights, np.array(tops), 0.06)
    if not tops:
        chances = np.full(60, 1 / 60)
        counts = 1e5 * (of.column(0) @ chances)
    found = simplest(of.column(0), counts, middles, seen, 0.01)
    assert found.count == len(tops)
    assert np.abs(found.chances() - chances).sum() / 2 < 0.05  # it is a little wider, and 2 % are flat


def test_the_slopes_of_humps_are_their_slopes() -> None:
    places, numbers = np.linspace(0, 1, 40), np.array([0.4, -0.3, 0.2, 0.5, 0.9, np.log(0.1)])
    _, slopes = MixtureDensity(places, numbers, 0.01).slopes()
    for i in range(len(numbers)):
        step = np.zeros(len(numbers))
        step[i] = 1e-6
        ends = [MixtureDensity(places, numbers + sign * step, 0.01).slopes()[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(slopes[:, i], abs=1e-6)


def test_a_width_grows_by_its_standard_error() -> None:
    """Half of one in the logarithm of the likelihood, wherever the counts tell the width."""
    of = grid(0.25)
    _, counts, middles, seen = expected(of, 1e4, np.ones(2) / 2, np.array([0.25, 0.75]), 0.1)
    exact = MixtureDensity(middles, np.array([0.0, 0.25, 0.75, np.log(0.1)]), 0.01)
    wider = widened(of.column(0), counts, exact)
    lost = [counts @ np.log(of.column(0) @ humps.slopes()[0]) for humps in (exact, wider)]
    assert wider.numbers[-1] > exact.numbers[-1] + 0.02
    assert lost[0] - lost[1] == pytest.approx(0.5, abs=0.15)
    assert simplest(of.column(0), counts, middles, seen, 0.01).numbers[-1] > exact.numbers[-1] + 0.02


def test_a_start_that_fits_is_where_the_iteration_stays() -> None:
    """Mixing is towards the start: where the counts agree with it nothing moves, and mass is neither won nor lost."""
    of = grid(0.2)
    chances, counts, _, _ = expected(of, 1e5, np.ones(2) / 2, np.array([0.3, 0.7]), 0.08)
    blur = NoiseChannel(of, mixing=0.05)
    kept, _ = reconstruct(blur, counts, 200, start=chances)
    assert kept == pytest.approx(chances, abs=1e-9)
    forgotten, _ = reconstruct(blur, counts, 200)
    assert np.abs(forgotten - chances).sum() / 2 > 0.05
    drawn = np.asarray(np.random.default_rng(1).poisson(counts), np.float64)
    assert blur.step(chances, drawn, chances).sum() == pytest.approx(1)


@pytest.mark.parametrize("ends", [(12.0, 48.0), (3.4, 29.7), (0.0, 20.0), (36.0, 48.5)])
def test_a_plateau_is_found_between_its_ends(ends: tuple[float, float]) -> None:
    """And is what the iteration starts from; a little wider, as its width is known with an error only."""
    of, true = grid(0.15), UniformDensity(60, ends)
    counts = 1e5 * (of.column(0) @ true._level())
    found = flattest(of.column(0), counts)
    assert found.ends == pytest.approx(ends, abs=1.5)
    assert found.chances().sum() == pytest.approx(1)
    start = InitialDensity(of, counts).of(counts[None])
    assert start is not None
    assert np.abs(start[0] - true.chances()).sum() / 2 < 0.06
    middles, seen = ((e[1:] + e[:-1]) / 2 for e in (of.edges(0), of.edges(0, wide=True)))
    humps = simplest(of.column(0), counts, middles, seen, 0.06).chances()  # the planted fault: no plateaus
    assert np.abs(humps - true.chances()).sum() / 2 > 0.08


def test_a_plateau_grows_by_the_standard_error_of_its_width() -> None:
    of, exact = grid(0.25), UniformDensity(60, (20.0, 40.0))
    counts = 1e4 * (of.column(0) @ exact._level())
    wider = flattest(of.column(0), counts)
    assert wider.ends[1] - wider.ends[0] > 21
    lost = exact.likelihood(of.column(0), counts) - wider.likelihood(of.column(0), counts)
    assert lost == pytest.approx(0.5, abs=0.15)


def test_a_hump_is_not_taken_for_a_plateau() -> None:
    """Even a triangle behind full noise, which is as far from a normal hump as from a plateau."""
    of, triangle = grid(0.25), 1 - np.abs(np.linspace(-1, 1, 61)[1:] - 1 / 60)
    for rows in (1e4, 1e5):
        counts = rows * (of.column(0) @ (triangle / triangle.sum()))
        start = InitialDensity(of, counts).of(counts[None])
        assert start is not None
        assert start[0].max() > 1.5 * np.median(start[0])


def test_fewer_values_are_smoothed_more() -> None:
    of = grid(0.2)
    _, counts, _, _ = expected(of, 1.0, np.ones(1), np.array([0.5]), 0.1)
    assert (
        InitialDensity(of, 1e3 * counts).mixing
        > InitialDensity(of, 1e5 * counts).mixing
        > InitialDensity(of, 1e7 * counts).mixing
    )


def misfit(shear: ShearedChannel, values: Array, seen: Array) -> float:
    """How far off the counts are where at least 50 are expected, in their deviations, at most."""
    counts = np.bincount(np.ravel_multi_index(tuple(shear.places(values).T), shear.shape), minlength=seen.size)
    likely = seen.ravel() * len(values)
    apart = np.abs(counts - likely)[likely > 50] / np.sqrt(likely[likely > 50])
    return float(apart.max())


def test_sheared_noise_is_the_noise(rng: np.random.Generator) -> None:
    """The chance of every bin, from one cell, against values drawn from it; and both ways are one table."""
    shear = ShearedChannel(np.zeros(3), np.array([1.0, 2.0, 1.0]), 20, NOISE)
    cell = (3, 14, 10)
    chances = np.zeros((20, 20, 20))
    chances[cell] = 1.0
    seen = shear.forward(chances)
    assert seen.sum() == pytest.approx(1)
    drawn = (np.array(cell) + rng.random((400_000, 3))) * [0.05, 0.1, 0.05]
    drawn += rng.multivariate_normal(np.zeros(3), NOISE, 400_000)
    assert misfit(shear, drawn, seen) < 6  # of some hundred bins, in deviations each
    x, y = rng.random((2, 20, 20, 20)), rng.random((2, *shear.shape))
    assert np.sum(shear.forward(x) * y) == pytest.approx(np.sum(x * shear.backward(y)))
    upright = ShearedChannel(np.zeros(3), np.array([1.0, 2.0, 1.0]), 20, np.diag(np.diag(NOISE)))
    assert misfit(upright, drawn, upright.forward(chances)) > 20  # the planted fault


def test_sheared_noise_has_the_density_of_the_noise() -> None:
    """In two columns, the chance of a bin over its area is the normal density, up to the size of bin and cell."""
    noise = NOISE[:2, :2]
    shear = ShearedChannel(np.zeros(2), np.ones(2), 50, noise)
    chances = np.zeros((50, 50))
    chances[25, 25] = 1.0
    found = shear.forward(chances)
    ends = shear._ends
    area = np.diff(ends[0])[:, None] * np.diff(ends[1])
    middles = [(e[1:] + e[:-1]) / 2 for e in ends]
    sheared = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1)
    back = sheared @ np.linalg.inv(shear._shear).T
    density = multivariate_normal([0.51, 0.51], noise).pdf(back)
    inner = (slice(1, -1), slice(1, -1))
    assert np.abs(found / area - density)[inner].max() < 0.06 * density.max()


def test_noise_that_was_rounded_to_nothing_in_a_direction_is_noise_all_the_same() -> None:
    shear = ShearedChannel(np.zeros(2), np.ones(2), 8, np.array([[1.0, 1.001], [1.001, 1.0]]))
    assert shear.forward(np.full((8, 8), 1 / 64)).sum() == pytest.approx(1)


def taught(rows: int, rule: Any, seed: int = 1) -> tuple[TrainingSet, pa.Table]:
    """People of three numbers and a category, their class by a rule, and a copy of half of the truth."""
    draw = np.random.default_rng(seed)
    table = pa.table(
        {
            "a": draw.random(rows),
            "b": draw.random(rows),
            "c": draw.random(rows),
            "ward": draw.choice(list("uvw"), rows),
        }
    )
    classes = rule({name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}, draw)
    table = table.append_column("kind", pa.array(classes))
    columns = "\n".join(f'{name} = {{ role = "gaussian", clip = [0, 1] }}' for name in "abc")
    text = f'dataset = "d"\n[levels]\nl = 0.6\n[columns]\n{columns}\nward = "uniform"\nkind = "keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key())
    return lesson(DecisionTree(), copy, "kind"), copy


def box(of: dict[str, Array], _: np.random.Generator) -> Array:
    return np.where((of["a"] > 0.3) & (of["c"] < 0.6), "in", "out")


def test_the_slope_of_what_is_searched_is_its_slope() -> None:
    known, _ = taught(3000, box)
    sight = Sight.of(known, cut(known, (0, 2, 3), 5))
    search = _Search(sight, 0, 0.06)
    draw = np.random.default_rng(2)
    here, prices = draw.uniform(0.2, 0.8, sight.density.size), [np.float64(3.0)] * 3
    _, slope = search._unlikely(here, prices)  # type: ignore[arg-type]
    for i in (0, 7, 31, 74):
        step = np.zeros(len(here))
        step[i] = 1e-5
        ends = [search._unlikely(here + sign * step, prices)[0] for sign in (1, -1)]  # type: ignore[arg-type]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope[i], rel=1e-3, abs=1e-3)


def test_the_columns_that_tell_are_chosen_and_no_others() -> None:
    known, copy = taught(20_000, box)
    choice = choose(known, 3, 0)
    assert sorted(choice.plan.columns) == [0, 2]
    tree = DecisionTree().fit(copy, "kind").tree_.tree_
    assert {int(column) for column in tree.feature if column >= 0} == {0, 2}


def test_columns_of_very_many_categories_are_not_crossed() -> None:
    """Three of 200 categories each would be eight million cells."""
    draw = np.random.default_rng(3)
    table = pa.table({name: draw.integers(0, 200, 4000).astype(str) for name in "abc"})
    kinds = pa.array(np.where(table.column("a").to_numpy(zero_copy_only=False).astype(int) < 100, "low", "high"))
    table = table.append_column("kind", kinds)
    columns = "\n".join(f'{name} = "uniform"' for name in "abc")
    policy = sf.Policy.loads(f'dataset = "d"\n[levels]\nl = 0.8\n[columns]\n{columns}\nkind = "keep"')
    copy = policy.fit(table).release(table, "l", offices.key())
    choice = choose(lesson(DecisionTree(), copy, "kind"), 3, 0)
    assert 0 in choice.plan.columns
    assert np.prod(choice.plan.shape) <= 200 * 200


def test_what_chance_decides_is_not_taken_for_sure() -> None:
    """A price that is chosen by foretelling: chances of 0.3 and 0.7 stay that, and a smaller price overdoes them."""

    def coin(of: dict[str, Array], draw: np.random.Generator) -> Array:
        return np.where(draw.random(len(of["a"])) < np.where(of["a"] > 0.5, 0.7, 0.3), "yes", "no")

    known, copy = taught(20_000, coin)
    choice = choose(known, 3, 0)
    assert choice.price > PRICES[0]
    ends = pa.table({"a": [0.1, 0.9], "b": [0.5, 0.5], "c": [0.5, 0.5], "ward": ["u", "u"]})
    found = DecisionTree().fit(copy, "kind").predict_proba(ends)[:, 1]
    assert found == pytest.approx([0.3, 0.7], abs=0.12)


def test_what_is_foretold_is_foretold_class_by_class() -> None:
    """With a replaced category on the grid, whose axis must not be taken for the classes'."""
    known, _ = taught(3000, lambda of, _: np.where(of["ward"] == "u", "yes", "no"))
    sight = Sight.of(known, cut(known, (0, 3), 6))
    chances = sight.rough_chances()
    seen = [sight.channel.forward(one * sight.density) / sight.channel.forward(sight.density) for one in chances]
    expected = sum(float((counts * np.log(one)).sum()) for counts, one in zip(sight.counts, seen, strict=True))
    assert sight.likelihood(chances) == pytest.approx(expected)
    assert np.sum(seen, axis=0) == pytest.approx(1)


def test_a_rare_class_is_learnt() -> None:
    """One record of a hundred, told by two columns together: accuracy alone would learn nothing."""

    def corner(of: dict[str, Array], _: np.random.Generator) -> Array:
        return np.where((of["a"] > 0.9) & (of["b"] > 0.9), "rare", "usual")

    known, copy = taught(20_000, corner)
    assert sorted(choose(known, 3, 0).plan.columns) == [0, 1]
    ends = pa.table({"a": [0.97, 0.3], "b": [0.97, 0.3], "c": [0.5, 0.5], "ward": ["u", "u"]})
    found = DecisionTree().fit(copy, "kind").predict_proba(ends)[:, 0]
    assert found[0] > 10 * max(found[1], 0.005)


def test_three_classes_and_a_replaced_category() -> None:
    def rule(of: dict[str, Array], _: np.random.Generator) -> Array:
        return np.where(of["b"] > 0.6, "top", np.where(of["ward"] == "u", "left", "right"))

    _, copy = taught(30_000, rule)
    miner = DecisionTree().fit(copy, "kind")
    draw = np.random.default_rng(9)
    fresh = {name: draw.random(2000) for name in "abc"} | {"ward": draw.choice(list("uvw"), 2000)}
    assert np.mean(miner.predict(pa.table(fresh)) == rule(fresh, draw)) > 0.9
    assert miner.predict_proba(pa.table(fresh)).sum(axis=1) == pytest.approx(1)


def test_how_many_columns_go_together_must_be_one_to_three() -> None:
    _, copy = taught(500, box)
    for wrong in (4, 0, 2.0):
        with pytest.raises(ValueError, match="1 to 3 columns"):
            DecisionTree(together=wrong).fit(copy, "kind")  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [2, 5, 3000])
def test_few_values_and_ends_far_away(rows: int) -> None:
    """Warnings are errors here: neither overflows, nor what is likelier than nothing."""
    draw = np.random.default_rng(rows)
    table = pa.table({"x": draw.normal(50e3, 8e3, rows), "kind": np.where(np.arange(rows) % 2, "a", "b")})
    text = 'dataset = "d"\n[levels]\nl = 0.5\n[columns]\nx = { role = "gaussian", clip = [0, 1000000] }\nkind = "keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key())
    for bins in (1, 2, 100):
        assert Density(columns=["x"], bins=bins).fit(copy).probabilities_.sum() == pytest.approx(1)
    assert len(DecisionTree().fit(copy, "kind").predict(table)) == rows


def test_of_many_columns_every_group_is_looked_at_once() -> None:
    draw = np.random.default_rng(6)
    values = draw.normal(size=(4000, 14))
    labels = ((values[:, 3] > 0) & (values[:, 7] > 0) & (values[:, 1] > 0)).astype(np.int64)
    features = Features(tuple(Feature(str(i)) for i in range(14)), np.zeros((14, 14)), False)
    found = _telling(TrainingSet(features, values, np.array([0, 1]), labels), 3)
    assert set(found[0]) == {1, 3, 7}
    assert len({tuple(sorted(group)) for group in found}) == len(found) == _GROUPS


def test_how_strongly_columns_hang_together_is_told_through_the_noise() -> None:
    """Of the original: the copy's own columns hang together by their noise as well."""
    draw = np.random.default_rng(4)
    shared = draw.normal(size=30_000)
    table = pa.table(
        {"a": shared, "b": 0.6 * shared + 0.8 * draw.normal(size=30_000), "kind": draw.random(30_000) < 0.5}
    )
    text = 'dataset = "d"\n[levels]\nl = 0.3\n[columns]\na = "gaussian"\nb = "gaussian"\nkind = "keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key())
    known = lesson(DecisionTree(), copy, "kind")
    assert _alike(known) == pytest.approx(np.array([[0.0, 0.6], [0.6, 0.0]]), abs=0.05)
    known = replace(known, features=replace(known.features, noise=np.diag(np.diag(known.features.noise))))
    assert _alike(known)[0, 1] > 0.9  # the planted fault: noise that is not taken to be shaped
