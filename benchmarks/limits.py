"""What no release can beat on this machine: copying memory, the cipher that noise comes from, reading and writing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import sfumato as sf
from measure import Line, duel

ROWS, COLUMNS = 1_000_000, 8


def floors() -> Iterator[Line]:
    """A copy of 8,000,000 numbers in memory, on one thread, against each."""
    x = np.random.default_rng(1).normal(size=(COLUMNS, ROWS))
    table = pa.table({f"c{i}": x[i] for i in range(COLUMNS)})
    said = "".join(f'c{i} = "gaussian"\n' for i in range(COLUMNS))
    scheme = sf.Policy.loads(f'dataset = "b"\n[levels]\na = 0.5\n[columns]\n{said}').fit(table)
    key, zeros = sf.Key.from_bytes(bytes(32)), bytes(x.nbytes)
    out = bytearray(x.nbytes + 16)

    def keystream() -> None:
        Cipher(algorithms.AES(bytes(32)), modes.CTR(bytes(16))).encryptor().update_into(zeros, out)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")

        def round_trip() -> None:
            pq.write_table(table, path)
            pq.read_table(path)

        rivals: dict[str, Callable[[], object]] = {
            "copying its memory": x.copy,
            "AES-256-CTR, 8 bytes a number": keystream,
            "writing and reading Parquet": round_trip,
        }
        for name, rival in rivals.items():
            pair = duel(lambda: scheme.release(table, "a", key, threads=1), rival, rounds=5)
            yield Line(f"gaussian copy 1,000,000 x 8, one thread, and {name}", *pair, name, "(a limit)", True)
