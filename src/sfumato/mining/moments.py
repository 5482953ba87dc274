"""Mean, covariance, correlation and quantiles of the original, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.errors import MiningError, nearest
from sfumato.kernels import Floats
from sfumato.kernels.covariances import nearest_covariance, variance_interval
from sfumato.kernels.intervals import Interval
from sfumato.mining import Miner
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy, non_dominated_copies
from sfumato.mining.copies.summary import Summary


class Moments(Miner):
    """Mean, covariance, correlation and quantiles of the original, with confidence intervals.

    The covariance is `K_Y - K_Z`, projected to the nearest covariance matrix. Estimates from several copies on
    different paths are averaged, weighted by their precision. `K_Y/(1+σ²)` (li2012, section 3.1) would have narrower
    intervals if the noise were exactly proportional to the data; it is not, since its covariance is rounded first.
    """

    reference = "li2012, section 3.1; huang2005, eq. 14; quantiles: Stefanski and Carroll 1990"
    example = {"confidence": 0.9}

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        confidence: float = 0.95,
    ) -> None:
        """Set the parameters.

        Args:
            columns: the numeric columns to analyse; all of them by default.
            confidence: the confidence level of the intervals.

        """
        self.columns = columns
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Moments:  # noqa: ARG002 - scikit-learn's signature
        """Estimate the moments from a copy, or from the copies of a coalition."""
        copies = non_dominated_copies(copy, self.columns) if isinstance(copy, list | tuple) else [Copy.of(copy)]
        critical_value(self.confidence)  # refuses what is none
        self._best = _summary(copies[0], self.columns)
        self.columns_ = self._best.names
        shared = max(one.design_effect(self.columns_) for one in copies)
        self._critical_value = critical_value(self.confidence, shared)
        others = [Summary.of(one, self.columns_) for one in copies[1:] if set(self.columns_) <= set(one.column_names)]
        self._summaries = [self._best, *others]
        self.rows_ = np.diag(self._best.rows).astype(np.int64)
        means = [(part.mean, np.sqrt(np.diag(part.noise) / np.diag(part.rows))) for part in self._summaries]
        self.mean_, errors = _precision_weighted(means)
        self.mean_interval_ = _intervals(self.mean_, self._critical_value * errors)
        self._estimate_covariance()
        self._estimate_correlation()
        return self

    def _estimate_covariance(self) -> None:
        """Estimate the covariance matrix; the interval of a variance also holds for few rows."""
        best = self._best
        parts = [(part.covariance, part.entry_standard_errors()) for part in self._summaries]
        estimate, errors = _precision_weighted(parts)
        self.covariance_ = nearest_covariance(estimate, best.units)
        self.covariance_interval_ = _intervals(estimate, self._critical_value * errors)
        if len(self._summaries) == 1:
            rows = np.diag(best.rows)
            ends = variance_interval(np.diag(estimate), np.diag(best.noise), rows, self._critical_value)
            np.einsum("iik->ik", self.covariance_interval_)[:] = np.stack(ends, axis=-1)

    def _estimate_correlation(self) -> None:
        """Estimate correlations over complete pairs, with intervals on Fisher's z scale, where errors are normal."""
        self.correlation_, errors = self._best.correlation()
        inner = np.clip(self.correlation_, -1 + 1e-12, 1 - 1e-12)
        reach = self._critical_value * errors / (1 - inner**2)
        self.correlation_interval_ = np.tanh(_intervals(np.arctanh(inner), reach))

    def quantile(self, column: str, probabilities: Sequence[float]) -> list[Interval]:
        """The quantiles of a column; their intervals include what the resolution of the copy leaves open."""
        if column not in self.columns_:
            raise MiningError(f"{column!r} must be one of the fitted columns; {nearest(column, self.columns_)}")
        if not all(0 < probability < 1 for probability in probabilities):
            raise MiningError(f"probabilities must lie between 0 and 1, got {list(probabilities)}; 0.5 is the median")
        cdf, bounds = self._best.cdf(column), self._best.copy.clip_bounds(column) or (-math.inf, math.inf)
        return [cdf.quantile(probability, self._critical_value).within(*bounds) for probability in probabilities]


def _summary(copy: Copy, requested: Sequence[str] | None) -> Summary:
    """The summary of the requested columns, else of all columns that have at least two values."""
    summary = Summary.of(copy, copy.numeric_columns(requested))
    usable = [name for name, rows in zip(summary.names, np.diag(summary.rows), strict=True) if rows >= 2]
    if len(usable) == len(summary.names):
        return summary
    if requested is not None or not usable:
        raise MiningError(
            f"moments need at least two values in each of {', '.join(summary.names)}, and the copy has fewer; leave "
            "out columns without values"
        )
    return Summary.of(copy, usable)


def _precision_weighted(estimates: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean of independent estimates weighted by their precision, and its standard errors."""
    if len(estimates) == 1:
        return estimates[0]
    weights = np.stack([1 / np.maximum(errors, 1e-300) ** 2 for _, errors in estimates])
    total = weights.sum(axis=0)
    mean: Floats = (weights * np.stack([values for values, _ in estimates])).sum(axis=0) / total
    return mean, np.sqrt(1 / total)


def _intervals(estimates: Floats, reach: Floats) -> Floats:
    ends: Floats = np.stack([estimates - reach, estimates + reach], axis=-1)
    return ends
