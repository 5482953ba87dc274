"""Averaging the rows of an entity gains nothing beyond its level, and it does where rows have noise of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from tests import longitudinal

import sfumato as sf
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.soundness import soundness

from .conftest import Verdict
from .pvalues import independent_p, rate_p

ENTITIES = 4000

NUMBERS = ("pressure", "weight", "age")


def excess_p(recovered: float, promised: float, count: int) -> float:
    """An attacker recovers no more of a normal variable's variance than is promised: Fisher's transform, one-sided."""
    difference = np.arctanh(np.sqrt(recovered)) - np.arctanh(np.sqrt(promised))
    return float(stats.norm.sf(difference * np.sqrt(count - 3)))


def least_p(copy: pa.Table, table: pa.Table, patient: Any, level: str) -> float:
    """The smallest p-value, over the numbers, of what means over a patient's rows recover of the true means."""
    found = []
    for name in NUMBERS:
        seen, true = (longitudinal.means(part[name].to_numpy(), patient) for part in (copy, table))
        recovered = float(np.corrcoef(seen, true)[0, 1] ** 2)
        found.append(excess_p(recovered, longitudinal.LEVELS[level], len(true)))
    return min(1.0, len(found) * min(found))


@pytest.mark.statistical(checks=2)
@pytest.mark.parametrize("rows", [2, 5, 20, 50])
def test_averaging_an_entity_gains_nothing(verdict: Verdict, rng: np.random.Generator, rows: int) -> None:
    table, patient = longitudinal.patients(rng, np.full(ENTITIES * 2 // rows + 500, rows))
    key = sf.Key.from_bytes(rng.bytes(32))
    for role, judge in (("entity", verdict.accept), ("keep", verdict.reject)):
        scheme = longitudinal.policy(role).fit(table)
        for level in ("partner", "public"):
            copy = scheme.release(table, level, key)
            judge(least_p(copy, table, patient, level), f"{rows} rows, {role}, {level}")


@pytest.mark.statistical(checks=3)
def test_levels_pooled_over_an_entity_gain_nothing(verdict: Verdict, rng: np.random.Generator) -> None:
    """What a less faithful copy adds to the means of a better one is independent of their noise."""
    table, patient = longitudinal.patients(rng, rng.integers(2, 51, ENTITIES // 2))
    best, worse = (
        longitudinal.policy().fit(table).release_levels(table, ["partner", "public"], sf.Key.from_bytes(rng.bytes(32)))
    )
    for name in NUMBERS:
        true, better, noisy = (longitudinal.means(part[name].to_numpy(), patient) for part in (table, best, worse))
        verdict.accept(independent_p(better - true, noisy - better), f"increment of {name}")
        verdict.reject(independent_p(better - true, noisy - true), f"the noise itself, of {name}")


@pytest.mark.statistical(checks=1)
def test_a_vote_over_an_entity_is_one_draw(verdict: Verdict, rng: np.random.Generator) -> None:
    table, patient = longitudinal.patients(rng, np.full(2000, 9))
    true = longitudinal.means(np.array(table["sex"]) == "m", patient) > 0.5
    for role, judge in (("entity", verdict.accept), ("keep", verdict.reject)):
        copy = longitudinal.policy(role).fit(table).release(table, "partner", sf.Key.from_bytes(rng.bytes(32)))
        vote = longitudinal.means(np.array(copy["sex"]) == "m", patient) > 0.5
        judge(rate_p(int((vote == true).sum()), len(true), 0.75), role)


@pytest.mark.statistical(checks=1)
def test_the_audit_finds_noise_that_averages_out(verdict: Verdict, rng: np.random.Generator) -> None:
    """Copies with noise per row, under manifests that state noise for entities, are unsound."""
    table, _ = longitudinal.patients(rng, rng.integers(2, 20, 1500))
    key, levels = sf.Key.from_bytes(rng.bytes(32)), ["partner", "public"]
    sound = dict(zip(levels, longitudinal.policy().fit(table).release_levels(table, levels, key), strict=True))
    verdict.accept(_family_p(table, sound), "sound copies")
    per_row = longitudinal.policy("keep").fit(table).release_levels(table, levels, key)
    for name, copy in zip(levels, per_row, strict=True):
        numbers = copy.select(list(NUMBERS))
        faulty = sound[name]
        for column in NUMBERS:
            at = faulty.column_names.index(column)
            faulty = faulty.set_column(at, faulty.schema.field(at), numbers[column])
        verdict.reject(_family_p(table, {name: faulty}), f"{name}: noise per row")
        alarms = soundness(AuditInput.of(table, {name: faulty})).alarms
        assert {"means over the rows", "differences between rows"} <= {
            part
            for alarm in alarms
            for part in ("means over the rows", "differences between rows")
            if part in alarm.fault
        }


def _family_p(table: pa.Table, copies: dict[str, pa.Table]) -> float:
    found = soundness(AuditInput.of(table, copies))
    return min(1.0, len(found.checks) * min(check.p_value for check in found.checks))
