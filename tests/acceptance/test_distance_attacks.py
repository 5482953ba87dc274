"""The attacks on distance-preserving releases, at the sizes and with the results of giannella2010."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests import realdata

from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import Array, breach_rate, linear_map_model, mapped_copy, random_orthogonal
from sfumato.attacks.known_input import Span
from sfumato.attacks.linkage.inner_products import ReleasedRows, link
from sfumato.attacks.linkage.principal_axes import PrincipalAxes
from sfumato.attacks.linkage.signs import signs_by_moments
from sfumato.experiments import Job
from sfumato.experiments._rotation_attacks import (
    COVARIANCE,
    DIAGONAL,
    MEAN,
    Sampler,
    gaussian_records,
    known_sample_breaches,
    mixture_sampler,
    normal_sampler,
)
from sfumato.kernels.hypersphere import uniform_breach_probability
from sfumato.risk.breach import assess_known_record_risk


@pytest.fixture(scope="module")
def letter() -> Array:
    """18,668 x 16, without repeated rows, as in section IV-E."""
    return np.unique(realdata.letter(), axis=0)


@pytest.fixture(scope="module")
def gaussian() -> Array:
    """100,000 x 100, as in footnote 18."""
    return gaussian_records(100_000)


def test_linking_is_perfect_on_gaussian_data(gaussian: Array) -> None:
    rng = np.random.default_rng(1)
    rows = gaussian @ random_orthogonal(rng, 100).T
    for known in (10, 50, 100):
        chosen = rng.choice(len(rows), known, replace=False)
        i, j = link(gaussian[chosen], ReleasedRows(rows, 1e-12))
        assert len(i) == known
        assert (chosen[i] == j).all()


def test_linking_with_a_translation(gaussian: Array) -> None:
    rng = np.random.default_rng(2)
    rows = gaussian @ random_orthogonal(rng, 100).T + 100 * rng.normal(size=100)
    chosen = rng.choice(len(rows), 100, replace=False)
    guess = ATTACKS["known-input"]().estimate(
        mapped_copy(rows, linear_map_model(100, translated=True), known=gaussian[chosen])
    )
    assert guess.explanation["linked"] == 100
    assert breach_rate(guess.values, gaussian, 0.05) > 0.99  # their rank is 99, and they span that many dimensions


def test_the_transition_of_the_gaussian_data(gaussian: Array) -> None:
    """Section IV-E, Figure 1: ρ(0.15) goes from 0 to 1 "around a = 60"; the best guess does so earlier."""
    found = assess_known_record_risk(gaussian[:5000], linear_map_model(100))
    rho = {point.known_records: point.max_probability[1] for point in found.curve}
    assert all(value < 0.02 for known, value in rho.items() if known <= 48)
    assert all(value > 0.9 for known, value in rho.items() if known >= 76)
    share = {point.known_records: point.breached_share[1] for point in found.curve}
    assert share[102] == pytest.approx(1.0)
    assert 30 < (found.fewest_known() or 0) < 80


@pytest.mark.slow
def test_rho_of_the_gaussian_data(gaussian: Array) -> None:
    """The record at highest risk of 100,000 at ε = 0.15, and the best guess (notes, section 4)."""
    rng = np.random.default_rng(6)
    rows = gaussian @ random_orthogonal(rng, 100).T
    rho, best = {}, {}
    for known in (52, 60, 62, 68, 74):
        found = []
        for _ in range(3):
            chosen = rng.choice(len(rows), known, replace=False)
            span = Span.of(gaussian[chosen], rows[chosen], translated=False)
            found.append(span.breach_probabilities(rows, np.delete(np.arange(len(rows)), chosen))["epsilon 0.15"])
        rho[known], best[known] = (float(np.mean([f[name] for f in found])) for name in ("rho", "best guess"))
    assert rho[52] < 0.02
    assert rho[60] < 0.25
    assert rho[68] > 0.6
    assert rho[74] > 0.95
    assert best[62] > 0.95


def test_rho_of_letter_with_four_known(letter: Array) -> None:
    """ρ by ε: near 1 at .15, fairly high at .07, small at .04 (section IV-E, Figure 3)."""
    rng = np.random.default_rng(7)
    found: dict[float, list[float]] = {0.15: [], 0.07: [], 0.04: []}
    for _ in range(10):
        chosen = rng.choice(len(letter), 4, replace=False)
        span = Span.of(letter[chosen], letter[chosen], translated=False)
        away, length = span.distances(np.delete(letter, chosen, axis=0))
        for epsilon, rhos in found.items():
            rhos.append(float(uniform_breach_probability(span.unknown_dimensions, away, epsilon * length).max()))
    assert np.mean(found[0.15]) > 0.99
    assert 0.5 <= np.mean(found[0.07]) <= 1
    assert np.mean(found[0.04]) < 0.5


def test_linking_on_letter(letter: Array) -> None:
    assert letter.shape == (18_668, 16)
    rng = np.random.default_rng(3)
    rows = letter @ random_orthogonal(rng, 16).T
    counts: dict[int, list[int]] = {4: [], 16: []}
    for known, linked in counts.items():
        for _ in range(10):
            chosen = rng.choice(len(rows), known, replace=False)
            i, j = link(letter[chosen], ReleasedRows(rows, 1e-9))
            assert (chosen[i] == j).all()
            linked.append(len(i))
    assert min(counts[16]) == 16
    assert np.mean(counts[4]) >= 3.5


def test_four_known_inputs_breach_letter(letter: Array) -> None:
    """The main result of the paper, end to end: the guess is compared with the truth."""
    rng = np.random.default_rng(4)
    rows = letter @ random_orthogonal(rng, 16).T
    hits = {"projection": 0, "uniform": 0}
    for _ in range(10):
        chosen = rng.choice(len(rows), 4, replace=False)
        for guess in hits:
            found = ATTACKS["known-input"](guess=guess).estimate(
                mapped_copy(rows, linear_map_model(16, step=1e-9), known=letter[chosen])
            )
            facts = found.explanation["epsilon 0.15"]
            assert facts["rho"] > 0.99
            assert facts["best guess"] == 1.0
            target = facts["row at highest risk"]
            assert target not in chosen
            hits[guess] += bool(breach_rate(found.values[[target]], letter[[target]], 0.15))
    assert hits == {"projection": 10, "uniform": 10}


def test_the_advice_on_letter() -> None:
    """The numbers that docs/rotation.md states."""
    found = assess_known_record_risk(realdata.letter()[::4], linear_map_model(16))
    assert found.fewest_known() in {5, 6}
    assert found.curve[15].breached_share == (1.0, 1.0)


def test_the_projection_guess_beats_the_random_one(letter: Array) -> None:
    """The mean over all records at ε = 0.15 with ten known inputs: .295 at random, .556 by projection (notes, 3b)."""
    found = assess_known_record_risk(letter[::4], linear_map_model(16))
    share = {point.known_records: point.breached_share[1] for point in found.curve}
    assert 0.04 < share[4] < 0.12
    assert 0.45 < share[10] < 0.7
    rng = np.random.default_rng(5)
    rows = letter @ random_orthogonal(rng, 16).T
    rates = []
    for _ in range(8):  # a random completion is the same for all records, so that one draw of known inputs says little
        known = letter[rng.choice(len(rows), 10, replace=False)]
        evidence = mapped_copy(rows, linear_map_model(16, step=1e-9), known=known)
        attacks = [ATTACKS["known-input"](guess=guess) for guess in ("uniform", "projection")]
        rates.append([breach_rate(attack.estimate(evidence).values, letter, 0.15) for attack in attacks])
    at_random, by_projection = np.mean(rates, axis=0)
    assert by_projection > at_random + 0.1


def test_minimum_eigen_ratios() -> None:
    """Section V-D, to every printed digit."""
    values, vectors = np.linalg.eigh(COVARIANCE)
    assert PrincipalAxes(MEAN, vectors[:, ::-1], values[::-1]).eigen_ratio == pytest.approx(19.6003, abs=1e-4)
    assert PrincipalAxes.of(realdata.letter()[:, :6]).eigen_ratio == pytest.approx(1.3109, abs=1e-4)
    assert PrincipalAxes.of(realdata.adult()).eigen_ratio == pytest.approx(1.2734, abs=1e-4)


def test_invariance_is_the_divergence_of_reflections() -> None:
    """Eq. 9 simplifies to `4·min(zᵢᵀμ)²/λᵢ`: the least over all `2^n - 1` reflections flips one axis."""
    values, vectors = np.linalg.eigh(COVARIANCE)
    mean = np.array([1.0, 2.0, 3.0])
    along = mean @ vectors
    flips = [np.array(flip) for flip in np.ndindex(2, 2, 2) if any(flip)]
    every = [float((4 * flip * along**2 / values).sum()) for flip in flips]
    assert PrincipalAxes(mean, vectors, values).invariance == pytest.approx(min(every))


def breaches(
    draw: Sampler, seed: int, runs: int, sample: int, epsilon: float, *, translated: bool = False, **options: Any
) -> float:
    """The mean breach rate of the known-sample attack over some runs, each with its own data and rotation."""
    [found] = known_sample_breaches(
        draw, runs, 10_000, sample, [epsilon], Job(False, seed), translated=translated, **options
    )
    return float(found["rate"])


@pytest.mark.slow
def test_figure_5() -> None:
    """Three-dimensional Gaussian, a sample of 2 %: the paper's attack, and maximum likelihood, which is better."""
    draw = normal_sampler(MEAN, COVARIANCE)
    assert breaches(draw, 1, 20, 200, 0.05, method="energy") > 0.75
    paper = breaches(draw, 2, 20, 200, 0.02, method="energy")
    ours = breaches(draw, 2, 20, 200, 0.02, components=1)
    assert 0.25 < paper < 0.98
    assert ours > max(0.7, paper)
    assert breaches(draw, 3, 20, 200, 0.05, components=1) > 0.95


@pytest.mark.slow
def test_figure_8_eigen_ratio() -> None:
    near, far = (normal_sampler(MEAN, np.diag([0.1, 2.0, b])) for b in (2.0, 40.0))
    assert breaches(near, 4, 100, 200, 0.05, method="energy") < 0.2
    assert breaches(far, 5, 100, 200, 0.05, method="energy") > 0.93
    # close eigenvalues are no protection: the mean and the likelihood determine what the axes do not
    assert breaches(near, 6, 20, 200, 0.05, components=1) > 0.5


def test_figure_9_invariance() -> None:
    """At a mean of 0 the signs are random, so that a breach stays possible; the paper says it "drops to zero"."""
    rates = [breaches(normal_sampler(np.full(3, a), DIAGONAL), 7, 100, 200, 0.05, method="energy") for a in (0.0, 2.0)]
    assert 0.05 < rates[0] < 0.3
    assert rates[1] > 0.93


@pytest.mark.slow
def test_figure_11_differences_cannot_distinguish_a_rotation_from_its_negative() -> None:
    """The distribution of a difference is always symmetric: half of the runs find `-M`. Centring finds `M`."""
    paper = breaches(mixture_sampler, 8, 60, 1000, 0.05, translated=True, method="energy", shift="differences")
    centred = breaches(mixture_sampler, 8, 60, 1000, 0.05, translated=True, method="energy")
    assert 0.3 < paper < 0.7
    assert centred > 0.9


def skewed_records(rng: np.random.Generator, rows: int, size: int, kind: str, seed: int) -> Any:
    """A mixture of four Gaussians, or gamma data, in `size` columns whose variances decrease by a third."""
    fixed = np.random.default_rng(seed)
    scale = 1.5 ** (-np.arange(size) / 2)
    axes = random_orthogonal(fixed, size)
    if kind == "gamma":
        return (rng.gamma(4.0, size=(rows, size)) * scale) @ axes.T
    means, roots = fixed.normal(size=(4, size)), fixed.normal(size=(4, size, size)) / np.sqrt(size)
    which = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    return ((means[which] + np.einsum("rij,rj->ri", roots[which], rng.normal(size=(rows, size)))) * scale) @ axes.T


@pytest.mark.parametrize("kind", ["mixture", "gamma"])
@pytest.mark.parametrize("size", [16, 32])
def test_signs_in_many_dimensions(kind: str, size: int) -> None:
    """Where the paper's search would take minutes (2^16 tests) to years (2^32): 80 % correct, and at once."""
    right, took = 0, []
    for run in range(10):
        rng = np.random.default_rng([run, size])
        real, sample = (skewed_records(rng, rows, size, kind, run) for rows in (5000, 500))
        rotation = random_orthogonal(rng, size)
        rows = real @ rotation.T + 10 * rng.normal(size=size)
        start = time.perf_counter()
        ours, theirs = PrincipalAxes.of(sample), PrincipalAxes.of(rows)
        signs = signs_by_moments(ours.coordinates(sample - ours.mean), theirs.coordinates(rows - theirs.mean))[0]
        took.append(time.perf_counter() - start)
        truth = np.sign(np.einsum("ij,ij->j", theirs.vectors, rotation @ ours.vectors))
        right += bool((signs == truth).all())
    assert right >= 8
    assert np.median(took) < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "shift"),
    [(1000, False), (1000, True), (400, False)],
)
def test_maximum_likelihood_breaches_letter(size: int, shift: bool) -> None:
    """All 16 columns, a sample of 1,000, ε = 0.15: the paper's attack finds 1 % of the records, this nearly all."""
    data, rates = realdata.letter(), []
    for run in range(2):
        rng = np.random.default_rng([run, 9])
        order = rng.permutation(len(data))
        sample, real = data[order[:size]], data[order[size:]]
        rows = real @ random_orthogonal(rng, 16).T + (50 * rng.normal(size=16) if shift else 0)
        evidence = mapped_copy(rows, linear_map_model(16, translated=shift), sample=sample)
        found = ATTACKS["known-sample"]().estimate(evidence)
        rates.append(breach_rate(found.values, real, 0.15))
        assert 1 < found.explanation["eigen-ratio"] < 1.3
    assert np.mean(rates) >= 0.9


@pytest.mark.slow
def test_a_projection_is_no_remedy() -> None:
    """Section VI says that the known-sample attack fails. The better the distances, the better the attack."""
    rates = []
    for ell in (6, 30, 100, 1000):
        rng = np.random.default_rng(10)
        found = []
        for _ in range(20):
            real, sample = (rng.multivariate_normal(MEAN, COVARIANCE, rows) for rows in (5000, 1000))
            rows = real @ (rng.normal(size=(ell, 3)) / np.sqrt(ell)).T
            evidence = mapped_copy(rows, linear_map_model(3, projected_to=ell), sample=sample)
            found.append(breach_rate(ATTACKS["known-sample"](method="moments").estimate(evidence).values, real, 0.15))
        rates.append(float(np.mean(found)))
    assert rates == sorted(rates)
    assert rates[0] < 0.25
    assert 0.3 < rates[1] < 0.85
    assert rates[2] > 0.7
    assert rates[3] > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("orthogonal", [True, False])
def test_independent_components(orthogonal: bool) -> None:
    """Guo and Wu's attack inverts any matrix if columns mix skewed components; normal ones it cannot separate."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for seed in (21, 41, 51):
        rng = np.random.default_rng(seed)
        mixing = rng.normal(size=(4, 4)) + 2 * np.eye(4)
        rotation = random_orthogonal(rng, 4) if orthogonal else rng.normal(size=(9, 4)) / 3
        model = linear_map_model(4, projected_to=None if orthogonal else 9)
        for skewed, found in rates.items():
            real, sample = (_mixed(rng, rows, skewed=skewed) @ mixing.T + 5 for rows in (20_000, 2_000))
            guess = ATTACKS["ica"]().estimate(mapped_copy(real @ rotation.T, model, sample=sample))
            found.append(breach_rate(guess.values, real, 0.15))
    assert np.mean(rates[True]) > 0.8
    assert np.mean(rates[False]) < 0.3


def _mixed(rng: np.random.Generator, rows: int, *, skewed: bool) -> Any:
    if not skewed:
        return rng.normal(size=(rows, 4))
    twofold = np.where(rng.random(rows) < 0.2, 3.0, 0.0) + 0.3 * rng.normal(size=rows)
    parts = [rng.exponential(size=rows), rng.beta(0.4, 1.2, rows) * 4, twofold, rng.lognormal(0, 1.2, rows) / 2]
    return np.column_stack(parts)
