"""Deconvolution: initial densities, EM, correlated noise channels, and decision trees from deconvolved densities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multivariate_normal, norm
from tests import offices

import sfumato as sf
from sfumato.errors import MiningError
from sfumato.kernels.deconvolution import deconvolved_density, posterior_mean
from sfumato.kernels.initial_density import InitialDensity
from sfumato.kernels.mixture_density import MixtureDensity, Parameters, fit_mixture, widened
from sfumato.kernels.noise_channel import ShearedChannel
from sfumato.kernels.reconstruction import Grid, NoiseChannel, reconstruct
from sfumato.kernels.uniform_density import UniformDensity, fit_uniform
from sfumato.mining import DecisionTree, Density
from sfumato.mining.features.features import Feature, Features, TrainingSet, training_set
from sfumato.mining.trees import hyperplanes
from sfumato.mining.trees.feature_selection import (
    _GROUPS,
    _correlations,
    _discriminating_groups,
    select_features,
)
from sfumato.mining.trees.hyperplanes import (
    PENALTIES,
    GridClassCounts,
    _PenalisedFits,
    class_probabilities,
    rough_class_probabilities,
)
from sfumato.mining.trees.joint_density import joint_grid

Array = Any

NOISE = np.array([[0.04, -0.02, 0.0], [-0.02, 0.03, 0.01], [0.0, 0.01, 0.05]])


def grid(deviation: float, bins: int = 60) -> Grid:
    return Grid(np.zeros(1), np.ones(1), (bins,), np.array([[deviation**2]]), np.array([0.25]))


def mixture(of: Grid, weights: Array, means: Array, width: float) -> Array:
    """The probabilities of the bins under a Gaussian mixture."""
    components = norm.pdf((of.centres(0)[:, None] - means) / width)
    probabilities: Array = (components / components.sum(axis=0)) @ weights
    return probabilities


def expected_counts(of: Grid, rows: float, probabilities: Array) -> Array:
    """The expected histogram of noisy values."""
    return rows * (of.channel_matrix(0) @ probabilities)


def fitted(of: Grid, counts: Array, least_width: float = 0.01) -> MixtureDensity:
    return fit_mixture(of.channel_matrix(0), counts, of.centres(0), of.centres(0, padded=True), least_width)


@pytest.mark.parametrize("means", [[], [0.4], [0.3, 0.7], [0.2, 0.5, 0.8]])
def test_the_number_of_components_is_found(means: list[float]) -> None:
    """From expected counts, so that the result does not depend on a draw."""
    of, count = grid(0.1), len(means)
    weights = np.arange(1, count + 1) / max(sum(range(1, count + 1)), 1)
    probabilities = mixture(of, weights, np.array(means), 0.06) if means else np.full(60, 1 / 60)
    found = fitted(of, expected_counts(of, 1e5, probabilities))
    assert found.count == count
    # the fit is a little wider, and 2 % of it is spread uniformly
    assert np.abs(found.probabilities() - probabilities).sum() / 2 < 0.05


def test_parameters_are_packed_and_unpacked_by_name() -> None:
    vector = np.array([0.4, -0.3, 0.2, 0.5, 0.9, np.log(0.1)])
    parameters = Parameters.unpack(vector)
    assert parameters.count == 3
    assert parameters.logits.tolist() == [0.4, -0.3]
    assert parameters.means.tolist() == [0.2, 0.5, 0.9]
    assert parameters.width == pytest.approx(0.1)
    assert parameters.weights() == pytest.approx(np.exp([0, 0.4, -0.3]) / np.exp([0, 0.4, -0.3]).sum())
    assert np.array_equal(parameters.pack(), vector)


def test_the_gradient_of_a_mixture_is_its_numerical_derivative() -> None:
    vector = np.array([0.4, -0.3, 0.2, 0.5, 0.9, np.log(0.1)])
    density = MixtureDensity(np.linspace(0, 1, 40), Parameters.unpack(vector), 0.01)
    _, gradient = density.mixture_and_gradient()
    for i in range(len(vector)):
        step = np.zeros(len(vector))
        step[i] = 1e-6
        shifted = [replace(density, parameters=Parameters.unpack(vector + sign * step)) for sign in (1, -1)]
        above, below = (one.mixture_and_gradient()[0] for one in shifted)
        assert (above - below) / 2e-6 == pytest.approx(gradient[:, i], abs=1e-6)


def test_a_uniform_density_without_components_has_no_gradient() -> None:
    with pytest.raises(ValueError, match="no parameters"):
        MixtureDensity(np.linspace(0, 1, 40), None, 0.01).mixture_and_gradient()


def log_width(density: MixtureDensity) -> float:
    assert density.parameters is not None
    return density.parameters.log_width


def test_a_width_grows_by_its_standard_error() -> None:
    """This costs ½ in log-likelihood, wherever the counts determine the width."""
    of = grid(0.25)
    counts = expected_counts(of, 1e4, mixture(of, np.ones(2) / 2, np.array([0.25, 0.75]), 0.1))
    parameters = Parameters(np.zeros(1), np.array([0.25, 0.75]), float(np.log(0.1)))
    exact = MixtureDensity(of.centres(0), parameters, 0.01)
    wider = widened(of.channel_matrix(0), counts, exact)
    values = [counts @ np.log(of.channel_matrix(0) @ one.mixture_and_gradient()[0]) for one in (exact, wider)]
    assert log_width(wider) > log_width(exact) + 0.02
    assert values[0] - values[1] == pytest.approx(0.5, abs=0.15)
    assert log_width(fitted(of, counts)) > log_width(exact) + 0.02


def test_an_initial_density_that_fits_is_a_fixed_point() -> None:
    """Smoothing is towards the initial density: if the counts agree with it nothing changes, and mass is conserved."""
    of = grid(0.2)
    probabilities = mixture(of, np.ones(2) / 2, np.array([0.3, 0.7]), 0.08)
    counts = expected_counts(of, 1e5, probabilities)
    channel = NoiseChannel(of, smoothing=0.05)
    unchanged, _ = reconstruct(channel, counts, 200, initial=probabilities)
    assert unchanged == pytest.approx(probabilities, abs=1e-9)
    from_uniform, _ = reconstruct(channel, counts, 200)
    assert np.abs(from_uniform - probabilities).sum() / 2 > 0.05
    drawn = np.asarray(np.random.default_rng(1).poisson(counts), np.float64)
    assert channel.step(probabilities, drawn, probabilities).sum() == pytest.approx(1)


@pytest.mark.parametrize("ends", [(12.0, 48.0), (3.4, 29.7), (0.0, 20.0), (36.0, 48.5)])
def test_the_ends_of_a_uniform_density_are_found(ends: tuple[float, float]) -> None:
    """It becomes the initial density, a little wider, as its width is estimated with an error."""
    of, true = grid(0.15), UniformDensity(60, ends)
    counts = expected_counts(of, 1e5, true.interval_probabilities())
    found = fit_uniform(of.channel_matrix(0), counts)
    assert found.ends == pytest.approx(ends, abs=1.5)
    assert found.probabilities().sum() == pytest.approx(1)
    initial = InitialDensity(of, counts).densities(counts[None])
    assert initial is not None
    assert np.abs(initial[0] - true.probabilities()).sum() / 2 < 0.06
    mixture_only = fitted(of, counts, 0.06).probabilities()  # the planted fault: no uniform densities
    assert np.abs(mixture_only - true.probabilities()).sum() / 2 > 0.08


def test_a_uniform_density_grows_by_the_standard_error_of_its_width() -> None:
    of, exact = grid(0.25), UniformDensity(60, (20.0, 40.0))
    counts = expected_counts(of, 1e4, exact.interval_probabilities())
    wider = fit_uniform(of.channel_matrix(0), counts)
    assert wider.ends[1] - wider.ends[0] > 21
    loss = exact.log_likelihood(of.channel_matrix(0), counts) - wider.log_likelihood(of.channel_matrix(0), counts)
    assert loss == pytest.approx(0.5, abs=0.15)


def test_a_single_mode_is_not_mistaken_for_a_uniform_density() -> None:
    """Even a triangular density behind strong noise, which is as far from a normal as from a uniform density."""
    of, triangle = grid(0.25), 1 - np.abs(np.linspace(-1, 1, 61)[1:] - 1 / 60)
    for rows in (1e4, 1e5):
        counts = expected_counts(of, rows, triangle / triangle.sum())
        initial = InitialDensity(of, counts).densities(counts[None])
        assert initial is not None
        assert initial[0].max() > 1.5 * np.median(initial[0])


def test_fewer_values_are_smoothed_more() -> None:
    of = grid(0.2)
    counts = expected_counts(of, 1.0, mixture(of, np.ones(1), np.array([0.5]), 0.1))
    few, more, many = (InitialDensity(of, rows * counts).smoothing for rows in (1e3, 1e5, 1e7))
    assert few > more > many


@pytest.mark.parametrize("deviation", [0.002, 0.2, 1.0])
def test_the_posterior_mean_under_a_deconvolved_density_is_nearly_the_best_estimate(deviation: float) -> None:
    """Two modes: with the true density the mean square error is the least that any estimator has."""
    draw = np.random.default_rng(5)
    x = draw.choice([-1.0, 1.0], 20_000) + 0.2 * draw.normal(size=20_000)
    y = x + deviation * draw.normal(size=20_000)
    points, probabilities = deconvolved_density(y, deviation)
    assert probabilities.sum() == pytest.approx(1)
    estimate = np.interp(y, *posterior_mean(points, probabilities, deviation, y.min(), y.max()))
    fine = np.linspace(-3, 3, 4001)
    true = norm.pdf(fine, -1, 0.2) + norm.pdf(fine, 1, 0.2)
    best = np.interp(y, *posterior_mean(fine, true / true.sum(), deviation, y.min(), y.max()))
    errors = [float(np.mean((one - x) ** 2)) for one in (estimate, best)]
    assert errors[0] < 1.1 * errors[1]


def misfit(channel: ShearedChannel, values: Array, probabilities: Array) -> float:
    """The largest standardised residual of a histogram, over bins with an expected count of at least 50."""
    indices = np.ravel_multi_index(tuple(channel.bin_indices(values).T), channel.shape)
    counts = np.bincount(indices, minlength=probabilities.size)
    expected = probabilities.ravel() * len(values)
    residuals = np.abs(counts - expected)[expected > 50] / np.sqrt(expected[expected > 50])
    return float(residuals.max())


def test_the_sheared_channel_is_that_of_correlated_noise(rng: np.random.Generator) -> None:
    """The probability of every bin given one cell, against drawn values; and the adjoint is the transpose."""
    channel = ShearedChannel(np.zeros(3), np.array([1.0, 2.0, 1.0]), 20, NOISE)
    cell = (3, 14, 10)
    probabilities = np.zeros((20, 20, 20))
    probabilities[cell] = 1.0
    observed = channel.forward(probabilities)
    assert observed.sum() == pytest.approx(1)
    drawn = (np.array(cell) + rng.random((400_000, 3))) * [0.05, 0.1, 0.05]
    drawn += rng.multivariate_normal(np.zeros(3), NOISE, 400_000)
    assert misfit(channel, drawn, observed) < 6  # standard deviations, over some hundred bins
    x, y = rng.random((2, 20, 20, 20)), rng.random((2, *channel.shape))
    assert np.sum(channel.forward(x) * y) == pytest.approx(np.sum(x * channel.adjoint(y)))
    uncorrelated = ShearedChannel(np.zeros(3), np.array([1.0, 2.0, 1.0]), 20, np.diag(np.diag(NOISE)))
    assert misfit(uncorrelated, drawn, uncorrelated.forward(probabilities)) > 20  # the planted fault


def test_the_sheared_channel_has_the_density_of_the_noise() -> None:
    """In two columns, the probability of a bin over its area is the normal density, up to the size of bin and cell."""
    noise = NOISE[:2, :2]
    channel = ShearedChannel(np.zeros(2), np.ones(2), 50, noise)
    probabilities = np.zeros((50, 50))
    probabilities[25, 25] = 1.0
    observed = channel.forward(probabilities)
    edges = channel._observed_edges
    area = np.diff(edges[0])[:, None] * np.diff(edges[1])
    centres = [(e[1:] + e[:-1]) / 2 for e in edges]
    sheared = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1)
    back = sheared @ np.linalg.inv(channel._shear).T
    density = multivariate_normal([0.51, 0.51], noise).pdf(back)
    inner = (slice(1, -1), slice(1, -1))
    assert np.abs(observed / area - density)[inner].max() < 0.06 * density.max()


def test_a_noise_covariance_that_rounding_made_indefinite_is_accepted() -> None:
    channel = ShearedChannel(np.zeros(2), np.ones(2), 8, np.array([[1.0, 1.001], [1.001, 1.0]]))
    assert channel.forward(np.full((8, 8), 1 / 64)).sum() == pytest.approx(1)


def labelled(rows: int, rule: Any, seed: int = 1) -> tuple[TrainingSet, pa.Table]:
    """A training set of three numeric columns and a categorical one, with classes by a rule, and its copy."""
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
    return training_set(DecisionTree(), copy, "kind"), copy


def box(of: dict[str, Array], _: np.random.Generator) -> Array:
    return np.where((of["a"] > 0.3) & (of["c"] < 0.6), "in", "out")


def test_the_gradient_of_the_penalised_likelihood_matches_finite_differences() -> None:
    training, _ = labelled(3000, box)
    counts = GridClassCounts.of(training, joint_grid(training, (0, 2, 3), 6), {})
    fit = _PenalisedFits(counts, counts.counts[:1], counts.counts.sum(axis=0)[None], 0.06)
    draw = np.random.default_rng(2)
    point, penalties = draw.uniform(0.2, 0.8, counts.density.size), [np.full((1, 1, 1, 1), 3.0)] * 3
    _, gradient = fit._objective(point, penalties)
    for i in (0, 7, 31, 74):
        step = np.zeros(len(point))
        step[i] = 1e-5
        ends = [fit._objective(point + sign * step, penalties)[0] for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(gradient[i], rel=1e-3, abs=1e-3)


@pytest.mark.long
def test_only_the_discriminating_columns_are_selected() -> None:
    training, copy = labelled(20_000, box)
    selection = select_features(training, 3, 0)
    assert sorted(selection.grid.columns) == [0, 2]
    tree = DecisionTree().fit(copy, "kind").tree_.tree_
    assert {int(column) for column in tree.feature if column >= 0} == {0, 2}


def test_columns_of_very_many_categories_are_not_crossed() -> None:
    """Three columns of 200 categories each would have eight million cells."""
    draw = np.random.default_rng(3)
    table = pa.table({name: draw.integers(0, 200, 4000).astype(str) for name in "abc"})
    kinds = pa.array(np.where(table.column("a").to_numpy(zero_copy_only=False).astype(int) < 100, "low", "high"))
    table = table.append_column("kind", kinds)
    columns = "\n".join(f'{name} = "uniform"' for name in "abc")
    policy = sf.Policy.loads(f'dataset = "d"\n[levels]\nl = 0.8\n[columns]\n{columns}\nkind = "keep"')
    copy = policy.fit(table).release(table, "l", offices.key())
    selection = select_features(training_set(DecisionTree(), copy, "kind"), 3, 0)
    assert 0 in selection.grid.columns
    assert np.prod(selection.grid.shape) <= 200 * 200


@pytest.mark.long
def test_class_probabilities_between_0_and_1_stay_so() -> None:
    """The held-out likelihood chooses a penalty at which 0.3 and 0.7 are kept; a smaller one exaggerates them."""

    def coin(of: dict[str, Array], draw: np.random.Generator) -> Array:
        return np.where(draw.random(len(of["a"])) < np.where(of["a"] > 0.5, 0.7, 0.3), "yes", "no")

    training, copy = labelled(20_000, coin)
    assert select_features(training, 3, 0).penalty > PENALTIES[0]
    records = pa.table({"a": [0.1, 0.9], "b": [0.5, 0.5], "c": [0.5, 0.5], "ward": ["u", "u"]})
    probabilities = DecisionTree().fit(copy, "kind").predict_proba(records)[:, 1]
    assert probabilities == pytest.approx([0.3, 0.7], abs=0.12)


def test_fits_that_are_too_large_to_be_stacked_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    training, _ = labelled(3000, box)
    counts = GridClassCounts.of(training, joint_grid(training, (0, 2), 6), {})
    halves = [*counts.random_halves(np.random.default_rng(1)), counts]
    stacked = rough_class_probabilities(halves), class_probabilities(halves, 0.06)
    monkeypatch.setattr(hyperplanes, "_STACKED", 1)
    single = rough_class_probabilities(halves), class_probabilities(halves, 0.06)
    for one, other in zip(stacked[0], single[0], strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    for one, other in zip(stacked[1], single[1], strict=True):
        assert one == pytest.approx(other, abs=0.02)  # iterations stop at another step


def test_the_log_likelihood_is_a_sum_over_classes() -> None:
    """With a replaced category on the grid, whose axis must not be confused with that of the classes."""
    training, _ = labelled(3000, lambda of, _: np.where(of["ward"] == "u", "yes", "no"))
    counts = GridClassCounts.of(training, joint_grid(training, (0, 3), 6), {})
    [probabilities] = rough_class_probabilities([counts])
    total = counts.channel.forward(counts.density)
    observed = [counts.channel.forward(one * counts.density) / total for one in probabilities]
    expected = sum(float((n * np.log(one)).sum()) for n, one in zip(counts.counts, observed, strict=True))
    assert counts.log_likelihood(probabilities) == pytest.approx(expected)
    assert np.sum(observed, axis=0) == pytest.approx(1)


@pytest.mark.long
def test_a_rare_class_is_learnt() -> None:
    """One record in a hundred, determined by two columns jointly: maximising accuracy alone would learn nothing."""

    def corner(of: dict[str, Array], _: np.random.Generator) -> Array:
        return np.where((of["a"] > 0.9) & (of["b"] > 0.9), "rare", "usual")

    training, copy = labelled(20_000, corner)
    assert sorted(select_features(training, 3, 0).grid.columns) == [0, 1]
    records = pa.table({"a": [0.97, 0.3], "b": [0.97, 0.3], "c": [0.5, 0.5], "ward": ["u", "u"]})
    probabilities = DecisionTree().fit(copy, "kind").predict_proba(records)[:, 0]
    assert probabilities[0] > 10 * max(probabilities[1], 0.005)


@pytest.mark.long
def test_three_classes_and_a_replaced_category() -> None:
    def rule(of: dict[str, Array], _: np.random.Generator) -> Array:
        return np.where(of["b"] > 0.6, "top", np.where(of["ward"] == "u", "left", "right"))

    _, copy = labelled(30_000, rule)
    tree = DecisionTree().fit(copy, "kind")
    draw = np.random.default_rng(9)
    fresh = {name: draw.random(2000) for name in "abc"} | {"ward": draw.choice(list("uvw"), 2000)}
    assert np.mean(tree.predict(pa.table(fresh)) == rule(fresh, draw)) > 0.9
    assert tree.predict_proba(pa.table(fresh)).sum(axis=1) == pytest.approx(1)


def test_the_number_of_joint_columns_must_be_one_to_three() -> None:
    _, copy = labelled(500, box)
    for wrong in (4, 0, 2.0):
        with pytest.raises(MiningError, match="whole number from 1 to 3"):
            DecisionTree(joint_columns=wrong).fit(copy, "kind")


@pytest.mark.parametrize("rows", [2, 5, 3000])
def test_few_values_and_distant_clip_bounds(rows: int) -> None:
    """Warnings are errors here: nothing overflows, and no logarithm of zero is taken."""
    draw = np.random.default_rng(rows)
    table = pa.table({"x": draw.normal(50e3, 8e3, rows), "kind": np.where(np.arange(rows) % 2, "a", "b")})
    text = 'dataset = "d"\n[levels]\nl = 0.5\n[columns]\nx = { role = "gaussian", clip = [0, 1000000] }\nkind = "keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key())
    for bins in (1, 2, 100):
        assert Density(columns=["x"], bins=bins).fit(copy).probabilities_.sum() == pytest.approx(1)
    assert len(DecisionTree().fit(copy, "kind").predict(table)) == rows


def test_groups_of_many_columns_are_found_stepwise_and_only_once() -> None:
    draw = np.random.default_rng(6)
    values = draw.normal(size=(4000, 14))
    labels = ((values[:, 3] > 0) & (values[:, 7] > 0) & (values[:, 1] > 0)).astype(np.int64)
    features = Features(tuple(Feature(str(i)) for i in range(14)), np.zeros((14, 14)), False)
    groups = _discriminating_groups(TrainingSet(features, values, np.array([0, 1]), labels), 3)
    assert set(groups[0]) == {1, 3, 7}
    assert len({tuple(sorted(group)) for group in groups}) == len(groups) == _GROUPS


def test_correlations_are_those_of_the_original() -> None:
    """The columns of the copy are also correlated by their noise."""
    draw = np.random.default_rng(4)
    shared = draw.normal(size=30_000)
    table = pa.table(
        {"a": shared, "b": 0.6 * shared + 0.8 * draw.normal(size=30_000), "kind": draw.random(30_000) < 0.5}
    )
    text = 'dataset = "d"\n[levels]\nl = 0.3\n[columns]\na = "gaussian"\nb = "gaussian"\nkind = "keep"'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key())
    training = training_set(DecisionTree(), copy, "kind")
    assert _correlations(training) == pytest.approx(np.array([[0.0, 0.6], [0.6, 0.0]]), abs=0.05)
    uncorrelated = replace(training.features, noise=np.diag(np.diag(training.features.noise)))
    assert _correlations(replace(training, features=uncorrelated))[0, 1] > 0.9  # the planted fault
