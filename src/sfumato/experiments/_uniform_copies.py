"""Simulated releases of xiao2009, section 7: Alice, Bob and Charlie each receive a copy of very many values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

from sfumato.experiments import _data
from sfumato.kernels.compiled import njit
from sfumato.kernels.replacement import replace
from sfumato.keys.key import Key
from sfumato.keys.stream import Stream

RETENTIONS = {"a": 0.3, "b": 0.1, "c": 0.5}
"""The retention probabilities of Alice, Bob and Charlie, in the order of their requests."""
NAMES = ("uniform", "Gaussian", "Salary", "Occupation")
_CHUNK = 1 << 14
_BATCH = 1 << 22


def distributions() -> dict[str, Any]:
    """The four distributions of Figure 4, by name."""
    values = _data.working_adults()[0]
    bell = norm.pdf(np.arange(50), 24.5, 50 / 6)
    counts = {name: np.bincount(values[name], minlength=size) for name, size in (("Salary", 50), ("Occupation", 27))}
    return {
        "uniform": np.full(50, 1 / 50),
        "Gaussian": bell / bell.sum(),
        **{name: count / count.sum() for name, count in counts.items()},
    }


def data_source() -> str:
    """The distributions used, and the substitute for Adult."""
    return f"uniform and Gaussian (synthetic); Salary and Occupation: {_data.working_adults()[1]}"


def three_copies(values: Any, size: int, key: Key) -> dict[str, Any]:
    """The copies of the three recipients: one keyed path per value, read at three levels, as in any release."""
    stream, out = Stream(key), {}
    rows = np.arange(len(values), dtype=np.uint64)
    addresses = np.empty(2 * len(values), np.uint64)
    addresses[::2], addresses[1::2] = rows, values.view(np.uint64)
    for recipient, retention in RETENTIONS.items():
        copy = np.empty_like(values)
        for start in range(0, len(values), _CHUNK):
            part = slice(start, start + _CHUNK)
            part_addresses = addresses[2 * start : 2 * (start + _CHUNK)]
            copy[part] = replace(values[part], retention, size, part_addresses, stream.bits)
        out[recipient] = copy
    return out


@njit(cache=True, nogil=True)
def _add_joint(counts: Any, x: Any, a: Any, b: Any, c: Any) -> None:  # pragma: no cover - compiled
    for i in range(len(x)):
        counts[x[i], a[i], b[i], c[i]] += 1


@njit(cache=True, nogil=True)
def _add_pairs(counts: Any, x: Any, a: Any, b: Any, c: Any) -> None:  # pragma: no cover - compiled
    for i in range(len(x)):
        counts[0, x[i], a[i]] += 1
        counts[1, x[i], b[i]] += 1
        counts[2, x[i], c[i]] += 1


def count_releases(distribution: Any, tuples: int, seed: int, advance: Callable[[int], None], *, joint: bool) -> Any:
    """Frequencies of originals and released values: `F[x, ya, yb, yc]` if `joint`, else `F[recipient, x, y]`."""
    size = len(distribution)
    counts = np.zeros((size,) * 4 if joint else (3, size, size), np.int64)
    edges = np.cumsum(distribution)[:-1]
    batches = -(-tuples // _BATCH)
    for batch in range(batches):
        rng = np.random.default_rng([seed, batch])
        rows = min(_BATCH, tuples - batch * _BATCH)
        values = np.searchsorted(edges, rng.random(rows, dtype=np.float32), side="right").astype(np.int64)
        copies = three_copies(values, size, Key.from_bytes(rng.bytes(32)))
        (_add_joint if joint else _add_pairs)(counts, values, copies["a"], copies["b"], copies["c"])
        advance(25 * (batch + 1) // batches - 25 * batch // batches)
    return counts
