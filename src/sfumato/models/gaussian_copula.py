"""Gaussian copula: values of known margins, whose normal scores carry noise in the shape of their correlations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model
from sfumato.models.gaussian_noise import GaussianNoise

_LARGEST = 1 << 62
"""The largest integer of a bin."""

_MARGIN = {"step", "low", "high", "share", "tail", "min_count", "missing"}
"""What a margin states; categories are listed too."""

_ATOM = 0.002
"""Values with a larger share of the records are shown as such, whatever their scores are."""


@dataclass(frozen=True)
class GaussianCopula(Model):
    """`Y = Q(Φ(√f·(z + Z)))` with `Z ~ N(0, noise·K)`, `z` the normal scores of a record and `Q` the columns' margins.

    The scores of a copy have the distribution `N(0, K)` at every fidelity: a copy has the margins and rank correlations
    of the original (Liew, Choi and Liew 1985; Muralidhar and Sarathy 2006; for ties, Hoff 2007).
    """

    kind = "gaussian-copula"
    margins: tuple[dict[str, Any], ...]
    """The bins of each column with their cumulative shares, and the share of missing values: `tables.margin`."""
    correlation: tuple[tuple[float, ...], ...]
    """`K`, its lower triangle: first the scores of all columns, then those of missing values, where there are any."""
    noise: float
    """`σ²`: the noise of a score, in units of its variance."""

    @property
    def with_missing(self) -> tuple[str, ...]:
        """The columns in which some values are missing, and which therefore have a second score."""
        return tuple(n for n, margin in zip(self.columns, self.margins, strict=True) if margin["missing"] is not None)

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of all scores: those of columns are called as these, and whether one is missing has a score too."""
        return (*self.columns, *(f"{name} is missing" for name in self.with_missing))

    @property
    def coarsened_columns(self) -> tuple[str, ...]:
        return tuple(name for name, margin in zip(self.columns, self.margins, strict=True) if _has_atoms(margin))

    def score_noise(self) -> GaussianNoise:
        """The model of the scores of a copy, divided by `√f`: those of the original with additive noise."""
        size = len(self.scores)
        return GaussianNoise(
            columns=self.scores,
            covariance=tuple(tuple(self.noise * entry for entry in line) for line in self.correlation),
            noise=self.noise,
            scale=(1.0,) * size,
            step=(0.0,) * size,
            clip=(None,) * size,
            rounding=(0.0,) * size,
            collusion_resistant=True,
        )

    def promises(self, level: Level) -> list[str]:
        return [
            f"Margin-preserving columns, fidelity {level.fidelity:.6g}: the copy has the margins of the original, and "
            f"the best linear estimate of a record's scores has a residual error of {level.error:.4g} of their "
            "variance."
        ]

    def limits(self) -> list[Limit]:
        margins = Limit(
            "The margins are public, coarse and rounded, and so are the correlations of scores",
            self.columns,
            "Every bin holds a minimum number of records; values beyond the outermost bins are moved into them.",
        )
        relations = Limit(
            "Relations that rank correlations do not express fade as fidelity falls",
            self.columns,
            "A rule that follows exactly from other columns does not hold in a copy.",
        )
        named = tuple(n for n, margin in zip(self.columns, self.margins, strict=True) if margin.get("values"))
        return [margins, relations, *([Limit("The list of possible values is public", named)] if named else [])]

    def describe(self, column: str, amount: Amount) -> str:  # noqa: ARG002
        bins = len(self.margins[self.columns.index(column)]["share"])
        return f"margin preserved ({bins} bins), noise of {self.noise:.4g} times the variance in its score"

    def narrowed(self, names: Sequence[str]) -> Self:
        """The model of some of the columns: the scores of the others are left out."""
        kept = self._kept(names)
        if len(kept) == len(self.columns):
            return self
        missing = [i for i, name in enumerate(self.with_missing) if name in names]
        scores = [*kept, *(len(self.columns) + i for i in missing)]
        return dataclasses.replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            margins=tuple(self.margins[i] for i in kept),
            correlation=tuple(tuple(self.correlation[i][j] for j in scores if j <= i) for i in scores),
        )

    def validate(self) -> None:
        if len(self.margins) != len(self.columns) or not all(map(is_margin, self.margins)):
            raise TypeError("each column has a margin: bins with cumulative shares, and the share of missing values")
        triangle = [len(line) for line in self.correlation] == list(range(1, len(self.scores) + 1))
        if not triangle or not _is_correlation(self.correlation) or not 0 < self.noise < math.inf:
            raise TypeError("correlations are a lower triangle between -1 and 1, and noise is positive")


def is_margin(margin: Any) -> bool:
    """Whether this is a margin: bins in order, shares that rise to 1, and a share of missing values, or none."""
    if not isinstance(margin, dict) or not set(margin) >= _MARGIN:
        return False
    low, high, share, missing = (margin[name] for name in ("low", "high", "share", "missing"))
    values = margin.get("values", [])
    if not all(isinstance(one, list | tuple) for one in (low, high, share, values)):
        return False
    if not len(low) == len(high) == len(share) > 0 or not _are_bins(low, high):
        return False
    listed = not values or 0 <= low[0] <= high[-1] < len(values)
    positive = all(_is_number(margin[name]) for name in ("step", "tail", "min_count"))
    positive = positive and margin["tail"] < 1 and type(margin["min_count"]) is int
    return listed and positive and _are_shares(share, missing)


def _are_bins(low: Sequence[Any], high: Sequence[Any]) -> bool:
    ends = [end for pair in zip(low, high, strict=True) for end in pair]
    if not all(type(end) is int and abs(end) <= _LARGEST for end in ends):
        return False
    return all(a <= b for a, b in pairwise(ends)) and all(a < b for a, b in zip(high, low[1:], strict=False))


def _are_shares(share: Sequence[Any], missing: Any) -> bool:
    if not all(map(_is_number, share)) or (missing is not None and not _is_number(missing)):
        return False
    return all(a < b for a, b in pairwise(share)) and share[-1] == 1.0 and (missing is None or missing <= 1)


def _is_number(value: Any) -> bool:
    """Whether this is a positive finite number."""
    return type(value) in (int, float) and 0 < value < math.inf


def _is_correlation(lines: Sequence[Sequence[float]]) -> bool:
    return all(all(-1 <= entry <= 1 for entry in line) and line[-1] == 1.0 for line in lines)


def _has_atoms(margin: dict[str, Any]) -> bool:
    shares = (after - before for before, after in pairwise([0.0, *margin["share"]]))
    points = (high - low + 1 for low, high in zip(margin["low"], margin["high"], strict=True))
    return margin["missing"] is not None or any(s > _ATOM * count for s, count in zip(shares, points, strict=True))
