"""Looking before leaping: what a level would show, and what recipients who pool their copies could reconstruct."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.attacks import ATTACKS, Categories, record_errors
from sfumato.audit.audit_input import AuditInput
from sfumato.kernels import Floats, Words
from sfumato.kernels.intervals import deviations
from sfumato.levels import Level
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import records
from sfumato.release.scheme import TableScheme
from sfumato.tables.sampling import sampled
from sfumato.tables.view import EVERYTHING
from sfumato.vault.audits import holders_of
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import known

if TYPE_CHECKING:
    from sfumato.vault.vault import Vault

ROWS = 4_000
"""Records that are looked at."""

SHOWN = 10
"""Records that are shown."""

_MOST = 32
"""Samples that are kept."""

_NORMAL = deviations(0.95)
"""Of a 95 % interval."""


@dataclass(frozen=True)
class Sample:
    """Some records of a version of a dataset."""

    name: str
    scheme: TableScheme
    places: Words
    table: pa.Table
    rows: int


def preview(vault: Vault, dataset: str, fidelity: float) -> dict[str, Any]:
    """Ten records as a copy at this level shows them, and what attackers and analysts would be left with."""
    sample, keys = _sample(vault, dataset), vault.keys()
    key = keys[max(keys)]
    first = sample.table.slice(0, SHOWN)
    level = sample.scheme.given(Level(fidelity))
    [copy] = sample.scheme.copies(sample.places[:SHOWN], first, [level], key)
    models = sample.scheme.models(sample.table.schema, level)
    ours = records(sample.table, models)
    names = [name for name in copy.column_names if name in first.column_names]
    return {
        "fidelity": level.fidelity,
        "error": level.error,
        "original": _cells(first.select(names)),
        "copy": _cells(copy),
        "columns": [said for model in models for said in _columns(model, ours, sample)],
    }


def collusion(vault: Vault, dataset: str, recipients: Sequence[str]) -> dict[str, Any]:
    """What some recipients could reconstruct together, beside what they could had the noise been independent."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        now = Dataset.of(known(reading, "dataset", dataset), vault.store)
        holders = holders_of(reading, now, list(recipients), vault.now())
    sample = _sample(vault, dataset)
    order = sorted(holders, key=lambda name: -holders[name].fidelity)
    copies = {
        name: sample.scheme.copies(
            sample.places, sample.table, [Level(holders[name].fidelity)], keys[holders[name].generation]
        )[0]
        for name in order
    }
    audit_input = AuditInput.of(sample.table, copies)
    twin = audit_input.twin()
    return {
        "dataset": dataset,
        "records": len(audit_input.truth),
        "recipients": [{"name": name, "fidelity": holders[name].fidelity} for name in order],
        "numbers": _numbers(audit_input, twin) if all(copy.numbers for copy in audit_input.copies) else None,
        "categories": _categories(audit_input, twin) if all(copy.categories for copy in audit_input.copies) else None,
    }


def _numbers(audit_input: AuditInput, twin: AuditInput) -> dict[str, Any]:
    """The best linear attack on both, and its guesses of a few records."""
    found = [ATTACKS["llse"]().estimate(one.pooled(knows=False)) for one in (audit_input, twin)]
    columns = found[0].columns
    days = [_units_a_day(audit_input.original.schema.field(name).type) for name in columns]
    truth = audit_input.truth.numbers(columns)
    spread = np.nanstd(truth, axis=0)
    wrong = [np.sqrt(np.nanmean((one.values - truth) ** 2, axis=0)) for one in found]
    shares = [float(np.nanmean(record_errors(one.values, truth) ** 2)) for one in found]
    return {
        "error": {"ours": shares[0], "independent": shares[1]},
        "columns": [
            {
                "name": name,
                "unit": "" if days[j] is None else " days",
                "spread": float(spread[j] / (days[j] or 1)),
                "ours": float(wrong[0][j] / (days[j] or 1)),
                "independent": float(wrong[1][j] / (days[j] or 1)),
            }
            for j, name in enumerate(columns)
        ],
        "guesses": [
            {
                "column": name,
                "low": _finite(np.nanmin(truth[:, j])),
                "high": _finite(np.nanmax(truth[:, j])),
                "days": [_day(float(end(truth[:, j])), days[j]) for end in (np.nanmin, np.nanmax)],
                "truth": _list(truth[:SHOWN, j]),
                "ours": _list(found[0].values[:SHOWN, j]),
                "independent": _list(found[1].values[:SHOWN, j]),
            }
            for j, name in enumerate(columns)
        ],
    }


def _categories(audit_input: AuditInput, twin: AuditInput) -> list[dict[str, Any]]:
    """How often the likeliest category is the true one."""
    both = [ATTACKS["collusion"]().estimate(one.pooled(knows=False)).beliefs for one in (audit_input, twin)]
    out = []
    for ours, apart in zip(*both, strict=True):
        truth = audit_input.truth.codes[ours.columns]
        blind = float(np.bincount(truth[truth >= 0]).max() / max((truth >= 0).sum(), 1))
        out.append(
            {
                "name": " and ".join(ours.columns),
                "blind": blind,
                "ours": float(np.nanmean(ours.probability(truth))),
                "independent": float(np.nanmean(apart.probability(truth))),
            }
        )
    return out


def _columns(model: Model, truth: Any, sample: Sample) -> list[dict[str, Any]]:
    """What is left to attackers, and to analysts, of each column."""
    if isinstance(model, GaussianNoise):
        noise = [line[-1] for line in model.covariance]
        values = truth.numbers(model.columns)
        spreads = np.nanstd(values, axis=0)
        return [
            _number(name, float(spreads[j]), noise[j], sample, float(np.nanmean(values[:, j])))
            for j, name in enumerate(model.columns)
        ]
    if isinstance(model, UniformReplacement):
        return [_category(model, truth.codes[model.columns], sample.rows)]
    return []


def _number(name: str, spread: float, noise: float, sample: Sample, mean: float) -> dict[str, Any]:
    """By li2012, eq. 3: of the variance `s`, noise of variance `v` leaves a linear attacker `s·v/(s+v)`."""
    attacker = math.sqrt(spread**2 * noise / (spread**2 + noise)) if spread else 0.0
    analyst = _NORMAL * math.sqrt((spread**2 + noise) / sample.rows)
    a_day = _units_a_day(sample.table.schema.field(name).type)
    return {
        "name": name,
        "kind": "number",
        "unit": "" if a_day is None else " days",
        "mean": mean,
        "day": _day(mean, a_day),
        "spread": spread / (a_day or 1),
        "attacker": attacker / (a_day or 1),
        "analyst": analyst / (a_day or 1),
    }


def _units_a_day(kind: pa.DataType) -> float | None:
    """How many units of a type of time make a day; nothing for plain numbers."""
    if types.is_date(kind):
        return 1.0 if types.is_date32(kind) else 86_400_000.0
    return 86_400.0 * {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit] if types.is_timestamp(kind) else None


def _day(value: float, a_day: float | None) -> str | None:
    """A moment as a date."""
    if a_day is None:
        return None
    return (date(1970, 1, 1) + timedelta(days=math.floor(value / a_day))).isoformat()


def _category(model: UniformReplacement, codes: Any, rows: int) -> dict[str, Any]:
    """By xiao2009, eq. 1: the likeliest category given what is seen, and the error of a share that is won back."""
    size = Categories(model, "", codes).size
    shares = np.bincount(codes[codes >= 0], minlength=size) / max((codes >= 0).sum(), 1)
    kept, other = model.retention, (1 - model.retention) / size
    seen = shares[:, None] * (kept * np.eye(size) + other)
    q = kept * 0.5 + other
    return {
        "name": " and ".join(model.columns),
        "kind": "category",
        "blind": float(shares.max()),
        "attacker": float(seen.max(axis=0).sum()),
        "analyst": _NORMAL * math.sqrt(q * (1 - q) / rows) / kept if kept else math.inf,
    }


_SAMPLES: dict[tuple[str, int], Sample] = {}
"""By the vault and the number of the dataset's entry; a few."""


def _sample(vault: Vault, dataset: str) -> Sample:
    with vault.ledger.reading() as reading:
        entry = known(reading, "dataset", dataset)
    place = vault.location, entry.number
    if place not in _SAMPLES:
        found = Dataset.of(entry, vault.store)
        with found.source() as source:
            whole = found.scheme.seen(EVERYTHING)
            places, table = sampled(whole.numbered(source), ROWS)
        while len(_SAMPLES) >= _MOST:
            _SAMPLES.pop(next(iter(_SAMPLES)), None)
        _SAMPLES[place] = Sample(dataset, whole, places, table, int(found.body["rows"]))
    return _SAMPLES[place]


def _cells(table: pa.Table) -> dict[str, list[str]]:
    return {name: [_shown(value) for value in table.column(name)] for name in table.column_names}


def _shown(value: pa.Scalar) -> str:
    if not value.is_valid:
        return ""
    plain = value.as_py()
    return f"{plain:.5g}" if isinstance(plain, float) else str(plain)


def _list(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
