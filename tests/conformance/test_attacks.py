"""What every attack must do, ours or another author's: the suite of `sfumato.testing` on each member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sfumato.attacks import ATTACKS, Attack, Estimate, Evidence, FittedAttack
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.testing import check_attack


@pytest.mark.parametrize("name", ATTACKS)
def test_it_conforms(name: str) -> None:
    assert ATTACKS[name]().name == name
    check_attack(ATTACKS[name])


@dataclass(frozen=True, kw_only=True)
class Planted(Attack):
    """Half of the copy, half of its mean, with a planted fault."""

    reference = "nobody"
    supports = frozenset({GaussianNoise.kind})

    def fit(self, evidence: Evidence) -> FittedAttack:
        mean = np.nanmean(evidence.numbers[0].values, axis=0)

        def estimate(some: Evidence) -> Estimate:
            return Estimate(self.name, some.columns, self.spoilt((some.numbers[0].values + mean) / 2))

        return estimate

    def spoilt(self, values: Any) -> Any:
        return values


@dataclass(frozen=True, kw_only=True)
class Reversed(Planted):
    """Estimates in another order than the rows."""

    def spoilt(self, values: Any) -> Any:
        return values[::-1]


@dataclass(frozen=True, kw_only=True)
class Absolute(Planted):
    """A constant in the column's own unit."""

    def spoilt(self, values: Any) -> Any:
        return values + 1.0


@dataclass(frozen=True, kw_only=True)
class Filling(Planted):
    """Missing values are filled with zero, and nobody is told."""

    def spoilt(self, values: Any) -> Any:
        return np.nan_to_num(values)


@dataclass(frozen=True, kw_only=True)
class Nameless(Planted):
    """It implements nothing that could be looked up."""

    reference = ""


def test_an_attack_without_a_fault_passes() -> None:
    check_attack(Planted)


@pytest.mark.parametrize(
    ("faulty", "found"),
    [(Reversed, "differ|beat"), (Absolute, "other units"), (Filling, "missing value"), (Nameless, "reference")],
)
def test_a_planted_fault_is_found(faulty: type[Attack], found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        check_attack(faulty)
