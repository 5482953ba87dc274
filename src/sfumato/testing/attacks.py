"""The conformance suite of attacks: refusals by name, gain over the baseline, nothing found in noise, equivariance."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.attacks import Attack, AttackError, Evidence, Knowledge, score
from sfumato.attacks.evidence.arrays import (
    Array,
    categorical_copies,
    linear_map_model,
    mapped_copy,
    noisy_copies,
    random_orthogonal,
    records,
)
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.testing._checks import refuses, require, run

ROWS, SIZE = 4000, 6
COVARIANCE = np.array([[4.0, 1.5, 0.0], [1.5, 1.0, 0.2], [0.0, 0.2, 9.0]])
_SIX_DEVIATIONS = 6 / np.sqrt(ROWS)
_KNOWN = np.arange(0, ROWS, 10)


def check_attack(attack: type[Attack]) -> None:
    """Run the conformance suite on an attack class."""
    run(attack.__name__, _CHECKS, attack)
    for kind, checks in _CHECKS_BY_KIND.items():
        if kind in attack.supports:
            run(f"{attack.__name__} on {kind}", checks, attack)


def numeric_copies(scales: Sequence[float]) -> tuple[Array, Evidence]:
    """Records, and copies of them on one path; the attacker knows every tenth record."""
    rng = np.random.default_rng(11)
    factor = np.linalg.cholesky(COVARIANCE).T
    original = rng.normal(size=(ROWS, 3)) @ factor + [5.0, -2.0, 100.0]
    noise, copies, before = np.zeros((ROWS, 3)), [], 0.0
    for scale in scales:
        noise = noise + np.sqrt(scale - before) * rng.normal(size=(ROWS, 3)) @ factor
        before = scale
        copies.append(original + noise)
    knowledge = Knowledge(known=records(original[_KNOWN]), known_rows=_KNOWN)
    return original, noisy_copies(copies, COVARIANCE, scales, collusion_resistant=True, knowledge=knowledge)


def category_copies(retentions: Sequence[float]) -> tuple[Array, Evidence]:
    """Categories, and copies of them on one path; the attacker knows every tenth record."""
    rng = np.random.default_rng(12)
    original = rng.choice(SIZE, ROWS, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    codes, copies, before = original, [], 1.0
    for retention in retentions:
        stays = rng.random(ROWS) < retention / before
        codes, before = np.where(stays, codes, rng.integers(0, SIZE, ROWS)), retention
        copies.append(codes)
    knowledge = Knowledge(known=records(np.empty((len(_KNOWN), 0)), original[_KNOWN]), known_rows=_KNOWN)
    return original, categorical_copies(copies, SIZE, retentions, collusion_resistant=True, knowledge=knowledge)


def rotated_copy() -> tuple[Array, Evidence]:
    """Skewed records, rotated; the attacker knows two hundred of them."""
    rng = np.random.default_rng(13)
    mixing = np.array([[3.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 7.0]])
    original = rng.gamma(2.0, size=(ROWS, 3)) @ mixing + 4
    rows = original @ random_orthogonal(rng, 3).T
    return original, mapped_copy(rows, linear_map_model(3), known=original[:200], known_rows=np.arange(200))


_MADE: dict[str, Callable[[], tuple[Array, Evidence]]] = {
    GaussianNoise.kind: lambda: numeric_copies((0.25, 1.0)),
    UniformReplacement.kind: lambda: category_copies((0.6, 0.3)),
    Rotation.kind: rotated_copy,
}


def _it_documents_itself(attack: type[Attack]) -> None:
    require(attack.reference, "`reference` must name the paper, section and equation")
    require((attack.__doc__ or "").strip().split("\n")[0].endswith((".", ").")), "its docstring must be a sentence")
    require(attack.supports, "`supports` must name the kinds of models that it attacks")


def _parameters_are_named_and_frozen(attack: type[Attack]) -> None:
    made: Any = attack()

    def change() -> None:
        made.anything = 1

    refuses(dataclasses.FrozenInstanceError, change, "it can be changed; make it a frozen dataclass")
    refuses(TypeError, lambda: attack(1), "its parameters must be keyword-only")  # type: ignore[call-arg]
    for option, value in attack.example.items():
        require(getattr(attack(**{option: value}), option) == value, f"it does not keep the parameter {option!r}")


def _it_refuses_other_models_by_name(attack: type[Attack]) -> None:
    for kind in (GaussianNoise.kind, UniformReplacement.kind):
        if kind not in attack.supports:
            evidence = _MADE[kind]()[1]
            text = refuses(AttackError, lambda one=evidence: attack().estimate(one), f"it does not refuse {kind}")  # type: ignore[misc]
            require(
                kind in text and f"'{attack().name}'" in text, f"the refusal must name attack and model, got {text!r}"
            )
    refuses(AttackError, lambda: attack().estimate(Evidence(10)), "it does not refuse copies without perturbed columns")


def _numbers_beat_the_baseline(attack: type[Attack]) -> None:
    original, evidence = numeric_copies((0.1, 0.15))
    errors = [column.error for column in score(attack().estimate(evidence), records(original)).numbers]
    reached = np.mean([error.attack.high for error in errors])
    require(reached < np.mean([error.baseline.estimate for error in errors]), "little noise: no better than the mean")
    require(reached < np.mean([error.control.low for error in errors]), "it does as well on a control group")


def _nothing_is_found_of_other_numbers(attack: type[Attack]) -> None:
    """An estimate from copies of other records is unrelated to these: six standard errors at most."""
    original, evidence = numeric_copies((1.0, 2.0))
    other = np.random.default_rng(14).normal(size=(ROWS, 3))
    values = attack().estimate(evidence).values
    for i in range(3):
        require(abs(np.corrcoef(values[:, i], other[:, i])[0, 1]) < _SIX_DEVIATIONS, "it finds what is not there")
    require(max(np.corrcoef(values[:, i], original[:, i])[0, 1] for i in range(3)) > 0.3, "it finds nothing at all")


def _units_do_not_matter(attack: type[Attack]) -> None:
    original, evidence = numeric_copies((0.5, 1.0))
    units, origin = np.array([1e6, 1e-6, 3.0]), np.array([-2e6, 5e-6, 7.0])
    scaled = noisy_copies(
        [part.values * units + origin for part in evidence.numbers],
        COVARIANCE * np.outer(units, units),
        (0.5, 1.0),
        collusion_resistant=True,
        knowledge=Knowledge(known=records(original[_KNOWN] * units + origin), known_rows=_KNOWN),
    )
    one, two = attack().estimate(evidence).values, attack().estimate(scaled).values
    difference = np.abs((two - origin) / units - one).max()
    require(difference <= 3 * attack.unit_tolerance, f"other units change the estimate by {difference:.2g}")


def _missing_numbers_are_handled(attack: type[Attack]) -> None:
    original, evidence = numeric_copies((0.5, 1.0))
    hole = np.zeros((ROWS, 3), bool)
    hole[::7, 1] = True
    parts = [dataclasses.replace(part, data=np.where(hole, np.nan, part.values)) for part in evidence.numbers]
    estimate = attack().estimate(dataclasses.replace(evidence, numbers=tuple(parts)))
    require(np.isfinite(estimate.values[~hole]).all(), "a value that is there is not estimated")
    if not attack.imputes_missing:
        require(
            np.isnan(estimate.values[hole]).all(), "a missing value is estimated; set `imputes_missing` if it is meant"
        )
    found = score(estimate, records(original))
    require(np.isfinite([column.rmse.attack.estimate for column in found.numbers]).all(), "it cannot be scored")


def _categories_beat_the_baseline(attack: type[Attack]) -> None:
    codes, evidence = category_copies((0.8, 0.6))
    found = score(attack().estimate(evidence), records(np.empty((ROWS, 0)), codes)).categories[0].success
    require(found.attack.low > found.baseline.high, "little replacement: no better than the most frequent category")
    require(found.control.high < found.attack.low, "it does as well on a control group")


def _nothing_is_found_in_random_categories(attack: type[Attack]) -> None:
    codes, evidence = category_copies((1e-6, 1e-7))
    found = score(attack().estimate(evidence), records(np.empty((ROWS, 0)), codes)).categories[0].success
    known = 0.05 if attack.imputes_missing else 0.0  # such an attack learns from the tenth that it knows
    require(
        found.attack.estimate < found.baseline.estimate + 0.5 * _SIX_DEVIATIONS + known, "it finds what is not there"
    )


def _rotated_records_are_recovered(attack: type[Attack]) -> None:
    original, evidence = rotated_copy()
    estimate = attack().estimate(evidence)
    require(estimate.explanation, "it must explain what it found")
    for column in score(estimate, records(original)).numbers:
        require(column.error.attack.high < 0.5, "200 known records recover less than half of the variance")
        require(column.error.control.low > 1, "it does as well on a control group")


def _rotated_rows_with_missing_values_stay_missing(attack: type[Attack]) -> None:
    _, evidence = rotated_copy()
    [part] = evidence.linear_maps
    gaps = np.arange(ROWS) % 9 == 0
    holed = dataclasses.replace(part, data=np.where(gaps[:, None], np.nan, part.values))
    values = attack().estimate(dataclasses.replace(evidence, linear_maps=(holed,))).values
    require(
        (np.isnan(values).all(axis=1) == gaps).all(), "a record with missing values is estimated, or another is not"
    )


def _it_needs_known_records(attack: type[Attack]) -> None:
    _, evidence = rotated_copy()
    ignorant = dataclasses.replace(evidence, knowledge=Knowledge())
    refuses(AttackError, lambda: attack().estimate(ignorant), "it does not refuse when nothing is known")
    empty = dataclasses.replace(evidence, knowledge=Knowledge(known=records(np.full((1, 3), np.nan))))
    refuses(AttackError, lambda: attack().estimate(empty), "it does not refuse known records that are all missing")


def _in_batches(kind: str) -> Callable[[type[Attack]], None]:
    def fitted_once_it_estimates_in_batches(attack: type[Attack]) -> None:
        evidence = _MADE[kind]()[1]
        fitted = attack().check_and_fit(evidence)
        whole, part = fitted(evidence), fitted(evidence.take(np.arange(100, 200)))
        same = np.allclose(part.values, whole.values[100:200], rtol=1e-9, atol=1e-9, equal_nan=True)
        require(same, "estimates of some rows differ from those of all")
        for one, other in zip(whole.posteriors, part.posteriors, strict=True):
            require((one.mode()[100:200] == other.mode()).all(), "categories of some rows differ")

    return fitted_once_it_estimates_in_batches


_CHECKS = (_it_documents_itself, _parameters_are_named_and_frozen, _it_refuses_other_models_by_name)
_CHECKS_BY_KIND: dict[str, tuple[Callable[[type[Attack]], None], ...]] = {
    GaussianNoise.kind: (
        _in_batches(GaussianNoise.kind),
        _numbers_beat_the_baseline,
        _nothing_is_found_of_other_numbers,
        _units_do_not_matter,
        _missing_numbers_are_handled,
    ),
    UniformReplacement.kind: (
        _in_batches(UniformReplacement.kind),
        _categories_beat_the_baseline,
        _nothing_is_found_in_random_categories,
    ),
    Rotation.kind: (
        _in_batches(Rotation.kind),
        _rotated_records_are_recovered,
        _rotated_rows_with_missing_values_stay_missing,
        _it_needs_known_records,
    ),
}
