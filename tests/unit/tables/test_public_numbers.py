"""Public columns as numbers: codes in their parts, times of day and week, and hashes of words."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

from sfumato.tables.public_numbers import public_numbers


def _numbers(values: object) -> list[np.ndarray]:
    return public_numbers(pa.chunked_array([pa.array(values)]))


def test_a_code_tells_its_parts() -> None:
    codes = [f"{'HEX' if i % 2 else 'CSK'}-M{4 + i % 7}x{10 * (i % 5)}-{i:04d}" for i in range(200)]
    head, size, length, number = (part for part in _numbers(codes) if len(set(part.tolist())) > 1)
    assert len(set(head.tolist())) == 2
    assert size.tolist() == [4 + i % 7 for i in range(200)]
    assert length.tolist() == [10 * (i % 5) for i in range(200)]
    assert number.tolist() == list(range(200))


def test_few_texts_are_groups_as_they_are() -> None:
    [found] = _numbers(["north-1", "south-2", None, "north-1"])
    assert found[0] == found[3] != found[1]
    assert found[2] == 0
    repeated = _numbers([f"ward {i % 60} {'a' if i % 2 else '²٣'}" for i in range(300)])
    assert len(repeated) == 3  # the whole, since it names groups, the number and the word
    assert repeated[1].tolist() == [i % 60 for i in range(300)]


def test_a_moment_tells_hour_weekday_and_month() -> None:
    start = dt.datetime(2026, 1, 30, 22, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(hours=i) for i in range(72)] + [None]
    found = _numbers(moments)
    assert found[1].tolist() == [*[(22 + i) % 24 for i in range(72)], -1]
    assert [set(one.tolist()) - {-1} for one in found[2:]] == [{4, 5, 6, 0}, {1, 2}]
    assert len(_numbers([dt.date(2026, 1, 5)] * 3)) == 1
    assert len(_numbers([1.5, None, 2.0])) == 1
    assert _numbers([[1], [2]])[0].tolist() == [0, 0]
