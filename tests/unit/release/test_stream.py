"""Streams of records: the same cells as a release of the same records, one by one or in batches."""

from __future__ import annotations

import contextlib
import datetime as dt
import gc
import weakref
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ReleaseError, SfumatoError, SourceError
from sfumato.mechanisms import _single_records
from sfumato.release.single_record import SingleRecord
from sfumato.release.stream import RecordStream
from sfumato.tables.row_order import KEEP
from sfumato.tables.view import View

POLICY = """
dataset = "events"
[levels]
high = 0.9
middle = 0.5
low = 0.1
[columns]
id = "id"
a = "gaussian"
b = { role = "gaussian", clip = [-1.5, 2] }
c = { role = "gaussian", integer = true }
s = { role = "uniform", domain = ["x", "y", "z"] }
n = { role = "uniform", domain = { min = 0, max = 9 }, nulls = "perturb" }
p = { role = "uniform", joint = "both" }
q = { role = "uniform", joint = "both" }
note = "keep"
"""

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 4000


def _table(ids: Any = None) -> pa.Table:
    rng = np.random.default_rng(1)
    holes = rng.random((4, ROWS)) < 0.1
    return pa.table(
        {
            "id": np.arange(ROWS) - 700 if ids is None else ids,
            "a": pa.array(rng.normal(size=ROWS), mask=holes[0]),
            "b": rng.normal(size=ROWS),
            "c": rng.integers(-500, 500, ROWS),
            "s": pa.array(np.array(["x", "y", "z"])[rng.integers(0, 3, ROWS)], mask=holes[1]),
            "n": pa.array(rng.integers(0, 10, ROWS), mask=holes[2]),
            "p": pa.array(rng.integers(0, 3, ROWS), mask=holes[3]),
            "q": np.array(["u", "v"])[rng.integers(0, 2, ROWS)],
            "note": [f"n{i}" for i in range(ROWS)],
        }
    )


def _by_id(copy: pa.Table) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in copy.to_pylist()}


@pytest.mark.parametrize("level", ["high", "middle", "low", 0.37])
@pytest.mark.parametrize(
    "ids", [None, [f"person {i} of {ROWS}" for i in range(ROWS)], ["é" * (i % 40) + str(i) for i in range(ROWS)]]
)
def test_single_records_are_those_of_a_release(level: Any, ids: Any) -> None:
    """4,000 records: some draws need more than one block of bits, and some replacements are rejected."""
    table = _table(ids)
    scheme = sf.Policy.loads(POLICY).fit(table)
    expected, stream = _by_id(scheme.release(table, level, KEY)), scheme.stream(level, KEY, table)
    assert stream._single is not None
    for record in table.to_pylist():
        copy = stream.record(record)
        assert copy == expected[record["id"]]
        assert list(copy) == stream.schema.names


def test_single_records_are_not_perturbed_by_the_code_for_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would compare it with itself."""
    table = _table()
    stream = sf.Policy.loads(POLICY).fit(table).stream("middle", KEY, table)
    calls: list[Any] = []
    monkeypatch.setattr(RecordStream, "_record_by_batch", lambda self, values: calls.append(values))
    for record in table.slice(0, 1000).to_pylist():
        stream.record(record)
    assert len(calls) < 5
    late: list[Any] = []

    def counted(_: Any, *args: Any) -> float:
        late.append(args)
        return 0.0

    monkeypatch.setattr(_single_records.SingleNoise, "_late", counted)
    for record in table.slice(0, 1000).to_pylist():
        stream.record(record)
    assert 20 < len(late) < 160  # 1.5 % of 3,000 draws at one node or two: the test above has settled late draws


@pytest.mark.parametrize("size", [65_536, 1000])
def test_batches_are_those_of_a_release(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large they are, their digest is that of the same rows in a file."""
    for module in ("release.stream", "tables.source"):
        monkeypatch.setattr(f"sfumato.{module}.BATCH", size)
    table = _table()
    scheme = sf.Policy.loads(POLICY).fit(table)
    stream = scheme.stream(0.3, KEY, table.schema)
    copies = list(stream.batches(table.to_batches(max_chunksize=333)))
    assert [copy.num_rows for copy in copies] == [333] * 12 + [4]
    found = pa.Table.from_batches(copies)
    expected = scheme.release(table, 0.3, KEY)
    assert _by_id(found) == _by_id(expected)
    manifest = stream.manifest()
    assert (manifest.rows, manifest.order) == (ROWS, KEEP)
    assert manifest.models == sf.Manifest.of(expected).models
    manifest.verify(found)


def test_batches_of_other_columns_are_refused() -> None:
    """With an id of another type, the same record would have other noise."""
    table = _table()
    stream = sf.Policy.loads(POLICY).fit(table).stream("middle", KEY, table)
    [whole] = table.combine_chunks().to_batches()
    text = whole.set_column(0, "id", whole["id"].cast(pa.string()))
    for wrong in (text, whole.drop_columns(["a"]), whole.append_column("more", whole["a"])):
        with pytest.raises(SourceError, match="a batch must have the columns of the stream"):
            list(stream.batches([wrong]))
    assert [copy.num_rows for copy in stream.batches([whole.slice(0, 0), whole.slice(0, 3)])] == [0, 3]


def test_what_arrays_must_do_is_done_by_arrays() -> None:
    """Dates, decimals, values that are refused."""
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "day": [dt.date(2026, 1, i) for i in (1, 5, 9, 20)],
            "x": [1.5, 2.5, 4.0, 8.0],
        }
    )
    policy = sf.Policy.loads(
        'dataset = "t"\n[levels]\na = 0.5\n[columns]\nid = "id"\nday = "gaussian"\nx = "gaussian"\n'
    )
    scheme = policy.fit(table)
    stream, expected = scheme.stream("a", KEY, table), _by_id(scheme.release(table, "a", KEY))
    for record in table.to_pylist():
        assert stream.record(record) == expected[record["id"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": float("nan")}, "finite numbers"),
        ({"a": "one"}, "values of its columns' types"),
        ({"s": "w"}, "must be in its domain"),
        ({"id": None}, "every record must have an id"),
        ({"id": "x"}, "values of its columns' types"),
        ({"c": 1e300}, "values of its columns' types"),
        ({"a": 1e300}, "magnitude at most"),
        ({"a": 10**400}, "values of its columns' types"),
        ({"id": 2**64 + 7}, "values of its columns' types"),
        ({"c": 2**63}, "values of its columns' types"),
        ({"note": 5}, "that of 'note' is no string"),
        ({"note": "\ud800"}, "that of 'note' is no string"),
        ({"c": 1.5}, "values of its columns' types"),
    ],
)
def test_bad_records_are_refused(change: dict[str, Any], message: str) -> None:
    table = _table()
    stream = sf.Policy.loads(POLICY).fit(table).stream("middle", KEY, table)
    record = {**table.to_pylist()[0], **change}
    with pytest.raises(SfumatoError, match=message):
        stream.record(record)
    del record["a"]
    with pytest.raises(SourceError, match="'a' is missing"):
        stream.record(record)


@pytest.mark.parametrize(
    ("policy", "kind", "message"),
    [
        ('x = "gaussian"\nid = "keep"', SourceError, "must have an id"),
        (
            'x = "gaussian"\nid = "id"\n[audit]\nx = "error >= 0.01"',
            ReleaseError,
            "needs records by which they are judged",
        ),
        (
            'id = { role = "id", publish = false }\n' + "\n".join(f'{name} = "rotation"' for name in "xyz"),
            ReleaseError,
            "in a secret order",
        ),
    ],
)
def test_what_cannot_be_streamed(policy: str, kind: type[Exception], message: str) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({"id": np.arange(900)} | {name: rng.normal(size=900) for name in "xyz"})
    text = f'dataset = "t"\ndefault = "drop"\n[levels]\na = 0.5\n[columns]\n{policy}\n'
    scheme = sf.Policy.loads(text).fit(table)
    with pytest.raises(kind, match=message):
        scheme.stream("a", KEY, table.schema)


def test_thresholds_are_judged_by_a_table() -> None:
    table = _table()
    scheme = sf.Policy.loads(POLICY + '[audit]\na = "error >= 0.9"\n').fit(table)
    with pytest.raises(SfumatoError, match="error"):
        scheme.stream("high", KEY, table)


@pytest.mark.parametrize("level", ["high", "low"])
def test_a_release_of_one_row_has_the_cells_of_a_release_of_all(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, keys = _table(), [KEY, sf.Key.generate()]
    scheme = sf.Policy.loads(POLICY).fit(table)
    taken: list[Any] = []
    of_batch = SingleRecord.of_batch

    def counted(single: SingleRecord, *rest: Any) -> pa.RecordBatch:
        taken.append(of_batch(single, *rest))
        return taken[-1]

    monkeypatch.setattr(SingleRecord, "of_batch", counted)
    for key in keys:  # what one key remembers is not taken for another
        whole = _by_id(scheme.release(table, level, key))
        for i in range(300):
            one = scheme.release(table.slice(i, 1), level, key)
            assert one.to_pylist() == [whole[i - 700]]
            sf.Manifest.of(one).verify(one)
    assert len(taken) == 2 * 300  # none by arrays


def test_what_is_remembered_of_one_layout_is_not_used_for_another() -> None:
    table = _table()
    for text in (POLICY, POLICY.replace("0.9", "0.8"), POLICY.replace("[-1.5, 2]", "[-1.5, 1.6]")):
        scheme = sf.Policy.loads(text).fit(table)
        whole = _by_id(scheme.release(table, "high", KEY))
        assert scheme.release(table.slice(5, 1), "high", KEY).to_pylist() == [whole[-695]]
        viewed = scheme.with_view(View(columns=("id", "a")))
        for name in ("high", "low", "high"):
            [row] = viewed.release(table.slice(7, 1), name, KEY).to_pylist()
            assert row == _by_id(viewed.release(table, name, KEY))[-693]
            assert list(row) == ["id", "a"]


def test_a_row_that_is_refused_in_a_table_is_refused_alone() -> None:
    """Its noise does not fit the type: a sentence that names the column, and no failed conversion."""
    values = np.random.default_rng(1).integers(-(2**62), 2**62, 100)
    table = pa.table({"id": np.arange(100), "a": values})
    policy = 'dataset = "t"\n[levels]\na = 0.001\n[columns]\nid = "id"\na = { role = "gaussian", integer = true }\n'
    scheme, refused = sf.Policy.loads(policy).fit(table), 0
    for i in range(20):
        with contextlib.suppress(SourceError):
            scheme.release(table.slice(i, 1), "a", KEY)
            refused -= 1
        refused += 1
    assert refused > 10
    with pytest.raises(SourceError, match="column 'a' with its noise must fit"):
        scheme.release(table, "a", KEY)


def test_a_key_does_not_keep_schemes() -> None:
    table, key = _table(), sf.Key.generate()
    alive = []
    for _ in range(3):
        scheme = sf.Policy.loads(POLICY).fit(table)
        scheme.release(table.slice(0, 1), "high", key)
        alive.append(weakref.ref(scheme))
        del scheme
    gc.collect()
    assert [one() for one in alive] == [None, None, None]
