"""Previews before a grant: sample records at a level, and what colluding recipients could reconstruct.

The records that are shown are invented, unless somebody asks for original ones, which the access log records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import ATTACKS, Estimate, record_errors
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.value_risk import bin_probabilities, margins_of, score_error, value_estimates
from sfumato.kernels import Floats, Words
from sfumato.levels import Level
from sfumato.models.unchanged import ENTITY, IDENTIFIER
from sfumato.release.evidence import original_records
from sfumato.release.perturbation import numbered_rows, perturb_sample
from sfumato.release.scheme import TableScheme
from sfumato.tables.columns import contiguous
from sfumato.tables.margin import known_values
from sfumato.tables.sampling import sampled
from sfumato.tables.view import EVERYTHING, View
from sfumato.vault.audits import holders_of
from sfumato.vault.column_previews import column_previews, day_of, units_per_day
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import require
from sfumato.vault.invented import invented
from sfumato.vault.lifecycle import VaultLifecycle

ROWS = 4_000
"""The number of sampled records from which accuracy is estimated."""

SHOWN = 10
"""The number of records in a preview."""

_PLAIN = 1e12
"""Whole numbers below this are shown in full."""

_INVENTED_ROWS: Words = np.arange(SHOWN, dtype=np.uint64) + np.uint64(2**63)
"""Row numbers that no record has."""

_MAX_SAMPLES = 32
"""The most samples in the cache."""


@dataclass(frozen=True)
class Sample:
    """A sample of the records of a dataset's version."""

    name: str
    scheme: TableScheme
    row_ids: Words
    table: pa.Table
    rows: int
    """The number of rows of the whole table."""
    invented: pa.Table
    """Records that are nobody's, to be shown."""

    def shown(self, *, originals: bool) -> tuple[Words, pa.Table]:
        """The records that are shown, with their row numbers."""
        if originals:
            return self.row_ids[:SHOWN], self.table.slice(0, SHOWN)
        return _INVENTED_ROWS, self.invented


def preview(vault: VaultLifecycle, dataset: str, fidelity: float, *, originals: bool = False) -> dict[str, Any]:
    """Ten records of a copy at this level, with the error of an attacker and the standard error of an analyst."""
    sample, keys = _sample(vault, dataset), vault.keys()
    vault.record_access("previewed", {"fidelity": fidelity, "originals": originals}, dataset=dataset)
    key = keys[max(keys)]
    row_ids, first = sample.shown(originals=originals)
    level = sample.scheme.given(Level(fidelity))
    [copy] = perturb_sample(sample.scheme, row_ids, first, [level], key)
    models = sample.scheme.models(sample.table.schema, level)
    truth = original_records(sample.table, models)
    names = [name for name in copy.column_names if name in first.column_names]
    return {
        "fidelity": level.fidelity,
        "residual_error": level.error,
        "original": _cells(first.select(names)),
        "copy": _cells(copy),
        "columns": column_previews(models, truth, sample.table.schema, sample.rows),
    }


def collusion(
    vault: VaultLifecycle, dataset: str, recipients: Sequence[str], *, originals: bool = False
) -> dict[str, Any]:
    """What some recipients could reconstruct by collusion, compared with copies of independent noise."""
    keys = vault.keys()
    with vault.ledger.reading(keys) as reading:
        now = Dataset.of(require(reading, "dataset", dataset), vault.store)
        holders = holders_of(reading, now, list(recipients), vault.now())
    sample = _sample(vault, dataset)
    vault.record_access("previewed", {"colluders": sorted(recipients), "originals": originals}, dataset=dataset)
    row_ids, first = sample.shown(originals=originals)
    rows = np.concatenate([row_ids, sample.row_ids[SHOWN:]])
    table = pa.concat_tables([first, sample.table.slice(SHOWN)])
    order = sorted(holders, key=lambda name: -holders[name].fidelity)
    copies = {
        name: perturb_sample(
            sample.scheme, rows, table, [Level(holders[name].fidelity)], keys[holders[name].generation]
        )[0]
        for name in order
    }
    audit_input = AuditInput.of(table, copies)
    independent = audit_input.with_independent_noise()
    numbers = all(copy.numbers for copy in audit_input.copies)
    linear = _linear_estimates(audit_input, independent) if numbers else []
    return {
        "dataset": dataset,
        "records": len(audit_input.truth),
        "coarsened": any(m.coarsened_columns for manifest in audit_input.manifests for m in manifest.models),
        "recipients": [{"name": name, "fidelity": holders[name].fidelity} for name in order],
        "numbers": _numbers(audit_input, linear) if linear else None,
        "categories": [
            *(_categories(audit_input, independent) if all(copy.categories for copy in audit_input.copies) else ()),
            *(_preserved_categories(audit_input, linear) if linear else ()),
        ]
        or None,
    }


def _numbers(audit_input: AuditInput, found: Sequence[Estimate]) -> dict[str, Any]:
    """The errors of the best linear attack on both, and its estimates of a few records."""
    scores = audit_input.truth.numbers(found[0].columns)
    shares = [float(np.nanmean(record_errors(one.values, scores) ** 2)) for one in found]
    columns = _in_values(audit_input, found)
    return {
        "residual_error": {"actual": shares[0], "independent": shares[1]},
        "columns": [_errors(audit_input.original.schema.field(name), *parts) for name, parts in columns.items()],
        "estimates": [_few(audit_input.original.schema.field(name), *parts) for name, parts in columns.items()],
    }


def _linear_estimates(audit_input: AuditInput, independent: AuditInput) -> list[Estimate]:
    """The best linear estimates from both."""
    return [ATTACKS["llse"]().estimate(one.combined(known_records=False)) for one in (audit_input, independent)]


def _in_values(audit_input: AuditInput, found: Sequence[Estimate]) -> dict[str, tuple[Floats, ...]]:
    """The truth and both estimates of each column of numbers; scores are read off their margins."""
    margins, out = margins_of(audit_input), {}
    for i, name in enumerate(found[0].columns):
        truth = audit_input.truth.numbers([name])[:, 0]
        if not np.isfinite(truth).any():
            continue
        if name not in margins:
            if name in audit_input.original.column_names:  # whether a value is missing is no column
                out[name] = (truth, *(one.values[:, i] for one in found))
        elif not margins[name].values:
            margin = margins[name]
            cells = margin.cells(contiguous(audit_input.original.column(name)), name)
            estimates = []
            for one in found:
                error = score_error(one.values[:, i], truth)
                estimates.append(value_estimates(np.nan_to_num(one.values[:, i]), error, margin))
            known = np.where(cells.missing, np.nan, margin.step * cells.integers)
            out[name] = (known, *(margin.step * one for one in estimates))
    return out


def _errors(field: pa.Field, truth: Floats, actual: Floats, independent: Floats) -> dict[str, Any]:
    """The spread of a column, and the root mean square errors of both estimates."""
    per_day = units_per_day(field.type)
    rmse = [float(np.sqrt(np.nanmean((one - truth) ** 2)) / (per_day or 1)) for one in (actual, independent)]
    return {
        "name": field.name,
        "unit": "" if per_day is None else " days",
        "standard_deviation": float(np.nanstd(truth) / (per_day or 1)),
        "actual": rmse[0],
        "independent": rmse[1],
    }


def _few(field: pa.Field, truth: Floats, actual: Floats, independent: Floats) -> dict[str, Any]:
    """The estimates of a few records."""
    per_day = units_per_day(field.type)
    ends = [float(end) for end in np.nanquantile(truth, [0.01, 0.99])]  # never the value of a single record
    return {
        "column": field.name,
        "low": _finite(ends[0]),
        "high": _finite(ends[1]),
        "days": [day_of(end, per_day) for end in ends],
        "truth": _list(truth[:SHOWN]),
        "actual": _list(actual[:SHOWN]),
        "independent": _list(independent[:SHOWN]),
    }


def _preserved_categories(audit_input: AuditInput, linear: Sequence[Estimate]) -> list[dict[str, Any]]:
    """The mean posterior probability of the true category, of categories whose margin is preserved."""
    margins = {name: margin for name, margin in margins_of(audit_input).items() if margin.values}
    out = []
    for name, margin in margins.items():
        array = known_values(contiguous(audit_input.original.column(name)), margin)
        cells = margin.cells(array, name)
        there = np.flatnonzero(~cells.missing)
        codes = np.searchsorted(np.array(margin.low), cells.integers[there], side="right") - 1
        truth, found = audit_input.truth.numbers([name])[there, 0], []
        if not len(there):
            continue
        for estimate in linear:
            scores = np.nan_to_num(estimate.values[there, estimate.columns.index(name)])
            masses = bin_probabilities(scores, score_error(scores, truth), margin)
            found.append(float(masses[np.arange(len(codes)), codes].mean()))
        blind = float(np.bincount(codes).max() / max(len(codes), 1))
        out.append({"name": name, "baseline": blind, "actual": found[0], "independent": found[1]})
    return out


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


_SAMPLES: dict[tuple[str, int], Sample] = {}
"""A cache of samples, by the location of the vault and the number of the dataset's entry."""


def _sample(vault: VaultLifecycle, dataset: str) -> Sample:
    with vault.ledger.reading(vault.keys()) as reading:
        entry = require(reading, "dataset", dataset)
    cached = vault.location, entry.number
    if cached not in _SAMPLES:
        found = Dataset.of(entry, vault.store)
        with found.source() as source:
            scheme = found.scheme.with_view(_without_identifiers(found))
            row_ids, table = sampled(numbered_rows(scheme, source), ROWS)
        while len(_SAMPLES) >= _MAX_SAMPLES:
            _SAMPLES.pop(next(iter(_SAMPLES)), None)
        nobody = invented(table, SHOWN, [name for name, role in found.columns.items() if role in (IDENTIFIER, ENTITY)])
        _SAMPLES[cached] = Sample(dataset, scheme, row_ids, table, found.rows, nobody)
    return _SAMPLES[cached]


def _without_identifiers(dataset: Dataset) -> View:
    """The part of a copy that a preview shows: all but what identifies records, or the persons that have several."""
    scheme, roles = dataset.scheme, dataset.columns
    names = scheme.with_view(EVERYTHING).schema(dataset.schema).names
    shown = tuple(name for name in names if roles.get(name) not in (IDENTIFIER, ENTITY))
    return View(shown) if shown else EVERYTHING


def _cells(table: pa.Table) -> dict[str, list[str]]:
    return {name: [_format(value) for value in table.column(name)] for name in table.column_names}


def _format(value: pa.Scalar) -> str:
    if not value.is_valid:
        return ""
    plain = value.as_py()
    if not isinstance(plain, float):
        return str(plain)
    return f"{plain:.0f}" if plain.is_integer() and abs(plain) < _PLAIN else f"{plain:.5g}"


def _list(values: Floats) -> list[float | None]:
    return [_finite(value) for value in values]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
