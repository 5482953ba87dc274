"""Audits raise no false alarm over sound copies, and detect every planted flaw."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.soundness import FALSE_ALARM_RATE, soundness

from . import flaws
from .conftest import Verdict

ROWS, COLUMNS = 100_000, 4


def family_p(original: pa.Table, copies: dict[str, pa.Table]) -> float:
    """The p-value of all checks together, by Bonferroni's union bound."""
    found = soundness(AuditInput.of(original, copies))
    assert len(found.checks) > 50
    return min(1.0, len(found.checks) * min(check.p_value for check in found.checks))


def made(rng: np.random.Generator, columns: int = COLUMNS) -> tuple[pa.Table, dict[str, pa.Table]]:
    table = flaws.table(rng, ROWS, columns)
    scheme = flaws.policy(columns).fit(table)
    return table, dict(
        zip(flaws.NAMES, scheme.release_levels(table, flaws.NAMES, sf.Key.from_bytes(rng.bytes(32))), strict=True)
    )


@pytest.mark.statistical(checks=1)
def test_flaws_are_found_and_sound_copies_pass(verdict: Verdict, rng: np.random.Generator) -> None:
    table, copies = made(rng)
    verdict.accept(family_p(table, copies), "sound copies")
    for name, flaw in flaws.NUMERIC.items():
        verdict.reject(family_p(table, flaws.with_noise(table, copies, flaw, rng)), f"numbers: {name}")
    for name in flaws.CATEGORICAL:
        verdict.reject(family_p(table, flaws.with_categories(table, copies, name, rng)), f"categories: {name}")


@pytest.mark.statistical(checks=1)
def test_the_checks_hold_on_awkward_tables(verdict: Verdict, rng: np.random.Generator) -> None:
    """Integers on a coarse lattice, collinear columns, missing values, dates, a clip, a scale."""
    rows = 40_000
    x = rng.normal(50, 20, rows)
    table = pa.table(
        {
            "whole": pa.array(np.rint(x).astype(int)),
            "twice": 2 * x,
            "holed": pa.array(rng.exponential(3, rows), mask=rng.random(rows) < 0.2),
            "day": pa.array(rng.integers(10_000, 20_000, rows).astype("int32")).cast(pa.date32()),
            "scaled": rng.normal(size=rows),
            "u": rng.integers(0, 8, rows),
        }
    )
    policy = sf.Policy.loads("""
dataset = "awkward"
order = "keep"
[levels]
a = 0.8
b = 0.6
c = 0.4
d = 0.2
[columns]
whole = { role = "gaussian", integer = true, clip = [0, 100] }
twice = "gaussian"
holed = "gaussian"
day = { role = "gaussian", clip = [1999-01-01, 2020-01-01] }
scaled = { role = "gaussian", scale = 2.0 }
u = { role = "uniform", nulls = "perturb" }
""")
    copies = dict(
        zip(flaws.NAMES, policy.fit(table).release_levels(table, flaws.NAMES, sf.Key.generate()), strict=True)
    )
    found = soundness(AuditInput.of(table, copies))
    verdict.accept(min(1.0, len(found.checks) * min(check.p_value for check in found.checks)), "an awkward table")
    swapped = {**copies, "b": copies["c"], "c": copies["b"]}
    named = {n: copy.replace_schema_metadata(copies[n].schema.metadata) for n, copy in swapped.items()}
    verdict.reject(family_p(table, named), "two levels swapped")


@pytest.mark.slow
def test_a_thousand_sound_audits_raise_no_alarm(rng: np.random.Generator) -> None:
    """At a false-alarm rate of 1e-6 per audit, this test fails with probability 1e-3."""
    alarms = []
    for run in range(1000):
        table, copies = made(rng)
        found = soundness(AuditInput.of(table, copies), FALSE_ALARM_RATE)
        alarms += [(run, check) for check in found.alarms]
    assert alarms == []


@pytest.mark.slow
@pytest.mark.parametrize("flaw", [*flaws.NUMERIC, *(f"categories: {name}" for name in flaws.CATEGORICAL)])
def test_each_flaw_is_found_every_time(flaw: str, rng: np.random.Generator) -> None:
    """Two hundred audits for each of the main flaws, fifty for each of the others."""
    missed = []
    for run in range(200 if flaw in flaws.MAIN or flaw not in flaws.NUMERIC else 50):
        table, copies = made(rng)
        if flaw in flaws.NUMERIC:
            flawed = flaws.with_noise(table, copies, flaws.NUMERIC[flaw], rng)
        else:
            flawed = flaws.with_categories(table, copies, flaw.removeprefix("categories: "), rng)
        missed += [run] if soundness(AuditInput.of(table, flawed), FALSE_ALARM_RATE).sound else []
    assert missed == []
