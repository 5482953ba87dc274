"""Margins: values of every type become intervals of scores and come back, and malformed margins are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ReleaseError
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.release.scheme import TableScheme
from sfumato.tables.margin import Margin

ROWS = 2000
DRAW = np.random.default_rng(3)
STEPS = np.round(DRAW.normal(0, 40, ROWS)).astype(np.int64)
SECONDS = STEPS * 3600 + 1_699_999_200

ARRAYS = {
    "int32": pa.array(STEPS, pa.int32()),
    "uint8": pa.array(np.abs(STEPS), pa.uint8()),
    "thousands": pa.array(STEPS * 1000),
    "float": pa.array(np.exp(STEPS / 40.0)),
    "float32": pa.array(STEPS / 4.0, pa.float32()),
    "cents": pa.array(STEPS / 100),
    "decimal": pa.array([Decimal(int(step)) / 100 for step in STEPS], pa.decimal128(9, 2)),
    "date": pa.array([dt.date(2020, 1, 1) + dt.timedelta(int(step)) for step in STEPS]),
    "timestamp": pa.array(SECONDS * 10**9, pa.timestamp("ns", tz="UTC")),
    "duration": pa.array(STEPS * 60, pa.duration("s")),
    "time": pa.array((STEPS % 86400) * 10**6, pa.time64("us")),
    "boolean": pa.array(STEPS > 0),
    "text": pa.array([f"t{step // 20}" for step in STEPS]),
    "dictionary": pa.array([f"t{step // 20}" for step in STEPS]).dictionary_encode(),
    "large text": pa.array([f"t{step // 20}" for step in STEPS], pa.large_string()),
}


def _scheme(table: pa.Table, options: str = '"copula"') -> CopulaScheme:
    policy = f'dataset = "d"\n[levels]\na = 0.8\nb = 0.3\n[columns]\nx = {options}\n'
    [fitted] = sf.Policy.loads(policy).fit(table).schemes
    assert isinstance(fitted, CopulaScheme)
    return fitted


def _copy(array: pa.Array) -> pa.Array:
    ids, key = np.arange(ROWS, dtype=np.uint64), sf.Key.from_bytes(bytes(32))
    [copy] = _scheme(pa.table({"x": array})).perturb(pa.record_batch({"x": array}), ids, sf.Level(0.3), key)
    return copy


@pytest.mark.parametrize("kind", ARRAYS)
def test_a_copy_has_the_type_and_the_domain_of_its_column(kind: str) -> None:
    table = pa.table({"x": ARRAYS[kind]})
    scheme, [batch] = _scheme(table), table.to_batches()
    [margin] = scheme.sampler.margins
    cells = margin.cells(batch.column("x"), "x")
    back = margin.array(cells.integers, cells.missing, batch.column("x").type)
    assert back.type == ARRAYS[kind].type
    same = np.mean([a == b for a, b in zip(back.to_pylist(), ARRAYS[kind].to_pylist(), strict=True)])
    assert same > (0.9 if kind != "float" else -1)  # but for what is outside of the bins
    if kind == "float":
        assert np.isclose(np.asarray(back), np.asarray(ARRAYS[kind]), rtol=1e-4).mean() > 0.97
    copy = _copy(ARRAYS[kind])
    assert copy.type == ARRAYS[kind].type
    assert copy.null_count == 0
    if kind in ("text", "boolean"):
        assert set(copy.to_pylist()) <= set(ARRAYS[kind].to_pylist())
    middle = (cells.lower + cells.upper) / 2
    assert (margin.from_scores(np.clip(middle, -4, 4)) == cells.integers).mean() > 0.95


def test_the_precision_of_a_column_is_kept() -> None:
    steps = {kind: _scheme(pa.table({"x": ARRAYS[kind]})).sampler.margins[0].step for kind in ARRAYS}
    expected = {
        "int32": 1,
        "thousands": 1000,
        "cents": 0.01,
        "float32": 0.01,
        "decimal": 0.01,
        "date": 1,
        "duration": 60,
    }
    assert {kind: steps[kind] for kind in expected} == expected
    assert steps["timestamp"] == 3600 * 10**9
    copy = _scheme(pa.table({"x": ARRAYS["cents"]}))
    [made] = copy.perturb(
        pa.record_batch({"x": ARRAYS["cents"]}),
        np.arange(ROWS, dtype=np.uint64),
        sf.Level(0.3),
        sf.Key.from_bytes(bytes(32)),
    )
    assert all(value == round(value, 2) for value in made.to_pylist())


def test_missing_values_are_perturbed_and_few_are_replaced() -> None:
    for missing, share in ((600, 0.3), (10, None)):
        array = pa.array(STEPS, mask=np.arange(ROWS) < missing)
        [margin] = _scheme(pa.table({"x": array})).sampler.margins
        assert margin.missing == (share if share is None else pytest.approx(share, abs=0.01))
        copy = _copy(array)
        assert copy.null_count == 0 if share is None else 400 < copy.null_count < 800
        if share:
            assert copy.is_null().to_pylist() != array.is_null().to_pylist()


GOOD = {"step": 1.0, "low": [0, 5], "high": [2, 9], "share": [0.5, 1.0], "tail": 0.25, "min_count": 32, "missing": None}


@pytest.mark.parametrize(
    "change",
    [
        {"low": [0, 2]},
        {"low": [3, 5]},
        {"share": [0.5, 0.9]},
        {"share": [0.0, 1.0]},
        {"share": [1.0]},
        {"missing": 0.0},
        {"missing": 1.5},
        {"tail": 1.0},
        {"tail": None},
        {"min_count": 0},
        {"min_count": 1.5},
        {"step": 0.0},
        {"step": float("inf")},
        {"low": [0.5, 5]},
        {"values": ["a", "b"]},
    ],
)
def test_a_malformed_margin_is_refused(change: dict[str, Any]) -> None:
    assert Margin.decode(GOOD).encode() == GOOD
    with pytest.raises(ValueError, match="a margin has"):
        Margin.decode(GOOD | change)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"correlation": [[1.0]]', '"correlation": [[0.5]]'),
        ('"maps": [', '"maps": [[[1], [2, 3]],'),
        ('"maps": [[[]', '"maps": [[["a", "b"]'),
    ],
)
def test_a_scheme_with_a_malformed_state_is_refused(before: str, after: str) -> None:
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nx = "copula"\n')
    text = policy.fit(pa.table({"x": STEPS})).dumps()
    assert TableScheme.loads(text).dumps() == text
    assert before in text
    with pytest.raises(ReleaseError, match="no scheme, or a damaged one"):
        TableScheme.loads(text.replace(before, after))
