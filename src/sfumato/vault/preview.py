"""Previews before a grant: sample records at a level, and what colluding recipients could reconstruct."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.attacks import ATTACKS, record_errors
from sfumato.audit.audit_input import AuditInput
from sfumato.kernels import Floats, Words
from sfumato.kernels.intervals import deviations
from sfumato.levels import Level
from sfumato.models import Model, of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import original_records
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.scheme import TableScheme
from sfumato.tables.sampling import sampled
from sfumato.tables.view import EVERYTHING
from sfumato.vault.audits import holders_of
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import require
from sfumato.vault.lifecycle import VaultLifecycle

ROWS = 4_000
"""The number of sampled records from which accuracy is estimated."""

SHOWN = 10
"""The number of records in a preview."""

_MAX_SAMPLES = 32
"""The most samples in the cache."""

_NORMAL = deviations(0.95)
"""Half the width of a 95 % confidence interval, in standard errors."""


@dataclass(frozen=True)
class Sample:
    """A sample of the records of a dataset's version."""

    name: str
    scheme: TableScheme
    row_ids: Words
    table: pa.Table
    rows: int
    """The number of rows of the whole table."""


def preview(vault: VaultLifecycle, dataset: str, fidelity: float) -> dict[str, Any]:
    """Ten records of a copy at this level, with the error of an attacker and the standard error of an analyst."""
    sample, keys = _sample(vault, dataset), vault.keys()
    vault.record_access("previewed", {"fidelity": fidelity}, dataset=dataset)
    key = keys[max(keys)]
    first = sample.table.slice(0, SHOWN)
    level = sample.scheme.given(Level(fidelity))
    [copy] = perturb_sample(sample.scheme, sample.row_ids[:SHOWN], first, [level], key)
    models = sample.scheme.models(sample.table.schema, level)
    truth = original_records(sample.table, models)
    names = [name for name in copy.column_names if name in first.column_names]
    return {
        "fidelity": level.fidelity,
        "residual_error": level.error,
        "original": _cells(first.select(names)),
        "copy": _cells(copy),
        "columns": _columns(models, truth, sample),
    }


def collusion(vault: VaultLifecycle, dataset: str, recipients: Sequence[str]) -> dict[str, Any]:
    """What some recipients could reconstruct by collusion, compared with copies of independent noise."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        now = Dataset.of(require(reading, "dataset", dataset), vault.store)
        holders = holders_of(reading, now, list(recipients), vault.now())
    sample = _sample(vault, dataset)
    vault.record_access("previewed", {"colluders": sorted(recipients)}, dataset=dataset)
    order = sorted(holders, key=lambda name: -holders[name].fidelity)
    copies = {
        name: perturb_sample(
            sample.scheme, sample.row_ids, sample.table, [Level(holders[name].fidelity)], keys[holders[name].generation]
        )[0]
        for name in order
    }
    audit_input = AuditInput.of(sample.table, copies)
    independent = audit_input.with_independent_noise()
    return {
        "dataset": dataset,
        "records": len(audit_input.truth),
        "recipients": [{"name": name, "fidelity": holders[name].fidelity} for name in order],
        "numbers": _numbers(audit_input, independent) if all(copy.numbers for copy in audit_input.copies) else None,
        "categories": _categories(audit_input, independent)
        if all(copy.categories for copy in audit_input.copies)
        else None,
    }


def _numbers(audit_input: AuditInput, independent: AuditInput) -> dict[str, Any]:
    """The errors of the best linear attack on both, and its estimates of a few records."""
    found = [ATTACKS["llse"]().estimate(one.combined(known_records=False)) for one in (audit_input, independent)]
    columns = found[0].columns
    per_day = [_units_per_day(audit_input.original.schema.field(name).type) for name in columns]
    truth = audit_input.truth.numbers(columns)
    spread = np.nanstd(truth, axis=0)
    rmse = [np.sqrt(np.nanmean((one.values - truth) ** 2, axis=0)) for one in found]
    shares = [float(np.nanmean(record_errors(one.values, truth) ** 2)) for one in found]
    return {
        "residual_error": {"actual": shares[0], "independent": shares[1]},
        "columns": [
            {
                "name": name,
                "unit": "" if per_day[j] is None else " days",
                "standard_deviation": float(spread[j] / (per_day[j] or 1)),
                "actual": float(rmse[0][j] / (per_day[j] or 1)),
                "independent": float(rmse[1][j] / (per_day[j] or 1)),
            }
            for j, name in enumerate(columns)
        ],
        "estimates": [
            {
                "column": name,
                "low": _finite(np.nanmin(truth[:, j])),
                "high": _finite(np.nanmax(truth[:, j])),
                "days": [_day(float(end(truth[:, j])), per_day[j]) for end in (np.nanmin, np.nanmax)],
                "truth": _list(truth[:SHOWN, j]),
                "actual": _list(found[0].values[:SHOWN, j]),
                "independent": _list(found[1].values[:SHOWN, j]),
            }
            for j, name in enumerate(columns)
        ],
    }


def _categories(audit_input: AuditInput, independent: AuditInput) -> list[dict[str, Any]]:
    """The accuracy of the most probable category."""
    both = [
        ATTACKS["collusion"]().estimate(one.combined(known_records=False)).posteriors
        for one in (audit_input, independent)
    ]
    out = []
    for ours, other in zip(*both, strict=True):
        truth = audit_input.truth.codes[ours.columns]
        blind = float(np.bincount(truth[truth >= 0]).max() / max((truth >= 0).sum(), 1))
        out.append(
            {
                "name": " and ".join(ours.columns),
                "baseline": blind,
                "actual": float(np.nanmean(ours.probability(truth))),
                "independent": float(np.nanmean(other.probability(truth))),
            }
        )
    return out


def _columns(models: Sequence[Model], truth: Any, sample: Sample) -> list[dict[str, Any]]:
    """The errors of attackers and of analysts for each perturbed column."""
    out = []
    for model in of_type(models, GaussianNoise):
        noise = [line[-1] for line in model.covariance]
        values = truth.numbers(model.columns)
        spreads = np.nanstd(values, axis=0)
        out += [
            _number(name, float(spreads[j]), noise[j], sample, float(np.nanmean(values[:, j])))
            for j, name in enumerate(model.columns)
        ]
    return out + [_category(m, truth.codes[m.columns], sample.rows) for m in of_type(models, UniformReplacement)]


def _number(name: str, spread: float, noise: float, sample: Sample, mean: float) -> dict[str, Any]:
    """The errors for a number: noise of variance `v` leaves `s·v/(s+v)` of a variance `s` (li2012, eq. 3)."""
    attacker = math.sqrt(spread**2 * noise / (spread**2 + noise)) if spread else 0.0
    analyst = _NORMAL * math.sqrt((spread**2 + noise) / sample.rows)
    per_day = _units_per_day(sample.table.schema.field(name).type)
    return {
        "name": name,
        "kind": "number",
        "unit": "" if per_day is None else " days",
        "mean": mean,
        "day": _day(mean, per_day),
        "standard_deviation": spread / (per_day or 1),
        "attacker": attacker / (per_day or 1),
        "analyst": analyst / (per_day or 1),
    }


def _units_per_day(kind: pa.DataType) -> float | None:
    """The number of units of a temporal type per day; `None` for plain numbers."""
    if types.is_date(kind):
        return 1.0 if types.is_date32(kind) else 86_400_000.0
    return 86_400.0 * {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit] if types.is_timestamp(kind) else None


def _day(value: float, per_day: float | None) -> str | None:
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
        "baseline": float(shares.max()),
        "attacker": float(joint.max(axis=0).sum()),
        "analyst": _NORMAL * math.sqrt(q * (1 - q) / rows) / retained if retained else math.inf,
    }


_SAMPLES: dict[tuple[str, int], Sample] = {}
"""A cache of samples, by the location of the vault and the number of the dataset's entry."""


def _sample(vault: VaultLifecycle, dataset: str) -> Sample:
    with vault.ledger.reading(vault.keys()) as reading:
        entry = require(reading, "dataset", dataset)
    cached = vault.location, entry.number
    if cached not in _SAMPLES:
        found = Dataset.of(entry, vault.store)
        with found.source() as source:
            scheme = found.scheme.with_view(EVERYTHING)
            row_ids, table = sampled(numbered_rows(scheme, source), ROWS)
        while len(_SAMPLES) >= _MAX_SAMPLES:
            _SAMPLES.pop(next(iter(_SAMPLES)), None)
        _SAMPLES[cached] = Sample(dataset, scheme, row_ids, table, found.rows)
    return _SAMPLES[cached]


def _cells(table: pa.Table) -> dict[str, list[str]]:
    return {name: [_format(value) for value in table.column(name)] for name in table.column_names}


def _format(value: pa.Scalar) -> str:
    if not value.is_valid:
        return ""
    plain = value.as_py()
    return f"{plain:.5g}" if isinstance(plain, float) else str(plain)


def _list(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
