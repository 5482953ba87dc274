"""What a gaussian copy spends its time on: the stages of the compiled loop, in cycles per cell, beside those of NumPy.

A cycle is one of the processor's nominal rate. Stages are measured on batches of the size that releases work on.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa

import sfumato as sf
from measure import Line, seconds
from sfumato.kernels.aes import SIDE_BY_SIDE, encrypt
from sfumato.keys.path import ancestry
from sfumato.mechanisms._brownian_noise import Addresses, BrownianNoise
from sfumato.tables.content_digest import of_batch
from sfumato.tables.formats import BATCH

KEY, COLUMNS = sf.Key.from_bytes(bytes(range(32))), 8


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _encrypted(keys: Any, lanes: int, blocks: Any, rows: int, out: Any) -> None:
    """All lanes of some blocks, a part at a time that stays in the fastest cache, as the loop does it."""
    for start in range(0, blocks.shape[0] - 2 * rows + 1, 2 * rows):
        for lane in range(lanes):
            encrypt(keys, lane, blocks[start : start + 2 * rows], rows, out)


def stages() -> Iterator[Line]:
    """The stages of the declared level in the middle, and of a level on demand."""
    rng = np.random.default_rng(1)
    mixing = np.tril(rng.normal(size=(COLUMNS, COLUMNS)))
    x = rng.normal(size=(BATCH, COLUMNS)) @ mixing.T
    table = pa.table({f"c{i}": np.ascontiguousarray(x[:, i]) for i in range(COLUMNS)})
    roles = "".join(f'c{i} = "gaussian"\n' for i in range(COLUMNS))
    text = f'dataset = "b"\norder = "keep"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\n{roles}'
    scheme = sf.Policy.loads(text).fit(table)
    plain = _cycles(lambda: x + rng.standard_normal(x.shape) @ mixing.T)
    yield _line("NumPy's normal numbers", _cycles(lambda: rng.standard_normal(x.shape)), plain)
    for level, name in (("b", "declared level"), (0.6, "level on demand")):
        for stage, work in _work(scheme, table, level).items():
            yield _line(f"{name}: {stage}", _cycles(work), plain)


def _work(scheme: sf.TableScheme, table: pa.Table, level: str | float) -> dict[str, Callable[[], object]]:
    """What is done for one batch, each stage with those before."""
    [batch] = table.to_batches()
    fitted: Any = scheme.schemes[0]
    cells, point = fitted._cells(batch), fitted._locate(scheme.policy.ladder.level(level)).node
    lanes = COLUMNS * len({node.slot[0] for node in ancestry([point])})
    noise = BrownianNoise(KEY, fitted._streams, (point,))
    blocks = np.random.default_rng(1).integers(0, 1 << 63, 2 * BATCH, np.uint64)
    rows, out, few = np.arange(BATCH, dtype=np.uint64), np.empty((1, COLUMNS, BATCH)), 512
    [copy] = scheme.release(table, level, KEY, threads=1).to_batches()
    bits = np.empty(2 * (few + SIDE_BY_SIDE), np.uint64)
    return {
        f"AES of {lanes / COLUMNS:g} blocks for each draw": partial(
            _encrypted, noise._schedules()[0], lanes, blocks, few, bits
        ),
        "AES, ziggurat and bridges": partial(noise.walk, blocks),
        "the whole loop": partial(noise.copies, cells, Addresses(rows), fitted._factor_in_steps, out),
        "BLAKE3 of the copy": partial(of_batch, copy),
        "the whole release": partial(scheme.release, table, level, KEY, threads=1),
    }


def _cycles(work: Callable[[], object]) -> float:
    """The median over some runs, per cell of a batch."""
    work()
    return statistics.median(seconds(work) for _ in range(41)) * _rate() / (BATCH * COLUMNS)


def _rate() -> float:
    """Cycles per second of the processor, by its name or the system; of one that does not say, nanoseconds."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    rates = [float(line.split(":")[1]) * 1e6 for line in lines if line.startswith("cpu MHz")]
    return rates[0] if rates else 1e9


def _line(stage: str, ours: float, plain: float) -> Line:
    return Line(f"cycles per cell, {stage}", ours, plain, "NumPy (1)", "(for comparison)", True, "cycles")
