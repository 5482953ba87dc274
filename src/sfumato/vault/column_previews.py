"""What a level means for each column: the error of an attacker, and the precision of an analyst's statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.attacks import Records
from sfumato.audit.value_risk import expected_accuracy, expected_error
from sfumato.kernels.intervals import deviations
from sfumato.models import Model, of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables.margin import Margin

_NORMAL = deviations(0.95)
"""Half the width of a 95 % confidence interval, in standard errors."""


def column_previews(models: Sequence[Model], truth: Records, schema: pa.Schema, rows: int) -> list[dict[str, Any]]:
    """The errors of attackers and of analysts for each perturbed column."""
    out = []
    for model in of_type(models, GaussianNoise):
        noise = [line[-1] for line in model.covariance]
        values = truth.numbers(model.columns)
        spreads = np.nanstd(values, axis=0)
        out += [
            _number(schema.field(name), float(spreads[j]), noise[j], rows, float(np.nanmean(values[:, j])))
            for j, name in enumerate(model.columns)
        ]
    for copula in of_type(models, GaussianCopula):
        for name, data in zip(copula.columns, copula.margins, strict=True):
            out.append(_preserved(schema.field(name), Margin.decode(data), 1 / (1 + copula.noise), rows))
    return out + [_category(m, truth.codes[m.columns], rows) for m in of_type(models, UniformReplacement)]


def _number(field: pa.Field, spread: float, noise: float, rows: int, mean: float) -> dict[str, Any]:
    """The errors for a number: noise of variance `v` leaves `s·v/(s+v)` of a variance `s` (li2012, eq. 3)."""
    attacker = math.sqrt(spread**2 * noise / (spread**2 + noise)) if spread else 0.0
    return _described(field, mean, spread, attacker, _NORMAL * math.sqrt((spread**2 + noise) / rows))


def _preserved(field: pa.Field, margin: Margin, fidelity: float, rows: int) -> dict[str, Any]:
    """The errors for a column whose margin is preserved, as its published margin tells them."""
    if margin.values:
        shares = np.diff([0.0, *margin.share])
        return {
            "name": field.name,
            "kind": "category",
            "preserved": True,
            "baseline": float(shares.max()),
            "attacker": expected_accuracy(margin, fidelity),
            "analyst": _NORMAL * math.sqrt(0.5 / rows),
        }
    mean, variance, error = expected_error(margin, fidelity)
    spread, attacker = (margin.step * math.sqrt(one) for one in (variance, error))
    return _described(field, margin.step * mean, spread, attacker, _NORMAL * spread * math.sqrt(2 / rows))


def _described(field: pa.Field, mean: float, spread: float, attacker: float, analyst: float) -> dict[str, Any]:
    per_day = units_per_day(field.type)
    return {
        "name": field.name,
        "kind": "number",
        "unit": "" if per_day is None else " days",
        "mean": mean,
        "day": day_of(mean, per_day),
        "standard_deviation": spread / (per_day or 1),
        "attacker": attacker / (per_day or 1),
        "analyst": analyst / (per_day or 1),
    }


def units_per_day(kind: pa.DataType) -> float | None:
    """The number of units of a temporal type per day; `None` for plain numbers."""
    if types.is_date(kind):
        return 1.0 if types.is_date32(kind) else 86_400_000.0
    return 86_400.0 * {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit] if types.is_timestamp(kind) else None


def day_of(value: float, per_day: float | None) -> str | None:
    """A time as a date; `None` for plain numbers."""
    if per_day is None:
        return None
    return (date(1970, 1, 1) + timedelta(days=math.floor(value / per_day))).isoformat()


def _category(model: UniformReplacement, codes: Any, rows: int) -> dict[str, Any]:
    """The accuracy of the most probable category, and the standard error of an estimated share (xiao2009, eq. 1)."""
    size = model.size
    shares = np.bincount(codes[codes >= 0], minlength=size) / max((codes >= 0).sum(), 1)
    retained, other = model.retention, (1 - model.retention) / size
    joint = shares[:, None] * (retained * np.eye(size) + other)
    q = retained * 0.5 + other
    return {
        "name": " and ".join(model.columns),
        "kind": "category",
        "preserved": False,
        "baseline": float(shares.max()),
        "attacker": float(joint.max(axis=0).sum()),
        "analyst": _NORMAL * math.sqrt(q * (1 - q) / rows) / retained if retained else math.inf,
    }
