"""The partitioner: rows split by key, in constant memory, none lost, equal keys together."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from sfumato.tables.partitioner import PARTITIONS, partition, partition_by_id, sorted_order
from sfumato.tables.read_ahead import read_ahead

SCHEMA = pa.schema([("value", pa.int64()), ("text", pa.string())])


def _batches(rows: int, size: int) -> list[tuple[np.ndarray, pa.RecordBatch]]:
    draw = np.random.default_rng(1)
    found = []
    for start in range(0, rows, size):
        keys = draw.integers(0, 2**64, min(size, rows - start), np.uint64)
        values = np.arange(start, start + len(keys))
        columns = [pa.array(values), pa.array([f"text {v}" for v in values])]
        found.append((keys, pa.RecordBatch.from_arrays(columns, schema=SCHEMA)))
    return found


def test_no_row_is_lost_and_each_is_in_its_partition() -> None:
    batches = _batches(20_000, 3_000)
    number = {
        int(v): int(k >> np.uint64(56))
        for keys, b in batches
        for k, v in zip(keys, b["value"].to_pylist(), strict=True)
    }
    tables = list(partition(iter(batches), SCHEMA, lambda table: table))
    assert len(tables) == PARTITIONS
    for i, table in enumerate(tables):
        assert {number[v] for v in table["value"].to_pylist()} <= {i}
    values = sorted(v for table in tables for v in table["value"].to_pylist())
    assert values == list(range(20_000))


def test_ids_are_sorted_and_equal_ones_are_together() -> None:
    draw = np.random.default_rng(2)
    rows = np.column_stack([draw.integers(0, 5_000, 20_000), np.arange(20_000)]).astype(np.uint64)
    parts = list(partition_by_id(rows[start : start + 1_000] for start in range(0, 20_000, 1_000)))
    assert len(parts) == PARTITIONS
    assert all((part[1:, 0] >= part[:-1, 0]).all() for part in parts)
    homes = [set(part[:, 0].tolist()) for part in parts]
    assert sum(map(len, homes)) == len(set().union(*homes)) == len(np.unique(rows[:, 0]))
    assert np.array_equal(np.sort(np.concatenate(parts)[:, 1]), np.arange(20_000, dtype=np.uint64))


def test_nothing_gives_empty_partitions() -> None:
    assert [len(part) for part in partition_by_id(iter(()))] == [0] * PARTITIONS
    assert [len(table) for table in partition(iter(()), SCHEMA, lambda table: table)] == [0] * PARTITIONS


@pytest.mark.parametrize("bits", [1, 8, 41, 56, 64])
def test_the_order_of_keys_is_that_of_a_stable_sort(bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, 2**bits, 10_000, np.uint64)
    assert sorted_order(keys).to_pylist() == np.argsort(keys, kind="stable").tolist()


@pytest.mark.parametrize("rows", [0, 1, 2, 10_000])
@pytest.mark.parametrize("bits", [1, 12, 56])
def test_bits_that_all_keys_share_are_left_out(rows: int, bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, 2**bits, rows, np.uint64) | np.uint64(7 << 56)
    assert sorted_order(keys, 8).to_pylist() == np.argsort(keys, kind="stable").tolist()


def test_items_are_read_ahead_in_order_and_an_error_arrives_after_them() -> None:
    def items() -> Iterator[int]:
        yield from range(100)
        raise ValueError("the end")

    found: list[int] = []
    with pytest.raises(ValueError, match="the end"):
        found.extend(read_ahead(items(), 3))
    assert found == list(range(100))


def test_reading_ahead_stops_with_its_caller() -> None:
    before, made = threading.active_count(), []

    def items() -> Iterator[int]:
        for i in range(10_000):
            made.append(i)
            yield i

    reading = read_ahead(items(), 3)
    assert [next(reading), next(reading)] == [0, 1]
    reading.close()
    assert len(made) < 50
    assert threading.active_count() == before
