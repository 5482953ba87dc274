"""Margins, rank correlations and residual errors at five levels, for real tables and for three with what is hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from scipy import stats

import sfumato as sf
from sfumato.experiments._data import adult_table, folder
from sfumato.mechanisms._copula_scheme import CopulaScheme

KEY = sf.Key.from_bytes(bytes(range(32)))
LEVELS = (0.9, 0.7, 0.5, 0.3, 0.1)
ROWS = 25_000


def _latent() -> Any:
    rng = np.random.default_rng(7)
    root = rng.normal(size=(6, 6))
    return rng.normal(size=(ROWS, 6)) @ (root / np.linalg.norm(root, axis=1)[:, None]).T


def _table(columns: dict[str, Any]) -> pa.Table:
    town = np.array(list("abcde"))[np.digitize(_latent()[:, 5], [-1.2, -0.3, 0.3, 1.2])]
    return pa.table({**columns, "town": town})


def _spikes() -> pa.Table:
    z = _latent()
    u = stats.norm.cdf(z)
    return _table(
        {
            "zero": np.where(u[:, 0] < 0.4, 0, np.round(1000 * u[:, 0])),
            "forty": np.where(np.abs(u[:, 1] - 0.5) < 0.15, 40.0, np.round(20 + 40 * u[:, 1], 1)),
            "special": np.where(u[:, 2] > 0.7, 999, np.round(90 * u[:, 2])).astype(np.int64),
            "fifties": 50 * np.round(100 * u[:, 3]),
            "smooth": z[:, 4],
        }
    )


def _heavy_tails() -> pa.Table:
    z = _latent()
    u = stats.norm.cdf(z)
    return _table(
        {
            "cauchy": stats.cauchy.ppf(u[:, 0]),
            "lognormal": np.exp(3 * z[:, 1]),
            "pareto": np.round(stats.pareto(1.1).ppf(u[:, 2]), 2),
            "student": stats.t(2).ppf(u[:, 3]),
            "count": np.round(np.exp(2 * z[:, 4])).astype(np.int64),
        }
    )


def _missing() -> pa.Table:
    """Nearly a third of each column is missing, of every second one more often where the next one is small."""
    z, rng = _latent(), np.random.default_rng(8)
    columns = {
        "normal": z[:, 0],
        "lognormal": np.exp(z[:, 1]),
        "whole": np.round(30 + 10 * z[:, 2]),
        "count": np.round(1000 * stats.norm.cdf(z[:, 3])).astype(np.int64),
        "half": np.maximum(z[:, 4], 0.0),
    }
    table = _table(columns)
    for i, name in enumerate(table.column_names):
        score = rng.normal(size=ROWS) + (0.3 * z[:, (i + 1) % 6] if i % 2 else 0.0)
        array = table[name].combine_chunks()
        table = table.set_column(i, name, pa.array(array.to_pylist(), array.type, mask=score < -0.52))
    return table


def _census() -> pa.Table:
    found = folder()
    if found is None or not (found / "census_adult_600k.parquet").exists():
        pytest.skip("the census table is not on OpenML; set SFUMATO_DATA to a folder that has it")
    return pa.parquet.read_table(found / "census_adult_600k.parquet").slice(0, ROWS)


def _policy(table: pa.Table, role: str = '"copula"') -> sf.Policy:
    levels = "".join(f"l{i} = {level}\n" for i, level in enumerate(LEVELS))
    roles = "".join(f'"{name}" = {role.replace("GROUP", name)}\n' for name in table.column_names)
    return sf.Policy.loads(f'dataset = "d"\norder = "keep"\n[levels]\n{levels}[columns]\n{roles}')


def _numbers(table: pa.Table, scheme: CopulaScheme) -> list[Any]:
    """The columns as numbers, categories by their order, NaN where a value is missing."""
    out = []
    for name, margin in zip(scheme.columns, scheme.sampler.margins, strict=True):
        array = table[name].combine_chunks()
        if margin.values:
            array = pa.compute.index_in(array, pa.array(margin.values).cast(array.type))
        out.append(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    return out


def _distance(a: Any, b: Any) -> float:
    """The distance of two samples, in units of that which two of one distribution reach once in a million."""
    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    limit = 2 * np.sqrt(np.log(4 / 1e-6) / 2 / min(len(a), len(b)))
    return float(stats.ks_2samp(a, b, method="asymp").statistic / limit)


def _rank_correlations(columns: list[Any]) -> Any:
    found = []
    for i, one in enumerate(columns):
        for other in columns[:i]:
            both = ~np.isnan(one) & ~np.isnan(other)
            found.append(stats.spearmanr(one[both], other[both]).statistic)
    return np.array(found)


TABLES = {
    "adult": adult_table,
    "census": _census,
    "spikes": _spikes,
    "heavy tails": _heavy_tails,
    "missing": _missing,
}


@pytest.mark.long
@pytest.mark.parametrize(
    "made",
    [pytest.param(m, id=n, marks=[pytest.mark.slow] if n == "adult" else []) for n, m in TABLES.items()],
)
def test_margins_rank_correlations_and_residual_errors_at_every_level(made: Callable[[], pa.Table]) -> None:
    table = made()
    scheme = _policy(table).fit(table)
    [fitted] = scheme.schemes
    assert isinstance(fitted, CopulaScheme)
    [batch] = table.combine_chunks().to_batches()
    ids = np.arange(table.num_rows, dtype=np.uint64)
    scores, noises = fitted.paths(batch, ids, list(map(sf.Level, LEVELS)), KEY)
    original = _numbers(table, fitted)
    before = _rank_correlations(original)
    for level, noise, copy in zip(LEVELS, noises, scheme.release_levels(table, LEVELS, KEY), strict=True):
        columns = _numbers(copy, fitted)
        for one, other in zip(original, columns, strict=True):
            assert _distance(one, other) < 1
            assert _distance(np.isnan(one) * 1.0, np.isnan(other) * 1.0) < 1
        change = np.abs(_rank_correlations(columns) - before)
        assert change.max() < 0.05, level
        assert np.median(change) < 0.02
        for i, one in enumerate(original):
            error = _residual(scores[i], scores + noise, ~np.isnan(one))
            assert error == pytest.approx(1 - level, rel=0.05), fitted.columns[i]
    apart = _policy(table, '{ role = "copula", group = "GROUP" }').fit(table).release(table, LEVELS[-1], KEY)
    assert np.abs(_rank_correlations(_numbers(apart, fitted)) - before).max() > 0.1  # without common correlations


def _residual(score: Any, seen: Any, present: Any) -> float:
    """The share of a score's variance that the best linear estimate leaves, for values that are there."""
    inputs, target = (part[..., present] - part[..., present].mean(-1, keepdims=True) for part in (seen, score))
    weights = np.linalg.lstsq(inputs.T, target, rcond=None)[0]
    return float(((target - inputs.T @ weights) ** 2).mean() / target.var())
