"""Lower bounds for the time of a release: copying memory, the cipher behind the noise, reading and writing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import sfumato as sf
from measure import Line, against, compare

ROWS, COLUMNS = 1_000_000, 8


def lower_bounds() -> Iterator[Line]:
    """A copy of 8,000,000 numbers in memory on one thread, against each lower bound."""
    x = np.random.default_rng(1).normal(size=(COLUMNS, ROWS))
    table = pa.table({f"c{i}": x[i] for i in range(COLUMNS)})
    roles = "".join(f'c{i} = "gaussian"\n' for i in range(COLUMNS))
    scheme = sf.Policy.loads(f'dataset = "b"\n[levels]\na = 0.5\n[columns]\n{roles}').fit(table)
    key, zeros = sf.Key.from_bytes(bytes(32)), bytes(x.nbytes)
    out = bytearray(x.nbytes + 16)

    def keystream() -> None:
        Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update_into(zeros, out)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")

        def round_trip() -> None:
            pq.write_table(table, path)
            pq.read_table(path)

        baselines: dict[str, Callable[[], object]] = {
            "copying the memory": x.copy,
            "AES-256-CTR, 8 bytes per number": keystream,
            "writing and reading Parquet": round_trip,
        }
        for name, baseline in baselines.items():
            pair = compare(lambda: scheme.release(table, "a", key, threads=1), baseline, rounds=5)
            what = f"gaussian copy 1,000,000 x 8, one thread, and {name}"
            yield against(what, pair, name, "(a lower bound)", met=True)
