"""Moments, quantiles, densities, regressions and clusters, compared with the original."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from tests import offices

import sfumato as sf
from sfumato.errors import ManifestError, MiningError
from sfumato.kernels.covariances import PairwiseSums, linear_variance, variance_interval
from sfumato.kernels.kernel_deconvolution import cdf_weights, cutoff_frequency
from sfumato.kernels.reconstruction import Grid
from sfumato.mining import PCA, Density, LinearRegression, Mixture, Moments, ask, column, count
from sfumato.mining.copies.copy import Copy, non_dominated_copies
from sfumato.mining.copies.quantiles import Bins
from sfumato.mining.report.capabilities import rows_for_count
from sfumato.models import of_type
from sfumato.models.rotation import Rotation

Array = Any


@pytest.fixture(scope="module")
def original() -> pa.Table:
    return offices.table(20_000)


@pytest.fixture(scope="module")
def copy(original: pa.Table) -> pa.Table:
    return offices.copy(original)


def test_a_file_without_a_column_or_rows_does_not_match_its_manifest(original: pa.Table, tmp_path: Path) -> None:
    """It is refused before it is read, even if the requested column is complete."""
    import pyarrow.parquet as pq

    target = tmp_path / "copy.parquet"
    sf.release_file(offices.policy().fit(original), original, target, "far", offices.key())
    complete = pq.read_table(target)
    requested, other = Moments().fit(target).columns_[0], complete.column_names[-1]
    assert requested != other
    for damaged in (complete.drop_columns([other]), complete.slice(10)):
        pq.write_table(damaged, target)
        with pytest.raises(ManifestError, match="must match its manifest"):
            Moments(columns=[requested]).fit(target)
        with pytest.raises(ManifestError, match="must match its manifest"):
            Copy.of(target)


def test_pairwise_sums_give_covariances_over_complete_pairs(rng: np.random.Generator) -> None:
    values = rng.normal(size=(300, 3))
    values[rng.random((300, 3)) < 0.2] = np.nan
    found = PairwiseSums.of(values[:100]) + PairwiseSums.of(values[100:])
    for i in range(3):
        for j in range(3):
            both = ~np.isnan(values[:, i]) & ~np.isnan(values[:, j])
            assert found.covariance()[i, j] == pytest.approx(np.cov(values[both, i], values[both, j])[0, 1])


def test_the_variance_of_a_covariance_due_to_noise(rng: np.random.Generator) -> None:
    """Ten thousand draws of the noise of a small table, within seven standard errors."""
    table, noise = rng.normal(size=(30, 2)) * [1, 3], np.array([[2.0, 0.5], [0.5, 1.0]])
    weights = np.array([[0.3, 1.0], [1.0, -0.2]])
    root = np.linalg.cholesky(noise)
    drawn = [np.sum(weights * np.cov((table + rng.normal(size=(30, 2)) @ root.T).T)) for _ in range(10_000)]
    expected = linear_variance(weights, np.cov(table.T), noise, 30)
    assert np.var(drawn) == pytest.approx(expected, rel=7 * np.sqrt(3 / 10_000))


def test_the_interval_of_a_variance_solves_its_equation() -> None:
    found, noise, rows = np.array([4.0]), np.array([2.0]), np.array([50.0])
    for end in np.ravel(variance_interval(found, noise, rows, 1.96)):
        assert abs(4.0 - end) == pytest.approx(1.96 * np.sqrt((4 * 2 * end + 2 * 4) / 49))


@pytest.mark.slow
def test_weights_estimate_the_distribution_function(rng: np.random.Generator) -> None:
    """Given the value, the mean weight is the smoothed step function: 1 well below the point, 0 well above."""
    cutoff = cutoff_frequency(0.5, 1.0, 10_000)
    noise = rng.normal(0, 0.5, 400_000)
    for x, expected in ((-2.0, 1.0), (-0.3, None), (0.0, 0.5), (0.2, None), (2.0, 0.0)):
        weights = cdf_weights(0.0 - (x + noise), 0.5, cutoff)
        smoothed = float(cdf_weights(np.array([0.0 - x]), 0.0, cutoff)[0])
        assert weights.mean() == pytest.approx(smoothed, abs=7 * weights.std() / np.sqrt(len(noise)))
        assert expected is None or smoothed == pytest.approx(expected, abs=0.06)


def test_the_joint_kernel_agrees_with_the_matrix_of_one_column() -> None:
    """The bins are as wide as the noise, so that the position of a value within its bin matters."""
    grid = Grid(np.array([0.0]), np.array([10.0]), (10,), np.array([[1.0]]), np.array([3.0]))
    column, kernel = grid.channel_matrix(0)[:, 5], grid.kernel()
    middle = grid.margin[0]
    assert kernel[middle - 3 : middle + 4] == pytest.approx(column[middle + 2 : middle + 9], abs=0.003)


def test_noise_that_is_not_proportional_is_corrected_too(original: pa.Table) -> None:
    """A scheme that was fitted to other rows, and a column with its own noise scale."""
    wider = original.set_column(1, "age", pa.array(original.column("age").to_numpy() * 1.5))
    found = Moments().fit(offices.policy().fit(original).release(wider, "far", offices.key()))
    assert found.covariance_[0, 0] == pytest.approx(np.var(wider.column("age").to_numpy()), rel=0.1)
    text = offices.POLICY.format(close=0.8, far=0.5)
    scaled = sf.Policy.loads(text.replace('age = "gaussian"', 'age = { role = "gaussian", scale = 2 }'))
    found = Moments().fit(scaled.fit(original).release(original, "far", offices.key()))
    assert found.covariance_[0, 0] == pytest.approx(np.var(original.column("age").to_numpy()), rel=0.15)


def test_correlations_are_over_complete_pairs(original: pa.Table) -> None:
    ages = [None if i % 3 == 0 else age for i, age in enumerate(original.column("age").to_pylist())]
    table = original.set_column(1, "age", pa.array(ages))
    scheme, hits = offices.policy().fit(table), 0
    complete = np.arange(20_000) % 3 != 0
    truth = np.corrcoef(offices.numbers(original, ("age", "income"))[complete].T)[0, 1]
    for number in range(40):
        found = Moments(columns=["age", "income"]).fit(scheme.release(table, "far", offices.key(number)))
        low, high = found.correlation_interval_[0, 1]
        hits += low <= truth <= high
    assert hits >= 32  # 38 are expected; fewer than 32 have probability 1e-4


def test_a_path_is_used_once_even_if_its_copies_have_different_columns(original: pa.Table) -> None:
    scheme = offices.policy().fit(original)
    best, other = (scheme.release(original, level, offices.key()) for level in ("close", "far"))
    part = best.select(["age", "income"]).replace_schema_metadata(best.schema.metadata)
    both, alone = (Moments(columns=["age"]).fit(copies) for copies in ([part, other], part))
    assert both.mean_interval_ == pytest.approx(alone.mean_interval_)
    elsewhere = Moments(columns=["score"]).fit([part, other])
    assert elsewhere.mean_ == pytest.approx(Moments(columns=["score"]).fit(other).mean_)


def test_only_copies_on_one_path_are_dominated(original: pa.Table) -> None:
    """Independent noise gives a path of its own to every level, in the columns that have it."""
    columns = 'age = "gaussian"\nscore = { role = "independent", of = "gaussian" }'
    policy = sf.Policy.loads(f'dataset = "d"\n[levels]\nclose = 0.8\nfar = 0.5\n[columns]\n{columns}')
    table = original.select(["age", "score"])
    scheme = policy.fit(table)
    copies = [scheme.release(table, level, offices.key()) for level in ("far", "close")]
    fidelities = {
        name: [copy.manifest.fidelity for copy in non_dominated_copies(copies, [name])] for name in ("age", "score")
    }
    assert fidelities == {"age": [0.8], "score": [0.8, 0.5]}


def test_columns_without_values_are_left_out(original: pa.Table) -> None:
    table = original.append_column("nothing", pa.nulls(20_000, pa.float64()))
    policy = sf.Policy.loads(offices.POLICY.format(close=0.8, far=0.5) + 'nothing = "keep"\n')
    found = Moments().fit(policy.fit(table).release(table, "far", offices.key()))
    assert "nothing" not in found.columns_
    assert Bins(0.0, 1.0, 10, 0.0).histogram(np.array([0.0, 1e15])) is None
    for probabilities, name in (([1.5], "age"), ([0.5], "nobody")):
        with pytest.raises(MiningError):
            found.quantile(name, probabilities)


def test_independent_copies_are_averaged(original: pa.Table) -> None:
    """Copies under different keys have independent noise: two estimate the mean better than one."""
    scheme = offices.policy().fit(original)
    one, other = (scheme.release(original, "far", offices.key(n)) for n in (1, 2))
    both = Moments(columns=["age"]).fit([one, other])
    alone = [Moments(columns=["age"]).fit(copy) for copy in (one, other)]
    assert np.diff(both.mean_interval_) == pytest.approx(np.diff(alone[0].mean_interval_) / np.sqrt(2))
    assert both.mean_[0] == pytest.approx(np.mean([a.mean_[0] for a in alone]))


def test_unchanged_numbers_are_exact(original: pa.Table, copy: pa.Table) -> None:
    found = Moments(columns=["hours"]).fit(copy)
    hours = original.column("hours").to_numpy()
    assert found.mean_[0] == pytest.approx(hours.mean())
    assert np.diff(found.mean_interval_) == pytest.approx(0)
    for probability, interval in zip((0.1, 0.5, 0.9), found.quantile("hours", [0.1, 0.5, 0.9]), strict=True):
        assert interval.low <= np.quantile(hours, probability, method="inverted_cdf") <= interval.high
        assert interval.high - interval.low < 0.1


def test_a_file_gives_the_same_result_as_a_table(original: pa.Table, tmp_path: Path) -> None:
    target = tmp_path / "copy.parquet"
    scheme = offices.policy().fit(original)
    sf.release_file(scheme, original, target, "far", offices.key())
    of_file, of_table = Moments().fit(target), Moments().fit(scheme.release(original, "far", offices.key()))
    assert of_file.covariance_ == pytest.approx(of_table.covariance_)


def test_quantiles_are_refused_if_the_noise_is_too_large(original: pa.Table) -> None:
    few = original.slice(0, 200)
    policy = offices.policy(close=0.1, far=0.02)
    found = Moments().fit(policy.fit(few).release(few, "far", offices.key()))
    with pytest.raises(MiningError, match="more faithful copy"):
        found.quantile("age", [0.5])


@pytest.mark.parametrize("columns", [["ward"], ["nobody"], "age", []])
def test_columns_that_are_not_numeric_are_refused(copy: pa.Table, columns: Any) -> None:
    with pytest.raises(MiningError):
        Moments(columns=columns).fit(copy)


@pytest.mark.slow
def test_the_density_of_two_columns_has_their_covariance(original: pa.Table, copy: pa.Table) -> None:
    found = Density(columns=["age", "income"], bins=24).fit(copy)
    ages, incomes = ((edges[1:] + edges[:-1]) / 2 for edges in found.edges_)
    density = found.probabilities_
    assert density.sum() == pytest.approx(1, abs=1e-6)
    mean = np.array([density.sum(axis=1) @ ages, density.sum(axis=0) @ incomes])
    covariance = ages @ density @ incomes - mean.prod()
    truth = np.cov(offices.numbers(original, ("age", "income")).T)
    assert covariance == pytest.approx(truth[0, 1], rel=0.15)


def test_the_two_methods_of_a_density_agree_on_fine_bins(copy: pa.Table) -> None:
    em, bayes = (Density(columns=["score"], method=method, bins=100).fit(copy) for method in ("em", "bayes"))
    assert np.abs(em.probabilities_ - bayes.probabilities_).sum() / 2 < 0.02
    assert (em.band_[0] <= em.band_[1]).all()
    with pytest.raises(MiningError):
        Density(columns=["score"], method="guess").fit(copy)


def test_quantiles_stay_within_the_clip_bounds(rng: np.random.Generator) -> None:
    table = pa.table({"x": np.clip(rng.exponential(1, 3000), 0, 3)})
    text = 'dataset = "c"\n[levels]\nl = 0.4\n[columns]\nx = { role = "gaussian", clip = [0, 3] }'
    found = Moments().fit(sf.Policy.loads(text).fit(table).release(table, "l", offices.key()))
    for interval in found.quantile("x", [0.01, 0.99]):
        assert 0 <= interval.low <= interval.estimate <= interval.high <= 3


def test_a_count_of_the_stated_number_of_rows_is_known_within_10_percent(rng: np.random.Generator) -> None:
    """The count of a group of exactly that size, over many copies, is within 10 % with probability 95 %."""
    rows, retention, size = 20_000, 0.5, 5
    need = rows_for_count(rows, retention, size)
    assert need is not None
    other = (1 - retention) / size
    observed = rng.binomial(need, retention + other, 20_000) + rng.binomial(rows - need, other, 20_000)
    found = (observed - rows * other) / retention
    assert np.mean(np.abs(found - need) <= need / 10) == pytest.approx(0.95, abs=0.011)
    assert rows_for_count(100, 0.05, 5) is None


@pytest.mark.long
def test_the_share_of_a_range_from_a_density(original: pa.Table, copy: pa.Table) -> None:
    found = Density(columns=["age"]).fit(copy)
    ages = original.column("age").to_numpy()
    assert found.share(30, 60) == pytest.approx(np.mean((ages > 30) & (ages < 60)), abs=0.03)
    with pytest.raises(MiningError):
        Density(columns=["age", "income"], bins=12).fit(copy).share(0, 1)


def test_privacy_of_a_normal_value_is_that_of_agrawal_and_aggarwal(rng: np.random.Generator) -> None:
    """`h(X|Y)` of a normal value in normal noise is that of its posterior: `2^h = √(2πe·(1-f))·σ`."""
    table = pa.table({"x": rng.normal(0, 3, 100_000)})
    policy = sf.Policy.loads('dataset = "n"\n[levels]\nl = 0.5\n[columns]\nx = "gaussian"')
    found = Density(columns=["x"]).fit(policy.fit(table).release(table, "l", offices.key()))
    assert found.privacy_ == pytest.approx(np.sqrt(2 * np.pi * np.e * 0.5) * 3, rel=0.02)


def test_regression_is_corrected_for_attenuation(rng: np.random.Generator) -> None:
    """The target is unchanged; without the correction the slope is halved."""
    x = rng.normal(0, 2, 40_000)
    ward = rng.choice(["a", "b", "c"], 40_000)
    y = 1.5 * x + 4 * (ward == "b") - 2 * (ward == "c") + rng.normal(0, 1, 40_000)
    table = pa.table({"x": x, "ward": ward, "y": y})
    policy = sf.Policy.loads(
        'dataset = "r"\n[levels]\nl = 0.5\n[columns]\nx = "gaussian"\nward = "uniform"\ny = "keep"'
    )
    copy = policy.fit(table).release(table, "l", offices.key())
    found = LinearRegression().fit(copy, "y")
    assert found.coef_ == pytest.approx([1.5, 4, -2], abs=0.15)
    assert ((found.coef_interval_[:, 0] < [1.5, 4, -2]) & (found.coef_interval_[:, 1] > [1.5, 4, -2])).all()
    assert np.polyfit(copy.column("x").to_numpy(), copy.column("y").to_numpy(), 1)[0] == pytest.approx(0.75, abs=0.1)
    clean = pa.table({"x": [1.0], "ward": ["b"]})
    assert found.predict(clean) == pytest.approx([5.5], abs=0.3)


def test_regression_is_corrected_for_noise_shared_with_the_target(copy: pa.Table) -> None:
    part = copy.select(["age", "income"]).replace_schema_metadata(copy.schema.metadata)
    found = LinearRegression().fit(part, "income")
    assert found.coef_ == pytest.approx([2.0], abs=0.1)


def test_principal_components_are_those_of_the_original(original: pa.Table, copy: pa.Table) -> None:
    found = PCA(columns=["age", "income", "score"]).fit(copy)
    values, vectors = np.linalg.eigh(np.cov(offices.numbers(original).T))
    assert found.explained_variance_ == pytest.approx(values[::-1], rel=0.06)
    assert np.abs(np.diag(found.components_ @ vectors[:, ::-1])) == pytest.approx(1, abs=0.01)
    assert found.transform(copy).shape == (20_000, 3)
    with pytest.raises(MiningError):
        PCA(n_components=9).fit(copy)


def test_mixture_components_have_the_width_of_the_original(original: pa.Table) -> None:
    found = Mixture(n_components=2, columns=["score"]).fit(offices.copy(original, "close"))
    order = np.argsort(found.means_[:, 0])
    assert found.means_[order, 0] == pytest.approx([-2, 3], abs=0.4)
    assert np.sqrt(found.covariances_[order, 0, 0]) == pytest.approx([1, 1.5], abs=0.4)
    assert found.weights_[order] == pytest.approx([0.4, 0.6], abs=0.08)
    assert set(found.labels_) == {0, 1}


def test_clusters_of_a_rotated_copy_are_those_of_the_original(original: pa.Table) -> None:
    """Plain scikit-learn clustering depends on distances only, which a rotation preserves."""
    text = 'dataset = "r"\n[levels]\nl = 0.5\n[columns]\nage = "rotation"\nincome = "rotation"\nscore = "rotation"\n'
    policy = sf.Policy.loads(text + '[rotation]\nshuffle = false\naccept = "only a test of clusters"\n')
    table = original.select(["age", "income", "score"]).slice(0, 3000)
    copy = policy.fit(table).release(table, "l", offices.key())
    rotated = np.column_stack([copy.column(name).to_numpy() for name in copy.column_names])
    [model] = of_type(sf.Manifest.of(copy).models, Rotation)
    scaled = (offices.numbers(table) - np.array(model.centre)) / np.array(model.unit)
    start = np.arange(3) * 700
    labels = [KMeans(3, init=values[start], n_init=1).fit_predict(values) for values in (scaled, rotated)]
    assert np.array_equal(*labels)
    with pytest.raises(MiningError, match="rotated records"):
        Moments(columns=[copy.column_names[0]]).fit(copy)


ROUGH: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "spike": lambda rng, n: np.where(rng.random(n) < 0.96, 999.0, rng.integers(0, 30, n)),
    "zero_inflated": lambda rng, n: np.where(rng.random(n) < 0.93, 0.0, rng.lognormal(8, 1, n)),
    "whole": lambda rng, n: rng.poisson(2, n).astype(float),
    "lognormal": lambda rng, n: rng.lognormal(0, 2, n),
    "half_zero": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.normal(5, 1, n)),
}


@pytest.mark.parametrize("name", ROUGH)
def test_intervals_hold_for_spikes_whole_numbers_and_heavy_tails(name: str) -> None:
    """No count of a range and no quantile is stated more precisely than the copy resolves.

    The ends of a range lie on spikes and beside them. Intervals of 95 % confidence are wider than sampling demands, so
    that all of them hold.
    """
    values = ROUGH[name](np.random.default_rng(7), 8000)
    table = pa.table({"x": values})
    levels = "".join(f"l{i} = {f}\n" for i, f in enumerate((0.95, 0.8, 0.5)))
    scheme = sf.Policy.loads(f'dataset = "d"\n[levels]\n{levels}[columns]\nx = "gaussian"\n').fit(table)
    for copy in scheme.release_levels(table, ["l0", "l1", "l2"], offices.key(3)):
        ends = np.unique(np.quantile(values, (0.02, 0.5, 0.9)))
        for end in (*ends, ends[0] + 1.0):
            for sign, truth in (("<", (values < end).sum()), (">=", (values >= end).sum())):
                condition = column("x") < end if sign == "<" else column("x") >= end
                [row] = count(copy, where=condition).to_pylist()
                assert row["count_low"] <= truth <= row["count_high"], (sign, end, row, truth)
        probabilities = (0.05, 0.25, 0.5, 0.75, 0.95)
        for probability, found in zip(probabilities, Moments().fit(copy).quantile("x", probabilities), strict=True):
            assert found.low <= np.quantile(values, probability, method="inverted_cdf") <= found.high


def test_an_average_over_a_range_allows_for_its_resolution() -> None:
    """The group on one side of a spike is unknown, and so is its average."""
    rng = np.random.default_rng(8)
    x = np.where(rng.random(8000) < 0.5, 10.0, rng.normal(10, 5, 8000))
    table = pa.table({"x": x, "y": np.where(x == 10, 100.0, 0.0) + rng.normal(size=8000)})
    text = 'dataset = "d"\n[levels]\nl = 0.9\n[columns]\nx = "gaussian"\ny = "keep"\n'
    copy = sf.Policy.loads(text).fit(table).release(table, "l", offices.key(4))
    [row] = ask(copy, "select avg(y) as m, sum(y) as s from copy where x < 10").to_pylist()
    truth = table.column("y").to_numpy()[x < 10]
    assert row["m_low"] <= truth.mean() <= row["m_high"]
    assert row["s_low"] <= truth.sum() <= row["s_high"]
