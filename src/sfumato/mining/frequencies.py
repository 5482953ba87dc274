"""Frequencies of categories, alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.kernels.inversion import em_frequencies, inversion_variance, inverted, likeliest
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import half_width
from sfumato.mining.features.contingency import Counts, Replaced, counted

METHODS = ("inversion", "em", "likelihood")
WORST = 0.2
"""A standard error of a frequency that is too large to answer anything with."""


class Frequencies(Miner):
    """How frequent each category is in the original, alone or together with others.

    The table of counts is inverted along each perturbed column; columns that are shown as they are can take part.
    """

    reference = "xiao2009, eq. 1, inverted; Agrawal and Aggarwal 2001"

    def __init__(
        self,
        *,
        columns: Sequence[str | Sequence[str]] | None = None,
        method: str = "inversion",
        confidence: float = 0.95,
    ) -> None:
        """Say what to count.

        Args:
            columns: what to count: a column, or a list of columns that are counted together; each perturbed column by
                itself, if nothing is named.
            method: `inversion` is unbiased and may leave the simplex; `likelihood` is the likeliest distribution; `em`
                is the iteration that leads there. Intervals are those of the inversion.
            confidence: of the intervals.

        """
        self.columns = columns
        self.method = method
        self.confidence = confidence

    def fit(self, copy: Any, y: Any = None) -> Frequencies:  # noqa: ARG002 - scikit-learn's signature
        """Count a copy in one pass; of a coalition's, the best."""
        if self.method not in METHODS:
            raise MiningError(f"a method must be one of {', '.join(METHODS)}, got {self.method!r}")
        width, best = half_width(self.confidence), Copy.of(copy)
        asked = [(name,) for name in best.replaced] if self.columns is None else self.columns
        wanted = [(entry,) if isinstance(entry, str) else tuple(entry) for entry in asked]
        if not wanted:
            raise MiningError("a column of categories must be named: no column of this copy is perturbed")
        counts = counted(best, wanted)
        self.tables_ = {names: self._table(part, width) for names, part in zip(wanted, counts, strict=True)}
        return self

    def table(self, *columns: str) -> pa.Table:
        """What was counted of these columns."""
        if columns not in self.tables_:
            raise MiningError(f"{', '.join(columns)} was not counted; name it in `columns`")
        return self.tables_[columns]

    def _table(self, counts: Counts, width: float) -> pa.Table:
        seen = counts.table()
        retentions = [axis.retention for axis in counts.axes]
        rows = float(seen.sum())
        if not rows:
            raise MiningError("frequencies need records that miss none of these columns, and the copy has none")
        errors = np.sqrt(inversion_variance(seen, retentions)) / rows
        if errors.max(initial=0) > WORST:
            raise MiningError(
                f"frequencies must be known better than to ±{2 * WORST:.0%}, and at this level of trust {int(rows):,} "
                f"rows give ±{2 * errors.max():.0%}; ask for a more faithful copy or for fewer columns together"
            )
        middle = inverted(seen, retentions) / rows
        found = middle if self.method == "inversion" else self._constrained(seen, counts)
        labels = [axis.labels for axis in counts.axes]
        places = np.indices(seen.shape).reshape(len(labels), -1)
        columns: dict[str, Any] = {}
        for axis, said, place in zip(counts.axes, labels, places, strict=True):
            for i, name in enumerate(axis.columns):
                columns[name] = pa.array([said[p][i] for p in place])
        ends = np.clip([middle - width * errors, middle + width * errors], 0, 1)
        return pa.table(
            columns
            | {
                "frequency": found.ravel(),
                "low": ends[0].ravel(),
                "high": ends[1].ravel(),
                "count": found.ravel() * rows,
            }
        )

    def _constrained(self, seen: Floats, counts: Counts) -> Floats:
        blurred = [axis for axis in counts.axes if isinstance(axis, Replaced)]
        if self.method == "likelihood" and len(counts.axes) == len(blurred) == 1:
            return likeliest(seen, blurred[0].retention)
        return em_frequencies(seen, [axis.retention for axis in counts.axes])
