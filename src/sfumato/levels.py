"""Trust levels: one number, the fidelity, and every other unit it can be said in.

A fidelity `f` lies strictly between 0 (pure noise) and 1 (the original). For a numeric column it fixes the noise
variance, in units of the column's own variance, as `t = (1-f)/f`; for a categorical column it is the probability `p`
that a value is retained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Real
from types import MappingProxyType
from typing import Any

from sfumato.errors import LevelError, nearest

_LEAST = 1e-100
"""The least fidelity: the noise of a lesser one, and its square, would exceed what a float holds."""


@dataclass(frozen=True, order=True)
class Level:
    """A degree of trust. Levels are ordered: a higher fidelity is a more trusted level."""

    fidelity: float

    def __post_init__(self) -> None:
        given: Any = self.fidelity
        is_number = isinstance(given, Real) and not isinstance(given, bool)
        if not is_number or not (0 < given < 1 and _LEAST <= float(given) < 1):  # a whole number may exceed all floats
            raise LevelError(
                f"a fidelity must lie strictly between 0 (noise only) and 1 (the original), got {given!r}; "
                "give a number such as 0.5"
            )
        object.__setattr__(self, "fidelity", float(given))

    @classmethod
    def from_noise(cls, variance: float) -> Level:
        """From the noise variance in units of the column's variance: `f = 1/(1+σ²)` (li2012, eq. 8)."""
        _positive("a noise variance", variance)
        return cls(1 / (1 + variance))

    @classmethod
    def from_error(cls, error: float) -> Level:
        """From the share of the variance that the best linear attacker is left with: `1-f` (li2012, eq. 8)."""
        _share("an estimation error", error)
        return cls(1 - error)

    @classmethod
    def from_retention(cls, probability: float) -> Level:
        """From the probability that a category is retained (xiao2009, eq. 1)."""
        return cls(probability)

    @classmethod
    def from_epsilon(cls, epsilon: float, *, domain: int) -> Level:
        """From the ε of local differential privacy for `domain` categories: `p = (e^ε-1)/(e^ε-1+s)`.

        The likelihood ratio of eq. 1 of xiao2009 is `γ = 1 + p·s/(1-p)`, and ε is its logarithm.
        """
        _positive("an epsilon", epsilon)
        if epsilon > 500:
            raise LevelError(f"an epsilon must be at most 500, where nothing is hidden any more, got {epsilon!r}")
        return cls._from_ratio(math.expm1(epsilon), domain)

    @classmethod
    def from_rho(cls, rho1: float, rho2: float, *, domain: int) -> Level:
        """From ρ1-ρ2 privacy: `γ = ρ2(1-ρ1)/(ρ1(1-ρ2))` (Evfimievski, Gehrke, Srikant 2003; xiao2009 section 3)."""
        _share("rho1", rho1)
        _share("rho2", rho2)
        if rho1 >= rho2:
            raise LevelError(f"rho1 must be less than rho2, got {rho1!r} and {rho2!r}; exchange them")
        return cls._from_ratio(rho2 * (1 - rho1) / (rho1 * (1 - rho2)) - 1, domain)

    @classmethod
    def from_growth(cls, delta: float, *, domain: int) -> Level:
        """From δ-growth, the largest rise of any belief: the inverse of `growth` (xiao2009 section 3)."""
        _share("a growth", delta)
        _domain(domain)
        odds = ((1 - delta) / 2) ** 2 / delta  # r with (√(1+r) - √r)² = δ
        return cls(1 / (1 + odds * domain))

    @classmethod
    def _from_ratio(cls, excess: float, domain: int) -> Level:
        """The level whose likelihood ratio exceeds 1 by `excess` over `domain` categories."""
        _domain(domain)
        return cls(excess / (excess + domain))

    @property
    def noise(self) -> float:
        """Noise variance in units of the column's variance, `t = σ² = (1-f)/f`."""
        return (1 - self.fidelity) / self.fidelity

    @property
    def error(self) -> float:
        """Share of the variance that the best linear attack leaves, `σ²/(1+σ²) = 1-f` (li2012, eq. 8)."""
        return 1 - self.fidelity

    @property
    def retention(self) -> float:
        """Probability that a category is retained (xiao2009, eq. 1)."""
        return self.fidelity

    def ratio(self, domain: int) -> float:
        """`γ = 1 + p·s/(1-p)`: how much likelier an output is under one value than under another."""
        _domain(domain)
        return 1 + self.fidelity * domain / (1 - self.fidelity)

    def epsilon(self, domain: int) -> float:
        """The ε of local differential privacy that a categorical column of `domain` values gets: `ln γ`."""
        return math.log(self.ratio(domain))

    def rho2(self, rho1: float, domain: int) -> float:
        """The belief that a prior belief of at most `rho1` cannot exceed: `γρ1/(1-ρ1+γρ1)`."""
        _share("rho1", rho1)
        gamma = self.ratio(domain)
        return gamma * rho1 / (1 - rho1 + gamma * rho1)

    def growth(self, domain: int) -> float:
        """The largest rise of any belief about a cell, over all priors.

        A predicate of prior `π` rises by `π(1-π)/(π+r)` with `r = (1-p)/(p·s)`, at most `(√(1+r) - √r)²`.
        """
        _domain(domain)
        odds = (1 - self.fidelity) / (self.fidelity * domain)
        return float((math.sqrt(1 + odds) - math.sqrt(odds)) ** 2)


@dataclass(frozen=True)
class Ladder:
    """The declared levels of a dataset, from the most to the least trusted; fixed for the dataset's life."""

    levels: Mapping[str, Level]
    _names: Mapping[float, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.levels:
            raise LevelError("a ladder must declare at least one level, got none; add for example `partner = 0.5`")
        pairs = list(self.levels.items())
        for (name, level), (below, lower) in pairwise(pairs):
            if not lower.fidelity <= level.fidelity * (1 - 1e-6):
                raise LevelError(
                    f"levels must be declared from the most to the least trusted, got {name} = {level.fidelity} "
                    f"before {below} = {lower.fidelity}; reorder them by falling fidelity"
                )
        for name, level in pairs:
            if _is_number(name) and float(name) != level.fidelity:
                raise LevelError(
                    f"the name of a level must not be another fidelity, and {name!r} has {level.fidelity}, so that a "
                    "request for one would get the other; name it in words"
                )
        object.__setattr__(self, "levels", MappingProxyType(dict(self.levels)))
        object.__setattr__(self, "_names", {level.fidelity: name for name, level in pairs})

    @classmethod
    def of(cls, fidelities: Mapping[str, float]) -> Ladder:
        """A ladder from names and fidelities."""
        return cls({name: Level(fidelity) for name, fidelity in fidelities.items()})

    def __iter__(self) -> Iterator[Level]:
        return iter(self.levels.values())

    def __len__(self) -> int:
        return len(self.levels)

    def __reduce__(self) -> tuple[object, ...]:
        return Ladder, (dict(self.levels),)

    def level(self, asked: Level | float | str) -> Level:
        """The level meant by a level, a fidelity, or a declared name."""
        if isinstance(asked, Level):
            return asked
        if isinstance(asked, str):
            if asked in self.levels:
                return self.levels[asked]
            try:
                return Level(float(asked))
            except ValueError:
                raise LevelError(f"no level is called {asked!r}; {nearest(asked, self.levels)}") from None
        return Level(asked)

    def described(self) -> list[str]:
        """The names of all levels with their fidelity."""
        return [f"{name} {level.fidelity:g}" for name, level in self.levels.items()]

    def name(self, level: Level) -> str | None:
        """The declared name of a level, if it has one."""
        return self._names.get(level.fidelity)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _positive(what: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise LevelError(f"{what} must be a positive number, got {value!r}")


def _share(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise LevelError(f"{what} must lie strictly between 0 and 1, got {value!r}")


def _domain(size: int) -> None:
    if not isinstance(size, int) or size < 2:
        raise LevelError(f"a domain must have at least 2 values (one alone holds no secret), got {size!r}")
