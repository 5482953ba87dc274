"""Record linkage under a rotation: exact with ties, duplicates and lattices."""

from __future__ import annotations

import dataclasses
from itertools import combinations, permutations, product

import numpy as np
import pytest

from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import Array, linear_map_model, mapped_copy, random_orthogonal
from sfumato.attacks.linkage.distances import link_by_distance
from sfumato.attacks.linkage.inner_products import AssignmentSearch, ReleasedRows, link, uniquely_valid
from sfumato.attacks.linkage.signs import signs_by_moments
from sfumato.errors import AttackError

FINE = 1e-9


def valid(known: Array, rows: Array, *, translated: bool = False) -> list[tuple[int, ...]]:
    """All assignments that preserve inner products, or distances, by enumeration."""

    def preserved(one: Array) -> Array:
        if translated:
            return np.square(one[:, None] - one[None, :]).sum(axis=2)
        return one @ one.T

    target = preserved(known)
    assignments = permutations(range(len(rows)), len(known))
    return [some for some in assignments if np.abs(preserved(rows[list(some)]) - target).max() < 1e-6]


def agreed(found: list[tuple[int, ...]], rows: Array) -> set[int]:
    """The records on whose value all assignments agree."""
    return {
        i for i in range(len(found[0])) if all(np.abs(rows[some[i]] - rows[found[0][i]]).max() < 1e-6 for some in found)
    }


def maximal(known: Array, rows: Array) -> set[int]:
    """The paper's maximal uniquely valid set, by enumeration of all subsets."""
    for size in range(len(known), 0, -1):
        for some in combinations(range(len(known)), size):
            found = valid(known[list(some)], rows)
            if len(agreed(found, rows)) == size:
                return set(some)
    return set()


@pytest.mark.parametrize("run", range(60))
def test_linkage_agrees_with_enumeration(run: int) -> None:
    """Small lattices have many ties: records of equal length, reflections, equal rows."""
    rng = np.random.default_rng([run, 5])
    rows = rng.integers(-2, 3, size=(7, 2)).astype(float)
    known = rows[rng.choice(7, 3, replace=False)]
    if len(np.unique(known, axis=0)) < 3 or not np.abs(known).sum(axis=1).all():
        known = np.unique(known[np.abs(known).sum(axis=1) > 0], axis=0)
    if not len(known):
        return
    released = rows @ random_orthogonal(rng, 2).T
    distinct = released[np.unique(np.round(released, 6), axis=0, return_index=True)[1]]
    i, j = link(known, ReleasedRows(released, FINE))
    assert set(i.tolist()) == agreed(valid(known, distinct), distinct)
    truth = {tuple(np.round(row, 6)): tuple(record) for row, record in zip(released, rows, strict=True)}
    assert all(truth[tuple(np.round(released[b], 6))] == tuple(known[a]) for a, b in zip(i, j, strict=True))
    paper = maximal(known, distinct)
    assert set(uniquely_valid(known, ReleasedRows(released, FINE)).tolist()) == paper
    assert paper <= set(i.tolist())


@pytest.mark.parametrize("run", range(20))
def test_linkage_by_distances_agrees_with_enumeration(run: int) -> None:
    rng = np.random.default_rng([run, 6])
    rows = np.unique(rng.integers(-3, 4, size=(8, 2)).astype(float), axis=0)
    known = rows[rng.choice(len(rows), 4, replace=False)]
    released = rows @ random_orthogonal(rng, 2).T + 50 * rng.normal(size=2)
    i, j = link_by_distance(known, released, FINE)
    assert set(i.tolist()) == agreed(valid(known, released, translated=True), released)
    assert (rows[j] == known[i]).all()


def test_equal_rows_count_as_one(rng: np.random.Generator) -> None:
    rows = np.repeat(rng.integers(0, 9, size=(60, 5)).astype(float), 3, axis=0)
    released = rows @ random_orthogonal(rng, 5).T
    known = rows[[0, 1, 9, 30, 60]]
    i, j = link(known, ReleasedRows(released, FINE))
    assert len(i) == 4  # the first two are the same
    assert (rows[j] == known[i]).all()


def test_records_that_are_not_in_the_copy_are_left_out(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(500, 6))
    known = np.vstack([rows[:4], rng.normal(size=(2, 6))])
    i, j = link(known, ReleasedRows(rows @ random_orthogonal(rng, 6).T, FINE))
    assert sorted(i.tolist()) == sorted(j.tolist()) == [0, 1, 2, 3]
    assert not len(link(rng.normal(size=(3, 6)), ReleasedRows(rows, FINE))[0])


def test_a_coarse_lattice_is_tolerated(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(3000, 8))
    released = np.round(rows @ random_orthogonal(rng, 8).T, 3)
    i, j = link(rows[:10], ReleasedRows(released, 0.0005 * 8**0.5))
    assert (i == j).all()
    assert len(i) == 10
    assert not len(link(rows[:10], ReleasedRows(released, 1e-9))[0])  # too small a tolerance links nothing


def test_an_ambiguous_search_claims_nothing() -> None:
    """A regular polygon is invariant under rotations."""
    angles = np.arange(40) * 2 * np.pi / 40
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    assert not len(link(rows[:12], ReleasedRows(rows, FINE))[0])
    assert not len(link_by_distance(rows[:5], rows, FINE)[0])
    assert not len(link_by_distance(rows[:2], rows, FINE)[0])


def test_pruning_does_not_change_the_result(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 6, size=(400, 4)).astype(float)
    known, released = np.unique(rows[:6], axis=0), ReleasedRows(rows @ random_orthogonal(rng, 4).T, FINE)
    candidates = [released.distinct(some) for some in released.candidates(known)]
    both = [AssignmentSearch.of(known, released, candidates, prune=prune) for prune in (True, False)]
    found = [search.backbone() for search in both]
    assert found[0] is not None
    assert found[1] is not None
    assert set(found[0].tolist()) == set(found[1].tolist())


def test_noise_is_refused(rng: np.random.Generator) -> None:
    model = dataclasses.replace(linear_map_model(3), noise=0.1)
    with pytest.raises(AttackError, match="carry noise"):
        ATTACKS["known-input"]().estimate(mapped_copy(rng.normal(size=(50, 3)), model, known=rng.normal(size=(4, 3))))


def test_blocks_claim_no_accidental_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all pairs of rows can be compared, three records of a lattice match many other triples."""
    from sfumato.attacks.linkage import distances

    monkeypatch.setattr(distances, "_EXHAUSTIVE", 0)
    rng = np.random.default_rng(8)
    rows = rng.integers(0, 20, size=(3000, 5)).astype(float)
    released = rows @ random_orthogonal(rng, 5).T + 9
    assert not len(link_by_distance(rows[:3], released, FINE)[0])
    real = rng.normal(size=(3000, 5))
    i, j = link_by_distance(real[:12], real @ random_orthogonal(rng, 5).T + 9, FINE)
    assert (i == j).all()
    assert len(i) == 12


def test_a_distant_origin_does_not_matter(rng: np.random.Generator) -> None:
    rows = np.rint(rng.normal(size=(1000, 3)) * 100)
    released = rows @ random_orthogonal(rng, 3).T + 1000 * rng.normal(size=3)
    i, j = link_by_distance(rows[:6] + 1e8, released, FINE)
    assert (rows[j] == rows[i]).all()
    assert len(i) == 6


def test_one_who_is_absent_does_not_hide_the_others(rng: np.random.Generator) -> None:
    rows = rng.integers(0, 10, size=(2000, 4)).astype(float)
    absent = rows[7][[1, 2, 3, 0]]  # of a length that occurs
    assert not (rows == absent).all(axis=1).any()
    known = np.vstack([rows[:6], absent])
    i, j = link(known, ReleasedRows(rows @ random_orthogonal(rng, 4).T, FINE))
    assert len(i) >= 5
    assert 6 not in i
    assert (rows[j] == known[i]).all()


@pytest.mark.parametrize("run", range(12))
def test_signs_by_moments_agree_with_enumeration(run: int) -> None:
    """The agreement of means and of all third moments, over all `2^n` reflections."""
    rng = np.random.default_rng([run, 7])
    sample, copy = (rng.gamma(1.0, size=(60, 5)) @ rng.normal(size=(5, 5)) for _ in range(2))
    first = sample.mean(axis=0) * copy.mean(axis=0)
    thirds = [np.einsum("ri,rj,rk->ijk", *(part - part.mean(axis=0),) * 3) / 60 for part in (sample, copy)]

    def agreement(signs: Array) -> float:
        return float(first @ signs + np.einsum("ijk,i,j,k", thirds[0] * thirds[1], signs, signs, signs) / 6)

    every = [np.array(signs) for signs in product((1.0, -1.0), repeat=5)]
    assert (signs_by_moments(sample, copy)[0] == max(every, key=agreement)).all()
