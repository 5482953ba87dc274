from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import LevelError


@pytest.mark.parametrize("fidelity", [0.05, 0.37, 0.5, 0.93])
@pytest.mark.parametrize("domain", [2, 10, 1000])
def test_every_unit_converts_back(fidelity: float, domain: int) -> None:
    level = sf.Level(fidelity)
    same = [
        sf.Level.from_noise(level.noise),
        sf.Level.from_error(level.error),
        sf.Level.from_retention(level.retention),
        sf.Level.from_epsilon(level.epsilon(domain), domain=domain),
        sf.Level.from_rho(0.07, level.rho2(0.07, domain), domain=domain),
        sf.Level.from_growth(level.growth(domain), domain=domain),
    ]
    assert [other.fidelity for other in same] == pytest.approx([fidelity] * len(same), rel=1e-12)


def test_the_formulas() -> None:
    level = sf.Level(0.2)
    assert level.noise == pytest.approx(4.0)
    assert level.error == pytest.approx(0.8)
    assert level.epsilon(50) == pytest.approx(math.log((0.2 + 0.8 / 50) / (0.8 / 50)))


@pytest.mark.parametrize(("fidelity", "domain"), [(0.4, 10), (0.8, 3), (0.1, 100)])
def test_beliefs_are_bounded_as_stated(fidelity: float, domain: int) -> None:
    """Against the exact posterior of xiao2009, eq. 1, over all priors of the value that is seen."""
    level = sf.Level(fidelity)
    noise = (1 - fidelity) / domain
    priors = [i / 10_000 for i in range(1, 10_000)]
    after = [p * (fidelity + noise) / (p * fidelity + noise) for p in priors]
    rises = [a - p for a, p in zip(after, priors, strict=True)]
    assert max(rises) == pytest.approx(level.growth(domain), rel=1e-4)
    allowed = [a for a, p in zip(after, priors, strict=True) if p <= 0.05]
    assert max(allowed) <= level.rho2(0.05, domain)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, math.nan, math.inf, "0.5", True, None])
def test_a_fidelity_lies_between_0_and_1(bad: float) -> None:
    with pytest.raises(LevelError, match="strictly between 0"):
        sf.Level(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.Level.from_noise(0),
        lambda: sf.Level.from_noise(math.inf),
        lambda: sf.Level.from_error(1),
        lambda: sf.Level.from_epsilon(-1, domain=4),
        lambda: sf.Level.from_epsilon(1, domain=1),
        lambda: sf.Level.from_rho(0.5, 0.2, domain=4),
        lambda: sf.Level.from_growth(0, domain=4),
        lambda: sf.Ladder({}),
        lambda: sf.Ladder.of({"low": 0.2, "high": 0.8}),
        lambda: sf.Ladder.of({"one": 0.5, "same": 0.5}),
    ],
)
def test_impossible_levels_are_refused(make: object) -> None:
    with pytest.raises(LevelError):
        make()  # type: ignore[operator]


def test_any_real_number_will_do() -> None:
    half: Any = np.float32(0.5)
    assert sf.Level(half) == sf.Level(0.5)
    with pytest.raises(LevelError, match="at least 2 values"):
        sf.Level.from_epsilon(1, domain="x")  # type: ignore[arg-type]


def test_levels_are_ordered_and_ladders_find_them() -> None:
    ladder = sf.Ladder.of({"internal": 0.8, "public": 0.2})
    assert sf.Level(0.2) < sf.Level(0.8)
    assert ladder.level("public") == ladder.level(0.2) == ladder.level("0.2") == ladder.level(sf.Level(0.2))
    assert ladder.name(sf.Level(0.8)) == "internal"
    assert ladder.name(sf.Level(0.5)) is None
    with pytest.raises(LevelError, match="did you mean 'public'"):
        ladder.level("pubic")
