"""Mean, covariance, correlation and quantiles of the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.covariances import correlation_errors, positive, variance_interval
from sfumato.mining import Miner
from sfumato.mining._copy import Copy, opened
from sfumato.mining._interval import Interval, half_width
from sfumato.mining._summary import Summary


class Moments(Miner):
    """Mean, covariance, correlation and quantiles of the original, with confidence intervals.

    `K_X = K_Y/(1+σ²)` where the noise has the shape of the very data (li2012, section 3.1), `K_Y - K_Z` otherwise,
    projected to what can be a covariance. Of several copies on different paths, each answer is the mean of theirs,
    weighed by precision.
    """

    reference = "li2012, section 3.1; huang2005, eq. 14; quantiles: Stefanski and Carroll 1990"

    def __init__(
        self, *, columns: Sequence[str] | None = None, shaped: bool | None = None, confidence: float = 0.95
    ) -> None:
        """Say what to look at.

        Args:
            columns: of numbers; all of them, if none are named.
            shaped: whether the noise has the shape of these very rows. If it is not said, it is believed where no
                column has a scale of its own, the copy shows all rows of the table's first version, and its covariance
                agrees with that of the noise.
            confidence: of the intervals.

        """
        self.columns = columns
        self.shaped = shaped
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Moments:  # noqa: ARG002 - scikit-learn's signature
        """Read a copy, or those of a coalition."""
        copies = opened(copy) if isinstance(copy, list | tuple) else [Copy.of(copy)]
        self._width = half_width(self.confidence)
        self.columns_ = copies[0].numbers(self.columns)
        self._parts = [Summary.of(one, self.columns_) for one in copies if set(self.columns_) <= set(one.names)]
        self._best = self._parts[0]
        self.shaped_ = self._best.is_shaped() if self.shaped is None else self.shaped
        self.rows_ = np.diag(self._best.rows).astype(np.int64)
        self.mean_, errors = _weighed([(p.mean, np.sqrt(np.diag(p.noise) / np.diag(p.rows))) for p in self._parts])
        self.mean_interval_ = _around(self.mean_, self._width * errors)
        self._vary()
        self._correlate()
        return self

    def _vary(self) -> None:
        """Covariances; the interval of a variance is right for few rows, too."""
        shaped, best = self.shaped_, self._best
        found, errors = _weighed([(p.covariance(shaped=shaped)[0], p.entry_errors(shaped=shaped)) for p in self._parts])
        self.covariance_ = positive(found, best.units)
        self.covariance_interval_ = _around(found, self._width * errors)
        if len(self._parts) == 1 and not shaped:
            ends = variance_interval(np.diag(found), np.diag(best.noise), np.diag(best.rows), self._width)
            np.einsum("iik->ik", self.covariance_interval_)[:] = np.stack(ends, axis=-1)

    def _correlate(self) -> None:
        """Correlations, with intervals on Fisher's scale, where errors are nearly normal."""
        sizes = np.sqrt(np.maximum(np.diag(self.covariance_), 1e-300))
        self.correlation_ = np.clip(self.covariance_ / np.outer(sizes, sizes), -1, 1)
        gain = self._best.covariance(shaped=self.shaped_)[1]
        errors = correlation_errors(self.covariance_, self._best.noise, self._best.rows) * gain
        inner = np.clip(self.correlation_, -1 + 1e-12, 1 - 1e-12)
        middle = np.arctanh(inner)
        self.correlation_interval_ = np.tanh(_around(middle, self._width * errors / (1 - inner**2)))

    def quantile(self, column: str, shares: Sequence[float]) -> list[Interval]:
        """The points below which those shares of a column lie, for a column without heaps or sudden ends."""
        found, ends = self._best.shares(column), self._best.ends(column)
        return [found.quantile(share, self._width).within(*ends) for share in shares]


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
