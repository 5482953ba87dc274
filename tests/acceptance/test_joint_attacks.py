"""Attacks on whole records, on real ones and on columns with spikes, beside those on single columns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import ATTACKS, Evidence, Records, Score, score
from sfumato.experiments._data import adult_table
from sfumato.release.evidence import copy_evidence, original_records
from sfumato.release.manifest import Manifest

ROWS = 12_000


def attacked(table: pa.Table, fidelity: float) -> tuple[Evidence, Records]:
    """A copy with plain noise as evidence, and the truth."""
    policy = dataclasses.replace(sf.Policy.suggest(table, dataset="t", plain_noise=True), order="keep", digits=16)
    copy = policy.fit(table).release(table, fidelity, sf.Key.from_bytes(bytes(range(32))))
    manifest = Manifest.of(copy)
    return copy_evidence(copy, manifest), original_records(table, manifest.models)


def scored(name: str, evidence: Evidence, truth: Records) -> Score:
    return score(ATTACKS[name]().estimate(evidence), truth)


@pytest.fixture(scope="module", params=[0.7, 0.3])
def adult(request: pytest.FixtureRequest) -> tuple[Evidence, Records]:
    return attacked(adult_table().slice(0, ROWS), request.param)


def test_categories_are_inferred_from_all_other_columns(adult: tuple[Evidence, Records]) -> None:
    """Education and its number tell each other, as do relationship, sex and marital status; no record is known."""
    alone, together = (scored(name, *adult) for name in ("collusion", "noisy-labels"))
    for column, gain in (("education", 0.04), ("relationship", 0.03), ("sex", 0.02), ("marital-status", 0.03)):
        before, after = (one.category(column).success.attack.estimate for one in (alone, together))
        assert after > before + gain, column


def test_numbers_are_estimated_from_categories_too(adult: tuple[Evidence, Records]) -> None:
    alone, together = (scored(name, *adult) for name in ("bayes", "latent-class"))
    for column, gain in (("age", 0.02), ("hours-per-week", 0.01), ("capital-gain", 0.15)):
        before, after = (one.number(column).error.attack.estimate for one in (alone, together))
        assert after < before - gain, column


def test_atoms_are_found_behind_the_noise() -> None:
    """A column of two values is read by its atoms; without them the same classes leave more."""
    rng = np.random.default_rng(0)
    spikes = np.where(rng.random(6000) < 0.3, 10.0, 0.0) + np.where(rng.random(6000) < 0.2, 3.0, 0.0)
    table = pa.table({"spiky": spikes, "smooth": rng.normal(size=6000)})
    policy = sf.Policy.loads(
        'dataset="s"\norder="keep"\n[levels]\nl=0.9\n[columns]\nspiky="gaussian"\nsmooth="gaussian"'
    )
    copy = policy.fit(table).release(table, "l", sf.Key.from_bytes(bytes(range(32))))
    manifest = Manifest.of(copy)
    evidence, truth = copy_evidence(copy, manifest), original_records(table, manifest.models)
    linear = scored("bayes", evidence, truth).number("spiky").error.attack.estimate
    found = scored("latent-class", evidence, truth)
    assert found.number("spiky").error.attack.estimate < linear / 2
    assert found.number("smooth").error.attack.estimate < 0.115  # which has no atoms: 1 - 0.9, and the fit's own error


def test_a_category_that_tells_nothing_of_others_is_not_made_up() -> None:
    rng = np.random.default_rng(0)
    columns = {name: np.array(list("abcd"))[rng.integers(0, 4, ROWS)] for name in ("x", "y", "z")}
    evidence, truth = attacked(pa.table({**columns, "n": rng.normal(size=ROWS)}), 0.4)
    alone, together = (scored(name, evidence, truth) for name in ("collusion", "noisy-labels"))
    for column in columns:
        before, after = (one.category(column).success.attack.estimate for one in (alone, together))
        assert abs(after - before) < 0.02
