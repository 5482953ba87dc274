"""Estimates for columns whose margins are preserved: those of the copy, with intervals for two samples."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import rankdata

from sfumato.kernels import Floats
from sfumato.kernels.intervals import Interval
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.simulation import Simulation, correlation, outer_uncertainty
from sfumato.tables.columns import numbers_of

_RANKED = 200_000
"""The most records, evenly spaced, whose rank correlations are computed."""

_RANK_ERROR = 1.06
"""The standard error of a rank correlation times the root of the number of records, near normal (Fieller 1957)."""

_FEWEST = 10
"""With fewer records there is no interval."""


def preserved_moments(copy: Copy, name: str, confidence: float) -> tuple[Interval, Interval] | None:
    """The mean and the standard deviation of a column of numbers; none where too few have a value."""
    values = _values(copy, name)
    if len(values) < _FEWEST:
        return None
    width = critical_value(confidence) * math.sqrt(2 / len(values))
    mean, deviation = float(values.mean()), float(values.std())
    outside = outer_uncertainty(copy, name)
    furthest = max(float(values.max()) - mean, mean - float(values.min()))
    fourth = float(((values - mean) ** 4).mean())
    error = width * math.sqrt(max(fourth - deviation**4, 0.0)) + 2 * furthest * outside
    ends = [math.sqrt(max(deviation**2 + sign * error, 0.0)) for sign in (-1, 1)]
    reach = width * deviation + outside
    return Interval(mean, mean - reach, mean + reach), Interval(deviation, *ends)


def preserved_quantiles(copy: Copy, name: str, shares: tuple[float, ...], confidence: float) -> tuple[Interval, ...]:
    """Quantiles of a column of numbers, with those of the shares that two samples may be apart."""
    values = np.sort(_values(copy, name))
    if len(values) < _FEWEST:
        return ()
    out = []
    for share in shares:
        reach = critical_value(confidence) * math.sqrt(2 * share * (1 - share) / len(values))
        ends = [max(share - reach, 0.0), min(share + reach, 1.0)]
        low, estimate, high = np.quantile(values, [ends[0], share, ends[1]], method="inverted_cdf").tolist()
        out.append(Interval(estimate, low, high))
    return tuple(out)


def preserved_frequencies(copy: Copy, name: str, confidence: float) -> list[tuple[str, Interval]]:
    """The share of each category, missing values included, the most frequent first."""
    table = pa.Table.from_batches([batch for part in copy.tables([name]) for batch in part.to_batches()])
    model = copy.copula_model(name)
    moved = model.margins[model.columns.index(name)]["min_count"] / max(copy.rows, 1) if model else 0.0
    counts = pc.value_counts(table.column(name).combine_chunks()).to_pylist()
    out = []
    for one in sorted(counts, key=lambda one: -one["counts"]):
        share = one["counts"] / copy.rows
        reach = critical_value(confidence) * math.sqrt(2 * share * (1 - share) / copy.rows) + moved
        label = "missing" if one["values"] is None else str(one["values"])
        out.append((label, Interval(share, max(share - reach, 0.0), min(share + reach, 1.0))))
    return out


def rank_correlations(copy: Copy, names: list[str], confidence: float) -> list[tuple[str, str, Interval]]:
    """The rank correlation of each pair of columns of numbers.

    Intervals allow for relations that the published model does not express, of which a copy shows a part only.
    """
    every = max(-(-copy.rows // _RANKED), 1)
    own = numbers_of(_every(copy, names, every), names)
    simulation = Simulation.of(copy, names)
    before, after = (numbers_of(table, names) for table in (simulation.original, simulation.copy))
    kept = [correlation(_ranks(before[:, i]), _ranks(after[:, i])) for i in range(len(names))]
    width, out = critical_value(confidence), []
    for i, one in enumerate(names):
        for j, other in enumerate(names[:i]):
            found, rows = _rank_correlation(own[:, i], own[:, j])
            if rows < _FEWEST:
                continue
            model, simulated = _rank_correlation(before[:, i], before[:, j])
            error = width * _RANK_ERROR * math.sqrt(2 / rows)
            seen = abs(found - model) + width * _RANK_ERROR * math.sqrt(1 / rows + 1 / max(simulated, 1))
            part = kept[i] * kept[j]
            error += (1 / part - 1) * seen if part > 0 else 2.0
            out.append((other, one, Interval(found, max(found - error, -1.0), min(found + error, 1.0))))
    return out


def _every(copy: Copy, names: list[str], every: int) -> pa.Table:
    parts = [part.take(pa.array(np.arange(0, part.num_rows, every))) for part in copy.tables(names)]
    return pa.concat_tables(parts)


def _values(copy: Copy, name: str) -> Floats:
    """The values of a column of numbers that are there."""
    values = np.concatenate([copy.values(part, [name])[:, 0] for part in copy.tables([name])])
    there: Floats = values[np.isfinite(values)]
    return there


def _ranks(values: Floats) -> Floats:
    ranks: Floats = rankdata(values, nan_policy="omit")
    return ranks


def _rank_correlation(one: Floats, other: Floats) -> tuple[float, int]:
    """The rank correlation of the records that have both values, and their number."""
    both = np.isfinite(one) & np.isfinite(other)
    first, second = rankdata(one[both]), rankdata(other[both])
    if both.sum() < 2 or not first.std() or not second.std():
        return 0.0, 0
    return float(np.corrcoef(first, second)[0, 1]), int(both.sum())
