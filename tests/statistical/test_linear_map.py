"""Probabilities of rotated copies: ρ(x, ε), the distribution of the rotation, and that levels do not add up."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests.statistical.conftest import Verdict

import sfumato as sf
from sfumato.attacks.evidence import arrays
from sfumato.attacks.evidence.arrays import Array
from sfumato.attacks.known_input import Span
from sfumato.audit.independence_tests import canonical_correlation_p, orthonormal_basis
from sfumato.audit.linear_map_checks import MappedCopy, linear_map_checks
from sfumato.kernels.hypersphere import best_breach_probability, cap_fraction, uniform_breach_probability
from sfumato.kernels.linear_map import random_orthogonal
from sfumato.release.evidence import copy_evidence

TRIALS = 40_000
DIMENSIONS = (1, 2, 3, 5, 20, 80)
REACHES = (0.3, 0.9, 1.2, 1.4, 1.43, 1.7, 1.95)
"""On both sides of √2."""


def printed(dimensions: int, reach: float) -> float:
    """giannella2010, eq. 14, as it is printed."""
    from scipy.integrate import quad
    from scipy.special import gamma

    m = dimensions
    factor = (m - 1) * gamma((m + 2) / 2) / (m * np.sqrt(np.pi) * gamma((m + 1) / 2))
    turn = np.arccos(abs(1 - reach**2 / 2))
    part = factor * quad(lambda angle: np.sin(angle) ** (m - 1), 0, turn)[0]
    return float(part if reach <= np.sqrt(2) else 1 - part)


@pytest.mark.statistical(checks=len(DIMENSIONS) * len(REACHES))
def test_caps_of_spheres(verdict: Verdict, rng: np.random.Generator) -> None:
    for size in DIMENSIONS:
        points = rng.normal(size=(TRIALS, size))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        away = np.linalg.norm(points - np.eye(size)[0], axis=1)
        for reach in REACHES:
            hits = int((away <= reach).sum())
            share = float(cap_fraction(size, np.array(reach)))
            p = stats.binomtest(hits, TRIALS, share).pvalue if 0 < share < 1 else float(hits == share * TRIALS)
            verdict.accept(p, f"{size} dimensions, reach {reach}")
            if size == 5 and reach == 1.2:
                verdict.reject(stats.binomtest(hits, TRIALS, printed(5, 1.2)).pvalue, "the formula as printed")


def test_the_cap_has_no_jump() -> None:
    for size in range(2, 120):
        below, at, above = cap_fraction(size, np.sqrt(2) + np.array([-1e-9, 0, 1e-9]))
        assert at == pytest.approx(0.5)
        assert above - below < 1e-7
        assert cap_fraction(size, np.array([0.0, 2.0, 3.0])).tolist() == [0, 1, 1]
    assert float(cap_fraction(3, np.array(0.5))) == pytest.approx(0.0625)
    assert printed(3, 1.4142) == pytest.approx(0.393, abs=1e-3)  # the paper's jump
    assert printed(3, 1.4143) == pytest.approx(0.607, abs=1e-3)
    assert (cap_fraction(0, np.array([0.0, 1.0])) == 1).all()


@pytest.mark.statistical(checks=2 * 7)
def test_rho_is_how_often_the_attack_succeeds(verdict: Verdict, rng: np.random.Generator) -> None:
    """The whole attack, from linked records to the guess, for `n - k` of 0, 1, 2, 3, 5, 20 and 80."""
    trials = 1500
    for unknown in (0, 1, 2, 3, 5, 20, 80):
        size, known = unknown + 3, 3
        records = rng.normal(size=(known + 1, size))
        records[-1, :known] *= 3
        turn = arrays.random_orthogonal(rng, size)
        span = Span.of(records[:known], records[:known] @ turn.T, translated=False)
        row = records[-1] @ turn.T
        away, length = span.distances(row[None])
        turn_back = span.random_completion(0)
        np.testing.assert_allclose(turn_back @ turn_back.T, np.eye(size), atol=1e-12)
        np.testing.assert_allclose(records[:known] @ turn.T @ turn_back, records[:known], atol=1e-9)
        guesses = np.array([row @ span.random_completion(seed) for seed in range(trials)])
        errors = np.linalg.norm(guesses - records[-1], axis=1)
        np.testing.assert_allclose(np.linalg.norm(guesses, axis=1), length[0], rtol=1e-9)
        nearest = np.linalg.norm(row @ span.projection() - records[-1])
        assert nearest == pytest.approx(away[0], abs=1e-9)
        for reach in (1.1, 1.6):  # in radii of the sphere, so through both branches
            allowed = np.array([reach * away[0] if unknown else 1.0])
            rho = float(uniform_breach_probability(unknown, away, allowed)[0])
            hits = int((errors <= allowed[0] + 1e-9).sum())
            p = stats.binomtest(hits, trials, rho).pvalue if 0 < rho < 1 else float(hits == rho * trials)
            verdict.accept(p, f"n - k = {unknown}, reach {reach}")
            best = float(best_breach_probability(unknown, away, allowed)[0])
            assert best >= rho
            assert (best == 1) == bool(nearest <= allowed[0] + 1e-9)
            if unknown == 3 and reach == 1.1:
                verdict.reject(stats.binomtest(hits, trials, printed(3, 1.1)).pvalue, "the formula as printed")


@pytest.mark.statistical(checks=1)
def test_the_best_guess_is_as_good_as_it_says(verdict: Verdict, rng: np.random.Generator) -> None:
    """A ball of 0.8 radii, centred where it covers most of the sphere."""
    points = rng.normal(size=(TRIALS, 6))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    centre = np.sqrt(1 - 0.8**2) * np.eye(6)[0]
    hits = int((np.linalg.norm(points - centre, axis=1) <= 0.8).sum())
    share = float(best_breach_probability(6, np.array([1.0]), np.array([0.8]))[0])
    verdict.accept(stats.binomtest(hits, TRIALS, share).pvalue, "off the middle")
    verdict.reject(stats.binomtest(hits, TRIALS, float(cap_fraction(6, np.array(0.8)))).pvalue, "a guess on the sphere")


@pytest.mark.statistical(checks=4)
def test_the_turn_is_uniform(verdict: Verdict, rng: np.random.Generator) -> None:
    """Of a uniform orthogonal matrix an entry squared is Beta((1, n-1)/2), and its determinant is a coin."""
    size, trials = 4, 3000
    turns = np.array([random_orthogonal(rng.normal(size=(size, size))) for _ in range(trials)])
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), np.broadcast_to(np.eye(size), turns.shape), atol=1e-12)
    for i, j in ((0, 0), (2, 1), (3, 3)):
        distribution = stats.beta(0.5, (size - 1) / 2)
        verdict.accept(stats.kstest(turns[:, i, j] ** 2, distribution.cdf).pvalue, f"entry {i}, {j}")
    heads = int((np.linalg.det(turns) > 0).sum())
    verdict.accept(stats.binomtest(heads, trials, 0.5).pvalue, "mirrored as often as not")
    skewed = np.linalg.qr(rng.normal(size=(trials, size, size)))[0]  # without the signs of the triangle
    verdict.reject(stats.binomtest(int((skewed[:, 0, 0] > 0).sum()), trials, 0.5).pvalue, "a plain factorisation")


def policy(levels: str, settings: str, size: int) -> sf.Policy:
    columns = "".join(f'c{i} = "rotation"\n' for i in range(size))
    return sf.Policy.loads(f'dataset = "d"\n[levels]\n{levels}[rotation]\n{settings}[columns]\n{columns}')


@pytest.mark.statistical(checks=3)
def test_two_noisy_levels_say_no_more_than_the_better_one(
    verdict: Verdict, rng: np.random.Generator, key: sf.Key
) -> None:
    """Given the better copy and the record itself, what the other one adds is noise: exactly, and for any attack."""
    rows, size = 40_000, 4
    values = rng.gamma(2.0, size=(rows, size)) @ rng.normal(size=(size, size))
    table = pa.table({f"c{i}": values[:, i] for i in range(size)})
    scheme = policy("a = 0.8\nb = 0.4\n", "noise = true\ntranslation = true\n", size).fit(table)
    better, worse = (_rows(copy) for copy in scheme.release_levels(table, ["a", "b"], key))
    original = _rows(scheme.arranged(table, key))
    seen = _with_one(np.hstack([original, better]))
    verdict.accept(
        canonical_correlation_p(orthonormal_basis(seen), orthonormal_basis(worse - better), 0.0), "the increment"
    )
    # another noise, seen through this turn: what another key's copy has beyond its records, carried over
    stranger = sf.Key.from_bytes(bytes(32))
    there = _with_one(_rows(scheme.arranged(table, stranger)))
    other = _rows(scheme.release(table, "b", stranger))
    theirs, ours = (np.linalg.lstsq(*pair, rcond=None)[0] for pair in ((there, other), (_with_one(original), worse)))
    noise = (other - there @ theirs) @ np.linalg.inv(theirs[:-1]) @ ours[:-1]
    independent = _with_one(original) @ ours + noise
    verdict.reject(
        canonical_correlation_p(orthonormal_basis(seen), orthonormal_basis(independent - better), 0.0),
        "noise of its own",
    )
    # and it says nothing of the turn: it has one size in all directions, which the shape of the data has not
    verdict.accept(_sphericity(worse - better), "the turn")
    verdict.reject(_sphericity((worse - better) @ np.linalg.cholesky(np.cov(better.T))), "noise in the data's shape")
    # the best linear estimate from both is that from the better one
    alone, both = (_left(original, part) for part in (better, np.hstack([better, worse])))
    verdict.accept(stats.f.sf(max(alone / both - 1, 0) * rows / size, size * size, rows), "the best linear estimate")
    naive = _left(original, np.hstack([better, independent]))
    verdict.reject(stats.f.sf(max(alone / naive - 1, 0) * rows / size, size * size, rows), "noise of its own")


@pytest.mark.statistical(checks=30)
def test_checks_of_noise_before_a_turn_raise_no_false_alarm(verdict: Verdict, rng: np.random.Generator) -> None:
    """Thirty keys, five columns; and noise that is five per cent larger than stated."""
    real = rng.gamma(2.0, size=(4000, 5)) @ rng.normal(size=(5, 5))
    table = pa.table({f"c{i}": real[:, i] for i in range(5)})
    scheme = policy("a = 0.8\nb = 0.4\n", 'noise = true\nshuffle = false\naccept = "this is a test"\n', 5).fit(table)
    for turn in range(30):
        copy = scheme.release(table, "a", sf.Key.from_bytes(rng.bytes(32)))
        [part] = copy_evidence(copy, sf.Manifest.of(copy)).linear_maps
        [check] = linear_map_checks([MappedCopy.of("a", part, arrays.records(real))])
        verdict.accept(check.p_value, f"key {turn}")
    small = tuple(tuple(x / 1.05**2 for x in line) for line in part.model.covariance)
    other = dataclasses.replace(part, model=dataclasses.replace(part.model, covariance=small))
    [check] = linear_map_checks([MappedCopy.of("a", other, arrays.records(real))])
    verdict.reject(check.p_value, "larger noise than stated")


def _rows(table: pa.Table) -> Array:
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names])


def _sphericity(values: Array) -> float:
    """Mauchly's test, for many rows."""
    size = values.shape[1]
    spread = np.cov(values.T)
    ratio = np.linalg.slogdet(spread)[1] - size * np.log(np.trace(spread) / size)
    return float(stats.chi2.sf(-len(values) * ratio, size * (size + 1) / 2 - 1))


def _with_one(values: Array) -> Array:
    return np.column_stack([values, np.ones(len(values))])


def _left(original: Array, seen: Array) -> float:
    """The mean square that the best linear estimate leaves."""
    known = _with_one(seen)
    guess = known @ np.linalg.lstsq(known, original, rcond=None)[0]
    return float(np.square((guess - original) / original.std(axis=0)).mean())
