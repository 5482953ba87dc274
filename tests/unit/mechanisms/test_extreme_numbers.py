"""Numbers whose squares are no doubles, and options of that size, are refused with the reason."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import PolicyError, SourceError
from sfumato.policy.suggest import draft

ROWS = 60
EVEN = np.arange(ROWS) % 2 == 0
NORMAL = np.random.default_rng(4).normal(size=ROWS)
LARGE = {
    "near the largest": 1e308 + 1e306 * NORMAL,
    "large and small": np.where(EVEN, 1e300, 1e-300),
    "both ends": np.where(EVEN, 1.7e308, -1.7e308),
    "constant": np.full(ROWS, 1e308),
    "overflowing squares": 1e200 * NORMAL,
}


def _policy(column: str, other: str = '"gaussian"') -> sf.Policy:
    return sf.Policy.loads(f'dataset = "d"\n[levels]\na = 0.5\n[columns]\nx = {column}\ny = {other}\n')


@pytest.mark.parametrize("values", LARGE.values(), ids=LARGE)
def test_numbers_that_are_too_large_are_refused(values: np.ndarray, key: sf.Key) -> None:
    table = pa.table({"x": values, "y": NORMAL})
    for column in ('"gaussian"', '{ role = "independent", of = "gaussian" }', '"rotation"'):
        with pytest.raises(SourceError, match=r"'x' must hold numbers of magnitude at most 1e\+100.*; clip it"):
            _policy(column, column).fit(table)
    drafted = sf.Policy.loads(draft(table, dataset="d"))
    assert drafted.columns["x"].role == "drop"
    clipped = _policy('{ role = "gaussian", clip = [-5, 5], max_clipped = 1 }').fit(table).release(table, "a", key)
    assert np.isfinite(clipped["x"].to_numpy()).all()


def test_numbers_that_hardly_vary_are_refused(key: sf.Key) -> None:
    for size in (1e-105, 1e-200, 1e-310):
        with pytest.raises(SourceError, match=r"must vary by at least 1e-100.*smaller unit"):
            _policy('"gaussian"').fit(pa.table({"x": size * NORMAL, "y": NORMAL}))
    for size in (1e-90, 1e99):
        table = pa.table({"x": size * NORMAL, "y": NORMAL})
        copy = _policy('"gaussian"').fit(table).release(table, "a", key)["x"].to_numpy()
        assert copy.std() / table["x"].to_numpy().std() == pytest.approx(2**0.5, rel=1.0)


@pytest.mark.parametrize("option", ["spread = 1e308", "scale = 1e200", "clip = [-1e308, 1e308]", "clip = [-inf, inf]"])
def test_options_that_are_too_large_are_refused(option: str) -> None:
    with pytest.raises(PolicyError, match=r"of magnitude at most 1e\+100"):
        _policy(f'{{ role = "gaussian", {option} }}')


def test_a_domain_that_is_too_large_is_refused() -> None:
    table = pa.table({"x": [1, 2], "y": [1.0, 2.0]})
    with pytest.raises(PolicyError, match="at most 2,147,483,648 values, and has 3,000,000,001"):
        _policy('{ role = "uniform", domain = { min = 0, max = 3000000000 } }').fit(table)


@pytest.mark.parametrize("name", ["sfumato.row", "sfumato.sort_key", "sfumato.x"])
def test_reserved_column_names_are_refused(name: str) -> None:
    with pytest.raises(SourceError, match=r"must not start with 'sfumato\.'.*rename it"):
        draft(pa.table({name: [1.0, 2.0]}), dataset="d")
