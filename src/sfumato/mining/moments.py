"""Mean, covariance, correlation and quantiles of the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.errors import MiningError, nearest
from sfumato.kernels import Floats
from sfumato.kernels.covariances import positive, variance_interval
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy, opened
from sfumato.mining.copies.interval import Interval, half_width
from sfumato.mining.copies.summary import Summary


class Moments(Miner):
    """Mean, covariance, correlation and quantiles of the original, with confidence intervals.

    `K_X = K_Y/(1+σ²)` where the noise has the shape of the very data (`shaped`; li2012, section 3.1), else `K_Y - K_Z`,
    projected to what can be a covariance. Of several copies on different paths, each answer is the mean of theirs,
    weighed by precision.
    """

    reference = "li2012, section 3.1; huang2005, eq. 14; quantiles: Stefanski and Carroll 1990"

    def __init__(self, *, columns: Sequence[str] | None = None, shaped: bool = False, confidence: float = 0.95) -> None:
        """Say what to look at.

        Args:
            columns: of numbers; all of them, if none are named.
            shaped: whether the noise has the shape of these very rows: say so if the owner does. It has where a scheme
                was fitted to this table as it is, with all its rows, and no spread or scale was stated; a copy cannot
                prove it. Intervals of covariances are then narrower by `1+σ²`, and wrong if it is not so.
            confidence: of the intervals.

        """
        self.columns = columns
        self.shaped = shaped
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Moments:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy, or those of a coalition."""
        copies = opened(copy, self.columns) if isinstance(copy, list | tuple) else [Copy.of(copy)]
        self._width = half_width(self.confidence)
        self._best = _summary(copies[0], self.columns)
        self.columns_ = self._best.names
        others = [Summary.of(one, self.columns_) for one in copies[1:] if set(self.columns_) <= set(one.names)]
        self._parts = [self._best, *others]
        self.rows_ = np.diag(self._best.rows).astype(np.int64)
        self.mean_, errors = _weighed([(p.mean, np.sqrt(np.diag(p.noise) / np.diag(p.rows))) for p in self._parts])
        self.mean_interval_ = _around(self.mean_, self._width * errors)
        self._vary()
        self._correlate()
        return self

    def _vary(self) -> None:
        """Covariances; the interval of a variance is right for few rows, too."""
        shaped, best = self.shaped, self._best
        found, errors = _weighed([(p.covariance(shaped=shaped)[0], p.entry_errors(shaped=shaped)) for p in self._parts])
        self.covariance_ = positive(found, best.units)
        self.covariance_interval_ = _around(found, self._width * errors)
        if len(self._parts) == 1 and not shaped:
            ends = variance_interval(np.diag(found), np.diag(best.noise), np.diag(best.rows), self._width)
            np.einsum("iik->ik", self.covariance_interval_)[:] = np.stack(ends, axis=-1)

    def _correlate(self) -> None:
        """Correlations over the records that show both, with intervals on Fisher's scale: errors are nearly normal."""
        found, errors = self._best.correlation(shaped=self.shaped)
        self.correlation_ = found
        inner = np.clip(found, -1 + 1e-12, 1 - 1e-12)
        self.correlation_interval_ = np.tanh(_around(np.arctanh(inner), self._width * errors / (1 - inner**2)))

    def quantile(self, column: str, shares: Sequence[float]) -> list[Interval]:
        """The points below which those shares of a column lie, for a column without heaps or sudden ends."""
        if column not in self.columns_:
            raise MiningError(f"{column!r} was not read; {nearest(column, self.columns_)}")
        if not all(0 < share < 1 for share in shares):
            raise MiningError(f"shares must lie between 0 and 1, got {list(shares)}")
        found, ends = self._best.shares(column), self._best.ends(column)
        return [found.quantile(share, self._width).within(*ends) for share in shares]


def _summary(copy: Copy, asked: Sequence[str] | None) -> Summary:
    """Of the columns asked for, else of all that have values."""
    found = Summary.of(copy, copy.numbers(asked))
    there = [name for name, rows in zip(found.names, np.diag(found.rows), strict=True) if rows >= 2]
    if len(there) == len(found.names):
        return found
    if asked is not None or not there:
        raise MiningError(f"moments need at least two values of each of {', '.join(found.names)}; the copy has fewer")
    return Summary.of(copy, there)


def _weighed(found: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Estimates from independent copies as one, and their standard errors: by precision."""
    if len(found) == 1:
        return found[0]
    weights = np.stack([1 / np.maximum(errors, 1e-300) ** 2 for _, errors in found])
    total = weights.sum(axis=0)
    mean: Floats = (weights * np.stack([values for values, _ in found])).sum(axis=0) / total
    return mean, np.sqrt(1 / total)


def _around(middle: Floats, reach: Floats) -> Floats:
    ends: Floats = np.stack([middle - reach, middle + reach], axis=-1)
    return ends
