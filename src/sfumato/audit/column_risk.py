"""Column risk: what the best attack achieves on one column, by one copy, by all, and by copies of independent noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

RECOVERED = 0.9
"""A column of which an attack recovers more than this counts as disclosed."""


@dataclass(frozen=True)
class ColumnRisk:
    """The attribute disclosure risk of a column, or of columns perturbed jointly: what the best attack achieves."""

    columns: tuple[str, ...]
    measure: str
    """`error`, the residual error as a share of variance, or `success`, the accuracy of the likeliest category."""
    baseline: float
    """The value without any copy."""
    single_copy: float
    """The value with one copy, the best of them; NaN where no attack on a single copy estimates the column."""
    all_copies: float
    """The value with all copies."""
    independent_noise: float
    """The value with as many copies of the same levels whose noise is independent; NaN where there is none."""
    attack: str
    """The best attack on all copies."""

    @property
    def column(self) -> str:
        """The name of the column, or the names of the columns of a joint attribute."""
        return " x ".join(self.columns)

    @property
    def recovered(self) -> float:
        """The proportional reduction in error by the best attack, between 0 (no better than without a copy) and 1.

        It is R² for numbers, and for categories Goodman and Kruskal's lambda.
        """
        return self.reduction(self.all_copies)

    @property
    def recovered_alone(self) -> float:
        """The same from the best single copy; NaN where no attack on a single copy estimates the column."""
        return self.reduction(self.single_copy)

    @property
    def independently_recovered(self) -> float:
        """The same from copies whose noise is independent; NaN where there is none."""
        return self.reduction(self.independent_noise)

    def reduction(self, value: float) -> float:
        """The proportional reduction in error of an attack with this error or accuracy; NaN of NaN."""
        if math.isnan(value):
            return value
        if self.measure == "error":
            return max(1 - value, 0.0)
        return max((value - self.baseline) / (1 - self.baseline), 0.0) if self.baseline < 1 else 0.0
