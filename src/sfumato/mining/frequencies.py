"""Frequencies of categories and contingency tables of the original, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.inversion import (
    em_frequencies,
    inversion_variance,
    inverted_counts,
    maximum_likelihood_frequencies,
)
from sfumato.mining import Miner
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.features.contingency import ContingencyTable, contingency_tables

METHODS = ("inversion", "em", "likelihood")
MAX_STANDARD_ERROR = 0.2
"""The standard error of a frequency above which no answer is given."""


class Frequencies(Miner):
    """The frequency of each category in the original, or of each combination of categories.

    The contingency table of the copy is inverted along each perturbed factor; unchanged columns can be factors too.
    """

    reference = "xiao2009, eq. 1, inverted; Agrawal and Aggarwal 2001"
    example = {"method": "likelihood"}

    def __init__(
        self,
        *,
        columns: Sequence[str | Sequence[str]] | None = None,
        method: str = "inversion",
        confidence: float = 0.95,
    ) -> None:
        """Set the parameters.

        Args:
            columns: what to tabulate: each entry is a column, or a list of columns to cross-tabulate; each perturbed
                column by itself by default.
            method: `inversion` is unbiased but may give negative frequencies; `likelihood` is the maximum-likelihood
                distribution; `em` is the expectation-maximisation iteration that converges to it. The intervals are
                those of the inversion.
            confidence: the confidence level of the intervals.

        """
        self.columns = columns
        self.method = method
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Frequencies:  # noqa: ARG002 - scikit-learn's signature
        """Tabulate a copy in one pass, or the most faithful of several."""
        if self.method not in METHODS:
            raise MiningError(f"`method` must be one of {', '.join(METHODS)}, got {self.method!r}; choose one of them")
        best = Copy.of(copy)
        width = critical_value(self.confidence, best.design_effect(best.replaced_columns))
        requested = [(name,) for name in best.replaced_columns] if self.columns is None else self.columns
        groups = [(entry,) if isinstance(entry, str) else tuple(entry) for entry in requested]
        if not groups:
            raise MiningError(
                "`columns` must be given, since this copy has no perturbed categorical column; name columns"
            )
        tables = contingency_tables(best, groups)
        self.tables_ = {names: self._frequencies(table, width) for names, table in zip(groups, tables, strict=True)}
        return self

    def table(self, *columns: str) -> pa.Table:
        """The frequencies of these columns, with intervals."""
        if columns not in self.tables_:
            raise MiningError(f"{', '.join(columns)} must be in `columns` to be tabulated, and is not; add it there")
        return self.tables_[columns]

    def _frequencies(self, table: ContingencyTable, width: float) -> pa.Table:
        """The estimated frequency of each cell of a contingency table."""
        observed, retentions = table.counts(), [factor.retention for factor in table.factors]
        rows = float(observed.sum())
        if not rows:
            raise MiningError(
                "frequencies need records without missing values in these columns, and the copy has none; choose others"
            )
        errors = np.sqrt(inversion_variance(observed, retentions)) / rows
        if errors.max(initial=0) > MAX_STANDARD_ERROR:
            raise MiningError(
                f"frequencies must be known to within ±{2 * MAX_STANDARD_ERROR:.0%}, and {int(rows):,} rows at this "
                f"trust level give ±{2 * errors.max():.0%}; ask the owner for a more faithful copy, or cross-tabulate "
                "fewer columns"
            )
        unbiased = inverted_counts(observed, retentions) / rows
        estimates = unbiased if self.method == "inversion" else self._constrained(observed, table)
        ends = np.clip([unbiased - width * errors, unbiased + width * errors], 0, 1)
        return pa.table(
            _labels(table, observed.shape)
            | {
                "frequency": estimates.ravel(),
                "low": ends[0].ravel(),
                "high": ends[1].ravel(),
                "count": estimates.ravel() * rows,
            }
        )

    def _constrained(self, observed: Floats, table: ContingencyTable) -> Floats:
        """Frequencies that are not negative and sum to 1."""
        if self.method == "likelihood" and [factor.is_perturbed for factor in table.factors] == [True]:
            return maximum_likelihood_frequencies(observed, table.factors[0].retention)
        return em_frequencies(observed, [factor.retention for factor in table.factors])


def _labels(table: ContingencyTable, shape: tuple[int, ...]) -> dict[str, Any]:
    """The category of every column in each cell of a contingency table, cell after cell."""
    columns: dict[str, Any] = {}
    for factor, codes in zip(table.factors, np.indices(shape).reshape(len(shape), -1), strict=True):
        labels = factor.labels
        for i, name in enumerate(factor.columns):
            columns[name] = pa.array([labels[code][i] for code in codes])
    return columns
