"""What every attack must do, ours or a stranger's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from sfumato.attacks import ATTACKS, Attack, Evidence, Knowledge, score
from sfumato.errors import AttackError
from sfumato.experiments import _array_evidence as lab
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation
from sfumato.models.uniform_replacement import UniformReplacement

ROWS, SIZE = 4000, 6
COVARIANCE = np.array([[4.0, 1.5, 0.0], [1.5, 1.0, 0.2], [0.0, 0.2, 9.0]])

PARAMETERS: dict[str, dict[str, Any]] = {
    "ndr": {},
    "udr": {"density": "gaussian"},
    "pca": {"components": 2},
    "spectral": {"margin": 0.0},
    "bayes": {"shrink": False},
    "mixture": {"components": 3},
    "llse": {},
    "average": {},
    "difference": {},
    "collusion": {},
    "vote": {},
    "learned": {"iterations": 20},
    "known-input": {"guess": "uniform", "most": 5},
    "known-sample": {"method": "moments", "shift": "differences", "components": 2},
    "ica": {},
}


def test_every_attack_is_tested() -> None:
    assert set(ATTACKS.names()) == set(PARAMETERS)


def attack(name: str) -> Attack:
    made: Attack = ATTACKS[name]()
    return made


@pytest.fixture(params=sorted(PARAMETERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def numbers(rng: np.random.Generator, times: tuple[float, ...]) -> tuple[lab.Array, Evidence]:
    """Records, and copies of them on one path; the attacker knows every tenth."""
    real = rng.normal(size=(ROWS, 3)) @ np.linalg.cholesky(COVARIANCE).T + [5.0, -2.0, 100.0]
    path, seen, before = np.zeros((ROWS, 3)), [], 0.0
    for time in times:
        path = path + np.sqrt(time - before) * rng.normal(size=(ROWS, 3)) @ np.linalg.cholesky(COVARIANCE).T
        before = time
        seen.append(real + path)
    places = np.arange(0, ROWS, 10)
    knowledge = Knowledge(known=lab.truth(real[places]), places=places)
    return real, lab.copies(seen, COVARIANCE, times, collusion_resistant=True, knowledge=knowledge)


def categories(rng: np.random.Generator, kept: tuple[float, ...]) -> tuple[lab.Array, Evidence]:
    real = rng.choice(SIZE, ROWS, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    codes, seen, before = real, [], 1.0
    for retention in kept:
        stays = rng.random(ROWS) < retention / before
        codes, before = np.where(stays, codes, rng.integers(0, SIZE, ROWS)), retention
        seen.append(codes)
    places = np.arange(0, ROWS, 10)
    knowledge = Knowledge(known=lab.truth(np.empty((len(places), 0)), real[places]), places=places)
    return real, lab.categories(seen, SIZE, kept, collusion_resistant=True, knowledge=knowledge)


def test_it_says_what_it_is(name: str) -> None:
    made = attack(name)
    assert made.name == name
    assert made.reference
    assert made.supports <= {GaussianNoise.kind, UniformReplacement.kind, Rotation.kind, Projection.kind}
    assert (type(made).__doc__ or "").split("\n")[0].endswith((".", ")."))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.anything = 1  # type: ignore[attr-defined]
    for option, value in PARAMETERS[name].items():
        assert getattr(ATTACKS[name](**{option: value}), option) == value
    with pytest.raises(TypeError):
        ATTACKS[name](1)  # parameters are named


def test_it_refuses_what_it_does_not_support_by_name(name: str, rng: np.random.Generator) -> None:
    for kind, made in ((GaussianNoise.kind, numbers), (UniformReplacement.kind, categories)):
        evidence = made(rng, (0.25, 1.0) if made is numbers else (0.6, 0.3))[1]
        if kind in attack(name).supports:
            attack(name).estimate(evidence)
        else:
            with pytest.raises(AttackError, match=f"'{name}' undoes .* hold {kind}"):
                attack(name).estimate(evidence)
    with pytest.raises(AttackError, match="nothing blurred"):
        attack(name).estimate(Evidence(10))


def test_it_beats_a_guess_without_copies_when_the_noise_is_small(name: str, rng: np.random.Generator) -> None:
    if GaussianNoise.kind in attack(name).supports:
        real, evidence = numbers(rng, (0.1, 0.15))
        found = score(attack(name).estimate(evidence), lab.truth(real))
        assert all(column.error.attack.high < column.error.baseline.value for column in found.numbers)
        assert all(column.error.control.low > column.error.attack.high for column in found.numbers)
    if UniformReplacement.kind in attack(name).supports:
        codes, evidence = categories(rng, (0.8, 0.6))
        found = score(attack(name).estimate(evidence), lab.truth(np.empty((ROWS, 0)), codes))
        assert found.categories[0].success.attack.low > found.categories[0].success.baseline.high
        assert found.categories[0].success.control.high < found.categories[0].success.attack.low


def test_it_finds_nothing_in_pure_noise(name: str, rng: np.random.Generator) -> None:
    """An estimate from copies of other records has nothing to do with these: six standard errors at most."""
    if GaussianNoise.kind in attack(name).supports:
        real, evidence = numbers(rng, (1.0, 2.0))
        other = numbers(rng, (1.0,))[0]
        guess = attack(name).estimate(evidence).values
        for column in range(3):
            assert abs(np.corrcoef(guess[:, column], other[:, column])[0, 1]) < 6 / np.sqrt(ROWS)
        assert max(np.corrcoef(guess[:, i], real[:, i])[0, 1] for i in range(3)) > 0.3  # the check can fail
    if UniformReplacement.kind in attack(name).supports:
        codes, evidence = categories(rng, (1e-6, 1e-7))
        found = score(attack(name).estimate(evidence), lab.truth(np.empty((ROWS, 0)), codes)).categories[0].success
        most = found.baseline.value + 6 * 0.5 / np.sqrt(ROWS)
        assert found.attack.value < most + (0.05 if name == "learned" else 0)  # it knows a tenth of them


def test_what_it_learnt_can_be_applied_batch_by_batch(name: str, rng: np.random.Generator) -> None:
    for kind, made in ((GaussianNoise.kind, numbers), (UniformReplacement.kind, categories)):
        if kind not in attack(name).supports:
            continue
        evidence = made(rng, (0.25, 1.0) if made is numbers else (0.6, 0.3))[1]
        guess = attack(name).prepare(evidence)
        whole, part = guess(evidence), guess(evidence.take(np.arange(100, 200)))
        np.testing.assert_allclose(part.values, whole.values[100:200], rtol=1e-9, atol=1e-9)
        for belief, some in zip(whole.beliefs, part.beliefs, strict=True):
            assert (belief.guess()[100:200] == some.guess()).all()


def test_units_do_not_matter(name: str, rng: np.random.Generator) -> None:
    """Estimates follow when columns are measured in other units, from another origin."""
    if GaussianNoise.kind not in attack(name).supports:
        return
    real, evidence = numbers(rng, (0.5, 1.0))
    units, origin = np.array([1e6, 1e-6, 3.0]), np.array([-2e6, 5e-6, 7.0])
    scaled = lab.copies(
        [part.values * units + origin for part in evidence.numbers],
        COVARIANCE * np.outer(units, units),
        (0.5, 1.0),
        collusion_resistant=True,
        knowledge=Knowledge(known=lab.truth(real[::10] * units + origin), places=np.arange(0, ROWS, 10)),
    )
    one, two = attack(name).estimate(evidence).values, attack(name).estimate(scaled).values
    tolerance = 0.02 if name in ("learned", "mixture") else 1e-5  # trees and clusters break ties otherwise
    np.testing.assert_allclose((two - origin) / units, one, atol=tolerance * 3, rtol=0)


def test_missing_numbers_stay_missing(name: str, rng: np.random.Generator) -> None:
    if GaussianNoise.kind not in attack(name).supports:
        return
    real, evidence = numbers(rng, (0.5, 1.0))
    hole = np.zeros((ROWS, 3), bool)
    hole[::7, 1] = True
    holed = [dataclasses.replace(p, values=np.where(hole, np.nan, p.values)) for p in evidence.numbers]
    guess = attack(name).estimate(dataclasses.replace(evidence, numbers=tuple(holed))).values
    assert np.isfinite(guess[~hole]).all()
    if name != "learned":  # which guesses them from the other columns
        assert np.isnan(guess[hole]).all()
    found = score(attack(name).estimate(dataclasses.replace(evidence, numbers=tuple(holed))), lab.truth(real))
    assert np.isfinite([column.rmse.attack.value for column in found.numbers]).all()


def turned(rng: np.random.Generator) -> tuple[lab.Array, Evidence]:
    """Skewed records, turned, and two hundred of them, known."""
    real = rng.gamma(2.0, size=(ROWS, 3)) @ np.array([[3.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 7.0]]) + 4
    evidence = lab.turned(real @ lab.orthogonal(rng, 3).T, lab.turned_model(3), known=real[:200])
    return real, evidence


TURNING = sorted(name for name in PARAMETERS if Rotation.kind in ATTACKS[name].supports)


@pytest.mark.parametrize("name", TURNING)
def test_it_turns_records_back(name: str, rng: np.random.Generator) -> None:
    real, evidence = turned(rng)
    found = score(attack(name).estimate(evidence), lab.truth(real))
    assert all(column.error.attack.high < 0.5 for column in found.numbers)
    assert all(column.error.control.low > 1 for column in found.numbers)
    assert attack(name).estimate(evidence).explanation


@pytest.mark.parametrize("name", TURNING)
def test_it_turns_back_batch_by_batch_and_keeps_what_is_missing(name: str, rng: np.random.Generator) -> None:
    _, evidence = turned(rng)
    [part] = evidence.turned
    holed = np.where((np.arange(ROWS) % 9 == 0)[:, None], np.nan, part.values)
    some = dataclasses.replace(evidence, turned=(dataclasses.replace(part, values=holed),))
    guess = attack(name).ready(some)
    whole, piece = guess(some), guess(some.take(np.arange(100, 200)))
    np.testing.assert_allclose(piece.values, whole.values[100:200], rtol=1e-9)
    assert (np.isnan(whole.values).all(axis=1) == (np.arange(ROWS) % 9 == 0)).all()


@pytest.mark.parametrize("name", TURNING)
def test_it_needs_to_know_something(name: str, rng: np.random.Generator) -> None:
    _, evidence = turned(rng)
    with pytest.raises(AttackError, match="declare some"):
        attack(name).estimate(dataclasses.replace(evidence, knowledge=Knowledge()))
    few = dataclasses.replace(evidence, knowledge=Knowledge(known=lab.truth(np.full((1, 3), np.nan))))
    with pytest.raises(AttackError, match=r"there are none"):
        attack(name).estimate(few)
