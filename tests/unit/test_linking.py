"""Finding known records among turned ones: exact on ties, duplicates and lattices."""

from __future__ import annotations

import dataclasses
from itertools import combinations, permutations, product

import numpy as np
import pytest

from sfumato.attacks import ATTACKS
from sfumato.attacks.linkage.distances import link_by_distance
from sfumato.attacks.linkage.inner_products import Rotated, Search, link, uniquely_valid
from sfumato.attacks.linkage.signs import by_moments
from sfumato.errors import AttackError
from sfumato.experiments import _array_evidence as lab

FINE = 1e-9


def valid(known: lab.Array, rows: lab.Array, *, translated: bool = False) -> list[tuple[int, ...]]:
    """All assignments that keep what a motion keeps, by trying every one."""

    def kept(one: lab.Array) -> lab.Array:
        if translated:
            return np.square(one[:, None] - one[None, :]).sum(axis=2)
        return one @ one.T

    wanted = kept(known)
    tried = permutations(range(len(rows)), len(known))
    return [some for some in tried if np.abs(kept(rows[list(some)]) - wanted).max() < 1e-6]


def agreed(found: list[tuple[int, ...]], rows: lab.Array) -> set[int]:
    """The records on whose value all assignments agree."""
    return {
        i for i in range(len(found[0])) if all(np.abs(rows[some[i]] - rows[found[0][i]]).max() < 1e-6 for some in found)
    }


def maximal(known: lab.Array, rows: lab.Array) -> set[int]:
    """The paper's largest set whose only valid assignment there is, by trying every subset."""
    for size in range(len(known), 0, -1):
        for some in combinations(range(len(known)), size):
            found = valid(known[list(some)], rows)
            if len(agreed(found, rows)) == size:
                return set(some)
    return set()


@pytest.mark.parametrize("turn", range(60))
def test_it_is_what_trying_everything_finds(turn: int) -> None:
    """Small lattices have many ties: records of one length, mirror images, equal rows."""
    rng = np.random.default_rng([turn, 5])
    rows = rng.integers(-2, 3, size=(7, 2)).astype(float)
    known = rows[rng.choice(7, 3, replace=False)]
    if len(np.unique(known, axis=0)) < 3 or not np.abs(known).sum(axis=1).all():
        known = np.unique(known[np.abs(known).sum(axis=1) > 0], axis=0)
    if not len(known):
        return
    moved = rows @ lab.orthogonal(rng, 2).T
    distinct = moved[np.unique(np.round(moved, 6), axis=0, return_index=True)[1]]
    i, j = link(known, Rotated(moved, FINE))
    assert set(i.tolist()) == agreed(valid(known, distinct), distinct)
    truth = {tuple(np.round(row, 6)): tuple(record) for row, record in zip(moved, rows, strict=True)}
    assert all(truth[tuple(np.round(moved[b], 6))] == tuple(known[a]) for a, b in zip(i, j, strict=True))
    paper = maximal(known, distinct)
    assert set(uniquely_valid(known, Rotated(moved, FINE)).tolist()) == paper
    assert paper <= set(i.tolist())


@pytest.mark.parametrize("turn", range(20))
def test_with_a_translation_only_distances_tell(turn: int) -> None:
    rng = np.random.default_rng([turn, 6])
    rows = np.unique(rng.integers(-3, 4, size=(8, 2)).astype(float), axis=0)
    known = rows[rng.choice(len(rows), 4, replace=False)]
    moved = rows @ lab.orthogonal(rng, 2).T + 50 * rng.normal(size=2)
    i, j = link_by_distance(known, moved, FINE)
    assert set(i.tolist()) == agreed(valid(known, moved, translated=True), moved)
    assert (rows[j] == known[i]).all()


def test_equal_rows_are_one(rng: np.random.Generator) -> None:
    rows = np.repeat(rng.integers(0, 9, size=(60, 5)).astype(float), 3, axis=0)
    moved = rows @ lab.orthogonal(rng, 5).T
    known = rows[[0, 1, 9, 30, 60]]
    i, j = link(known, Rotated(moved, FINE))
    assert len(i) == 4  # the first two are the same
    assert (rows[j] == known[i]).all()


def test_strangers_are_left_out(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(500, 6))
    known = np.vstack([rows[:4], rng.normal(size=(2, 6))])
    i, j = link(known, Rotated(rows @ lab.orthogonal(rng, 6).T, FINE))
    assert sorted(i.tolist()) == sorted(j.tolist()) == [0, 1, 2, 3]
    assert not len(link(rng.normal(size=(3, 6)), Rotated(rows, FINE))[0])


def test_a_coarse_lattice_is_tolerated(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(3000, 8))
    moved = np.round(rows @ lab.orthogonal(rng, 8).T, 3)
    i, j = link(rows[:10], Rotated(moved, 0.0005 * 8**0.5))
    assert (i == j).all()
    assert len(i) == 10
    assert not len(link(rows[:10], Rotated(moved, 1e-9))[0])  # too small a tolerance links nothing


def test_a_hopeless_search_claims_nothing() -> None:
    """A regular polygon looks the same from everywhere."""
    angles = np.arange(40) * 2 * np.pi / 40
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    assert not len(link(rows[:12], Rotated(rows, FINE))[0])
    assert not len(link_by_distance(rows[:5], rows, FINE)[0])
    assert not len(link_by_distance(rows[:2], rows, FINE)[0])


def test_pruning_changes_nothing(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 6, size=(400, 4)).astype(float)
    known, released = np.unique(rows[:6], axis=0), Rotated(rows @ lab.orthogonal(rng, 4).T, FINE)
    candidates = [released.distinct(some) for some in released.candidates(known)]
    both = [Search.of(known, released, candidates, prune=prune) for prune in (True, False)]
    found = [search.backbone() for search in both]
    assert found[0] is not None
    assert found[1] is not None
    assert set(found[0].tolist()) == set(found[1].tolist())


def test_noise_is_refused(rng: np.random.Generator) -> None:
    model = dataclasses.replace(lab.turned_model(3), noise=0.1)
    with pytest.raises(AttackError, match="carry noise"):
        ATTACKS["known-input"]().estimate(lab.turned(rng.normal(size=(50, 3)), model, known=rng.normal(size=(4, 3))))


def test_blocks_claim_nothing_that_chance_could_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all pairs of rows can be compared, three records of a lattice lie somewhere like any other three."""
    from sfumato.attacks.linkage import distances as _distances

    monkeypatch.setattr(_distances, "_ALL", 0)
    rng = np.random.default_rng(8)
    rows = rng.integers(0, 20, size=(3000, 5)).astype(float)
    moved = rows @ lab.orthogonal(rng, 5).T + 9
    assert not len(link_by_distance(rows[:3], moved, FINE)[0])
    real = rng.normal(size=(3000, 5))
    i, j = link_by_distance(real[:12], real @ lab.orthogonal(rng, 5).T + 9, FINE)
    assert (i == j).all()
    assert len(i) == 12


def test_a_far_origin_does_no_harm(rng: np.random.Generator) -> None:
    rows = np.rint(rng.normal(size=(1000, 3)) * 100)
    moved = rows @ lab.orthogonal(rng, 3).T + 1000 * rng.normal(size=3)
    i, j = link_by_distance(rows[:6] + 1e8, moved, FINE)
    assert (rows[j] == rows[i]).all()
    assert len(i) == 6


def test_one_who_is_absent_does_not_hide_the_others(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 10, size=(2000, 4)).astype(float)
    absent = rows[7][[1, 2, 3, 0]]  # of a length that occurs
    assert not (rows == absent).all(axis=1).any()
    known = np.vstack([rows[:6], absent])
    i, j = link(known, Rotated(rows @ lab.orthogonal(rng, 4).T, FINE))
    assert len(i) >= 5
    assert 6 not in i
    assert (rows[j] == known[i]).all()


@pytest.mark.parametrize("turn", range(12))
def test_signs_by_moments_are_what_trying_all_of_them_finds(turn: int) -> None:
    """The agreement of means and of all third moments, over all `2^n` mirrorings."""
    rng = np.random.default_rng([turn, 7])
    sample, copy = (rng.gamma(1.0, size=(60, 5)) @ rng.normal(size=(5, 5)) for _ in range(2))
    first = sample.mean(axis=0) * copy.mean(axis=0)
    thirds = [np.einsum("ri,rj,rk->ijk", *(part - part.mean(axis=0),) * 3) / 60 for part in (sample, copy)]

    def agreement(signs: lab.Array) -> float:
        return float(first @ signs + np.einsum("ijk,i,j,k", thirds[0] * thirds[1], signs, signs, signs) / 6)

    every = [np.array(signs) for signs in product((1.0, -1.0), repeat=5)]
    assert (by_moments(sample, copy)[0] == max(every, key=agreement)).all()
