"""Ten small tables of the kinds that estimators find hard, and the questions that are put to a copy of each."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

ROWS = 1500
Array = Any


def _spike(rng: Any) -> tuple[Array, Array]:
    hours = np.where(rng.random(ROWS) < 0.5, 40.0, rng.normal(36, 11, ROWS).clip(1, 90).round())
    return hours, hours * 12 + rng.normal(0, 120, ROWS)


def _zeros(rng: Any) -> tuple[Array, Array]:
    age = rng.gamma(9, 5, ROWS)
    return age, np.where(rng.random(ROWS) < 0.35, 0.0, np.exp(rng.normal(7, 0.6, ROWS) + age / 90))


def _heavy_tails(rng: Any) -> tuple[Array, Array]:
    x = rng.standard_t(3, ROWS)
    return x, 2 * x + rng.standard_t(4, ROWS)


def _whole_numbers(rng: Any) -> tuple[Array, Array]:
    rooms = rng.poisson(4, ROWS) + 1
    return rooms.astype(np.float64), (rng.poisson(rooms * 3.0)).astype(np.float64)


def _missing(rng: Any) -> tuple[Array, Array]:
    x = rng.normal(50, 10, ROWS)
    y = x + rng.normal(0, 8, ROWS)
    return np.where(rng.random(ROWS) < 0.1, np.nan, x), np.where(rng.random(ROWS) < 0.02 + 0.3 * (x > 55), np.nan, y)


def _dependent_categories(rng: Any) -> tuple[Array, Array]:
    group = rng.integers(0, 3, ROWS)
    return group * 4 + rng.normal(0, 2, ROWS), rng.normal(10, 3, ROWS) - 3 * (group == 1)


def _two_clusters(rng: Any) -> tuple[Array, Array]:
    far = rng.random(ROWS) < 0.3
    return np.where(far, 9, 0) + rng.normal(0, 1, ROWS), np.where(far, -4, 2) + rng.normal(0, 1.5, ROWS)


def _bounded(rng: Any) -> tuple[Array, Array]:
    x = rng.random(ROWS)
    return x, (0.6 * x + 0.4 * rng.random(ROWS)).clip(0.1, 0.9)


def _heaped(rng: Any) -> tuple[Array, Array]:
    pay = (rng.gamma(4, 700, ROWS) / 100).round() * 100
    return pay, pay / 30 + rng.gamma(2, 20, ROWS)


def _curved(rng: Any) -> tuple[Array, Array]:
    x = rng.normal(0, 1, ROWS)
    return x, x**2 + rng.normal(0, 0.5, ROWS)


KINDS = {
    "spike": _spike,
    "zeros": _zeros,
    "heavy tails": _heavy_tails,
    "whole numbers": _whole_numbers,
    "missing": _missing,
    "dependent categories": _dependent_categories,
    "two clusters": _two_clusters,
    "bounded": _bounded,
    "heaped": _heaped,
    "curved": _curved,
}


def table(kind: str, seed: int = 7) -> pa.Table:
    """A table with two numbers, a category and a class that depend on them, and a category that does not."""
    rng = np.random.default_rng([seed, *kind.encode()])
    x, y = KINDS[kind](rng)
    shown = np.nan_to_num(np.array([x, y]), nan=0.0)
    z = (shown - shown.mean(axis=1, keepdims=True)) / shown.std(axis=1, keepdims=True)
    ward = (z[0] + rng.normal(0, 0.8, ROWS) > 0.4) * 1 + (rng.random(ROWS) < 0.3)
    ill = z[1] + 0.7 * z[0] + rng.normal(0, 1, ROWS) > 0.7
    return pa.table(
        {
            "x": pa.array(x, from_pandas=True),
            "y": pa.array(y, from_pandas=True),
            "ward": np.array(list("abc"))[ward],
            "ill": np.array(["no", "yes"])[ill * 1],
            "site": np.array(["north", "south"])[rng.integers(0, 2, ROWS)],
        }
    )


def policy(original: pa.Table) -> sf.Policy:
    """What a draft says of it, with plain noise; the site is public."""
    draft = sf.Policy.suggest(original, dataset="t", plain_noise=True)
    kept = sf.Policy.loads('dataset="d"\n[levels]\nl=0.5\n[columns]\nsite="keep"').columns
    return dataclasses.replace(draft, columns={**draft.columns, **kept})


def questions(original: pa.Table) -> dict[str, str]:
    """Questions by kind, about ranges that hold between a tenth and a half of the records."""
    ends = {
        f"{name}{share}": f"{np.nanquantile(original.column(name).to_numpy(), share / 100):.4g}"
        for name in ("x", "y")
        for share in (30, 50, 60, 75)
    }
    asked = {
        "mean": "select avg(x) v from t",
        "mean of a group": "select avg(y) v from t where ward = 'b'",
        "sum of a public group": "select sum(x) v from t where site = 'north'",
        "deviation": "select stddev(y) v from t",
        "correlation": "select corr(x, y) v from t",
        "share": "select 100.0 * count(*) filter (where ill = 'yes') / count(*) v from t",
        "joint count of categories": "select count(*) v from t where ward = 'a' and ill = 'no'",
        "count over a range": "select count(*) v from t where x > {x60}",
        "median": "select median(y) v from t",
        "quantile": "select quantile_cont(x, 0.9) v from t",
        "mean over a range": "select avg(y) v from t where x > {x50}",
        "joint count": "select count(*) v from t where x > {x50} and y > {y50}",
        "either range": "select avg(x) v from t where y > {y75} or ward = 'c'",
        "share over a range": "select avg(case when ill = 'yes' then 1 else 0 end) v from t where y <= {y30}",
        "median of a group": "select median(y) v from t where ward = 'a'",
    }
    return {kind: sql.format(**ends) for kind, sql in asked.items()}
