"""Estimates that a profile consists of: of each column, of pairs of columns, and of the whole copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato.errors import MiningError
from sfumato.kernels.intervals import Interval
from sfumato.mining.density import Density
from sfumato.release.manifest import Manifest

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Number:
    """Estimates for a numeric column of the original."""

    name: str
    noisy: bool
    mean: Interval
    standard_deviation: Interval
    quantiles: tuple[Interval, ...]
    """The quantiles at `QUANTILES`; none where the trust level does not support them."""
    noise: float = 0.0
    """The standard deviation of the noise."""
    unit: str = ""
    """The unit of a column of dates or times."""
    density: Density | None = None
    preserved: bool = False
    """Whether its margin is preserved, so that the copy's own statistics are the estimates."""
    special: tuple[tuple[float, float], ...] = ()
    """The values that many records share, and their shares, as the owner states them."""
    limits: tuple[str, ...] = ()
    """What is not known of it, and why."""

    @property
    def reliability(self) -> float | None:
        """The share of the copy's variance that is the original's; none where it says nothing."""
        total = self.standard_deviation.estimate**2 + self.noise**2
        return None if self.preserved or not total else self.standard_deviation.estimate**2 / total


@dataclass(frozen=True)
class Category:
    """Estimates for a categorical column of the original, the most frequent category first."""

    name: str
    values: tuple[str, ...]
    frequencies: tuple[Interval, ...]
    unlisted: int
    """The number of categories that are not listed."""
    rows_for_count: int | None
    """The size of the smallest group whose count is known within 10 %; none if the table is too small for any."""
    reliability: float | None = None
    """The probability that a category was retained; none where it says nothing."""
    limits: tuple[str, ...] = ()
    """What is not known of it, and why."""


@dataclass(frozen=True)
class Pair:
    """How strongly two columns are related."""

    one: str
    other: str
    correlation: Interval
    of_ranks: bool = False
    """Whether it is that of the columns' ranks."""
    measure: str = "correlation"
    """Of numbers their correlation, of categories Cramér's V, of a category and a number the correlation ratio."""

    @property
    def named_measure(self) -> str:
        """The measure, in words."""
        return "rank correlation" if self.of_ranks else self.measure


@dataclass(frozen=True)
class Profile:
    """Estimates for the original of a copy."""

    manifest: Manifest
    rows: int
    numbers: tuple[Number, ...] = ()
    categories: tuple[Category, ...] = ()
    pairs: tuple[Pair, ...] = ()
    supported: tuple[str, ...] = ()
    """The statistics that this trust level supports, with their precision."""
    unsupported: tuple[str, ...] = ()
    """The statistics that this trust level does not support."""
    confidence: float = 0.95
    unchanged_columns: tuple[str, ...] = ()
    rendered: Callable[[Profile], str] | None = None
    """How notebooks show it."""
    plotted: Callable[[Profile, str | None, Any], Any] | None = None
    """How `plot` draws it."""

    def as_dict(self) -> dict[str, Any]:
        """The profile as JSON."""
        return {
            "dataset": self.manifest.dataset,
            "level": self.manifest.level or f"{self.manifest.fidelity:.4g}",
            "fidelity": self.manifest.fidelity,
            "rows": self.rows,
            "confidence": self.confidence,
            "numbers": [_number_dict(number) for number in self.numbers],
            "categories": [_category_dict(category) for category in self.categories],
            "correlations": [
                {"one": p.one, "other": p.other, "measure": p.named_measure, "of_ranks": p.of_ranks}
                | vars(p.correlation)
                for p in self.pairs
            ],
            "unchanged_columns": list(self.unchanged_columns),
            "supported": list(self.supported),
            "unsupported": list(self.unsupported),
        }

    def plot(self, column: str | None = None, axes: Any = None) -> Any:
        """Plot one column, or the strongest relations if none is named, on matplotlib axes, which are returned."""
        if self.plotted is None:
            raise MiningError("only a profile that `profile` has estimated can be plotted; estimate one")
        return self.plotted(self, column, axes)

    def __repr__(self) -> str:
        columns = len(self.numbers) + len(self.categories)
        return f"<Profile of {self.manifest.dataset}: {self.rows:,} records, {columns} columns>"

    def _repr_html_(self) -> str | None:
        return None if self.rendered is None else self.rendered(self)


def _number_dict(number: Number) -> dict[str, Any]:
    return {
        "name": number.name,
        "noisy": number.noisy,
        "reliability": number.reliability,
        "mean": vars(number.mean),
        "standard_deviation": vars(number.standard_deviation),
        "quantiles": {str(q): vars(i) for q, i in zip(QUANTILES, number.quantiles, strict=False)},
        "special": [list(one) for one in number.special],
        "limits": list(number.limits),
    }


def _category_dict(category: Category) -> dict[str, Any]:
    return {
        "name": category.name,
        "reliability": category.reliability,
        "frequencies": {v: vars(i) for v, i in zip(category.values, category.frequencies, strict=True)},
        "unlisted": category.unlisted,
        "rows_for_count_within_10_percent": category.rows_for_count,
        "limits": list(category.limits),
    }
