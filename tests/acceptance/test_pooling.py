"""Collusion: combined copies of one path and independent copies, at the sizes of the papers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests import realdata

import sfumato as sf
from sfumato.attacks.evidence.arrays import Array, noisy_copies, rmse

ROWS = 100_000


def policy(levels: Array, columns: str) -> sf.Policy:
    ladder = "".join(f"l{i} = {level}\n" for i, level in enumerate(sorted(levels, reverse=True)))
    return sf.Policy.loads(f'dataset = "d"\norder = "keep"\n[levels]\n{ladder}[columns]\n{columns}')


@pytest.fixture(scope="module")
def people() -> pa.Table:
    """Age and income, correlated, as many as in li2012, section 6.1."""
    rng = np.random.default_rng(3)
    values = rng.multivariate_normal([50, 16], [[303.0, 60.0], [60.0, 220.0]], ROWS)
    return pa.table({"age": values[:, 0], "income": values[:, 1]})


NOISES = np.random.default_rng(4).uniform(0.25, 1, 30)
"""Thirty requests (li2012, section 6.2)."""


@pytest.fixture(scope="module")
def copies(people: pa.Table) -> dict[str, list[pa.Table]]:
    fidelities = 1 / (1 + NOISES)
    key = sf.Key.from_bytes(bytes(range(32)))
    made = {}
    for name, role in (("ours", '"gaussian"'), ("independent", '{ role = "independent", of = "gaussian" }')):
        scheme = policy(fidelities, f"age = {role}\nincome = {role}\n").fit(people)
        made[name] = scheme.release_levels(people, [sf.Level(f) for f in fidelities], key)
    return made


def error(copies: list[pa.Table], people: pa.Table, **knowledge: object) -> float:
    found = sf.score(sf.attack("llse", copies, **knowledge), people)  # type: ignore[arg-type]
    return float(np.mean([column.error.attack.estimate for column in found.numbers]))


@pytest.mark.parametrize("count", [1, 2, 5, 10, 20, 30])
def test_figure_2_of_li2012(count: int, people: pa.Table, copies: dict[str, list[pa.Table]]) -> None:
    """One path stays at the best copy's error, independent copies decrease to `1/(1+Σ1/σᵢ²)` (Theorems 3 and 4)."""
    best = int(NOISES[:count].argmin())
    alone = error([copies["ours"][best]], people, statistics=people)
    assert error(copies["ours"][:count], people, statistics=people) == pytest.approx(alone, rel=1e-6)
    assert alone == pytest.approx(NOISES[best] / (1 + NOISES[best]), rel=0.01)
    expected = 1 / (1 + np.sum(1 / NOISES[:count]))
    assert error(copies["independent"][:count], people, statistics=people) == pytest.approx(expected, rel=0.02)


def test_partial_knowledge_costs_an_attacker(people: pa.Table, copies: dict[str, list[pa.Table]]) -> None:
    """100N², 200N² and 300N² records (li2012, section 6.1): all worse than perfect knowledge, and never much."""
    perfect = error(copies["independent"], people, statistics=people)
    partial = [error(copies["independent"], people, samples=count * 4) for count in (100, 200, 300)]
    assert all(perfect * 0.9999 < value < perfect * 1.05 for value in partial)
    assert error(copies["independent"], people) == pytest.approx(perfect, rel=0.002)


def test_no_other_attack_gains_from_copies_of_one_path(people: pa.Table, copies: dict[str, list[pa.Table]]) -> None:
    """Averages and differences, which rely on no model, gain nothing either."""
    ours, apart = copies["ours"][:5], copies["independent"][:5]
    best = sf.score(sf.attack("ndr", ours), people).number("age").rmse.attack
    assert sf.score(sf.attack("difference", ours), people).number("age").rmse.attack.estimate > best.estimate * 0.998
    assert sf.score(sf.attack("average", ours), people).number("age").rmse.attack.estimate > best.estimate
    naive = sf.score(sf.attack("difference", apart), people).number("age").rmse.attack.estimate
    assert naive < 0.7 * sf.score(sf.attack("ndr", apart), people).number("age").rmse.attack.estimate


def test_proportional_noise_is_no_protection() -> None:
    """`x = (σ₂y₁ - σ₁y₂)/(σ₂-σ₁)` (li2012, section 4.2.2)."""
    rng = np.random.default_rng(5)
    real, noise = rng.normal(3, 2, (5000, 2)), rng.normal(0, 2, (5000, 2))
    times = [0.25, 1.0, 2.0]
    evidence = noisy_copies([real + np.sqrt(t) * noise for t in times], np.eye(2) * 4, times, collusion_resistant=True)
    assert rmse("difference", evidence, real) < 1e-9
    assert rmse("llse", evidence, real) > 0.5  # which relies on the model


@pytest.fixture(scope="module")
def salaries() -> tuple[pa.Table, list[pa.Table], list[pa.Table]]:
    """Thirty copies of the census table's salary, with retentions uniform in [0.001, 0.5] (xiao2009, Figure 7)."""
    table = pa.table({"salary": realdata.salaries()})
    kept = np.random.default_rng(6).uniform(0.001, 0.5, 30)
    key = sf.Key.from_bytes(bytes(range(32)))
    domain = "domain = { min = 0, max = 49 }"
    made = []
    for role in ('role = "uniform"', 'role = "independent", of = "uniform"'):
        scheme = policy(kept, f"salary = {{ {role}, {domain} }}\n").fit(table)
        made.append(scheme.release_levels(table, [sf.Level(p) for p in kept], key))
    return table, made[0], made[1]


@pytest.mark.slow
def test_figure_7_of_xiao2009(salaries: tuple[pa.Table, list[pa.Table], list[pa.Table]]) -> None:
    """Thirty independent releases disclose nearly all tuples, copies of one path what the best copy does."""
    table, ours, apart = salaries
    found = {}
    for name, copies in (("ours", ours), ("independent", apart)):
        best = max(copies, key=lambda copy: sf.Manifest.of(copy).fidelity)
        for who, some in (("alone", [best]), ("pooled", copies)):
            found[name, who] = (
                sf.score(sf.attack("collusion", some), table).categories[0].reconstruction.attack.estimate
            )
    assert found["independent", "pooled"] > 0.95
    assert found["ours", "pooled"] == pytest.approx(found["ours", "alone"], rel=1e-9)
    assert found["ours", "pooled"] == pytest.approx(found["independent", "alone"], rel=0.01)
    assert 0.2 < found["ours", "pooled"] < 0.4  # the paper: around 30 %
