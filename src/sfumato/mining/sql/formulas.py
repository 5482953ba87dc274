"""Formulas of aggregates: their estimates, and intervals that hold wherever those of all aggregates do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats
from sfumato.mining.sql.outputs import Formula, Operand, Output

_Ends = tuple[Floats, Floats, Floats]
"""The estimate and the ends of its interval, in every group."""


def evaluated(formula: Operand, found: Mapping[Output, tuple[Any, Any, Any]], rows: int) -> tuple[Any, Any, Any]:
    """The columns of a result: the estimate, and the ends of its interval."""
    if isinstance(formula, Output):
        return found[formula]
    estimate, low, high = (pa.array(part, from_pandas=True) for part in _value(formula, found, rows))
    return estimate, low, high


def _value(formula: Operand, found: Mapping[Output, tuple[Any, Any, Any]], rows: int) -> _Ends:
    if isinstance(formula, Output):
        parts = (np.asarray(part.to_numpy(), np.float64) for part in found[formula])
        estimate, low, high = parts
        return estimate, low, high
    if not isinstance(formula, Formula):
        constant = np.full(rows, formula)
        return constant, constant, constant
    one, other = _value(formula.left, found, rows), _value(formula.right, found, rows)
    if formula.operator in "+-":
        sign = 1 if formula.operator == "+" else -1
        ends = [one[i] + sign * other[j] for i in (1, 2) for j in (1, 2)]
        return one[0] + sign * other[0], np.minimum.reduce(ends), np.maximum.reduce(ends)
    if formula.operator == "*":
        ends = [one[i] * other[j] for i in (1, 2) for j in (1, 2)]
        return one[0] * other[0], np.minimum.reduce(ends), np.maximum.reduce(ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        unknown = (other[1] <= 0) & (other[2] >= 0)  # what is divided by may be 0
        ends = [np.where(unknown, np.nan, one[i] / other[j]) for i in (1, 2) for j in (1, 2)]
        estimate = np.where(unknown, np.nan, one[0] / other[0])
    return estimate, np.minimum.reduce(ends), np.maximum.reduce(ends)
