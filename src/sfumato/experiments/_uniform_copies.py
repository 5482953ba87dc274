"""Alice, Bob and Charlie of xiao2009, section 7: very many values, released three times by the product's own core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from scipy.stats import norm

from sfumato.experiments import _data
from sfumato.kernels.replacement import replace
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream

RETENTIONS = {"a": 0.3, "b": 0.1, "c": 0.5}
"""Of Alice, Bob and Charlie, in the order in which they ask."""
KINDS = ("uniform", "Gaussian", "Salary", "Occupation")
_CHUNK = 1 << 14
_BATCH = 1 << 22


def laws() -> dict[str, Any]:
    """The four distributions of Figure 4."""
    found = _data.working()[0]
    bell = norm.pdf(np.arange(50), 24.5, 50 / 6)
    counts = {name: np.bincount(found[name], minlength=size) for name, size in (("Salary", 50), ("Occupation", 27))}
    return {
        "uniform": np.full(50, 1 / 50),
        "Gaussian": bell / bell.sum(),
        **{name: count / count.sum() for name, count in counts.items()},
    }


def source() -> str:
    """What stands in for Adult."""
    return f"uniform and Gaussian (synthetic); Salary and Occupation: {_data.working()[1]}"


def released(values: Any, size: int, key: Key) -> dict[str, Any]:
    """What the three receive: one keyed path a value, read at three places, as any release is."""
    stream, out = Stream(key), {}
    rows = np.arange(len(values), dtype=np.uint64)
    addresses = np.empty(2 * len(values), np.uint64)
    addresses[::2], addresses[1::2] = rows, values.view(np.uint64)
    for who, kept in RETENTIONS.items():
        found = np.empty_like(values)
        for start in range(0, len(values), _CHUNK):
            part = slice(start, start + _CHUNK)
            cells = addresses[2 * start : 2 * (start + _CHUNK)]
            found[part] = replace(values[part], kept, size, cells, stream.bits)
        out[who] = found
    return out


@njit(cache=True, nogil=True)
def _tally(counts: Any, x: Any, a: Any, b: Any, c: Any) -> None:  # pragma: no cover - compiled
    for i in range(len(x)):
        counts[x[i], a[i], b[i], c[i]] += 1


@njit(cache=True, nogil=True)
def _pairs(counts: Any, x: Any, a: Any, b: Any, c: Any) -> None:  # pragma: no cover - compiled
    for i in range(len(x)):
        counts[0, x[i], a[i]] += 1
        counts[1, x[i], b[i]] += 1
        counts[2, x[i], c[i]] += 1


def simulate(law: Any, tuples: int, seed: int, advance: Callable[[int], None], *, whole: bool) -> Any:
    """How often each combination came: `F[x, ya, yb, yc]` of the paper, or `F[who, x, y]` if that is enough."""
    size = len(law)
    counts = np.zeros((size,) * 4 if whole else (3, size, size), np.int64)
    edges = np.cumsum(law)[:-1]
    batches = -(-tuples // _BATCH)
    for batch in range(batches):
        rng = np.random.default_rng([seed, batch])
        rows = min(_BATCH, tuples - batch * _BATCH)
        values = np.searchsorted(edges, rng.random(rows, dtype=np.float32), side="right").astype(np.int64)
        seen = released(values, size, Key.from_bytes(rng.bytes(32)))
        (_tally if whole else _pairs)(counts, values, seen["a"], seen["b"], seen["c"])
        advance(25 * (batch + 1) // batches - 25 * batch // batches)
    return counts
