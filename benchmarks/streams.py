"""Streams: one record at a time, and batches against a release of the same table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import sfumato as sf
from measure import Line, at_most, compare, seconds

ROWS, RECORDS = 2_000_000, 5_000

POLICY = """
dataset = "b"
order = "keep"
[levels]
p = 0.5
[columns]
id = "id"
a = "gaussian"
b = "gaussian"
c = "gaussian"
d = { role = "gaussian", integer = true }
sex = { role = "uniform", domain = ["f", "m"] }
ward = { role = "uniform", domain = ["a", "b", "c", "d"] }
"""


def streams() -> Iterator[Line]:
    rng = np.random.default_rng(1)
    numbers = {name: rng.normal(50, 10, ROWS) for name in "abc"}
    whole, sex, ward = rng.integers(0, 900, ROWS), rng.choice(["f", "m"], ROWS), rng.choice(list("abcd"), ROWS)
    table = pa.table({"id": np.arange(ROWS), **numbers, "d": whole, "sex": sex, "ward": ward})
    scheme, key = sf.Policy.loads(POLICY).fit(table), sf.Key.from_bytes(bytes(32))
    stream, records = scheme.stream("p", key, table.schema), table.slice(0, RECORDS).to_pylist()

    def one_by_one() -> None:
        for record in records:
            stream.record(record)

    one_by_one()
    took = min(seconds(one_by_one) for _ in range(5)) / RECORDS
    yield at_most("one record of a stream, 4 numbers and 2 categories", (took, 50e-6), "50 microseconds", 1)
    batches = table.to_batches(max_chunksize=65_536)
    pair = compare(
        lambda: list(stream.batches(batches, threads=1)), lambda: scheme.release(table, "p", key, threads=1), 3
    )
    yield at_most(f"batches of a stream, {ROWS:,} rows", pair, "release of the same table, in memory", 1.2)
