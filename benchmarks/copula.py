"""Margin-preserving copies: time per value against copies with plain noise, and the memory and time of the fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

import sfumato as sf
from measure import Line, at_most, compare

KEY = sf.Key.from_bytes(bytes(range(32)))
PLAIN = "gaussian"


def copies() -> Iterator[Line]:
    """Copies of 1,000,000 x 8 numbers at a declared level, on one thread, in the order of the table."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1_000_000, 8)) @ np.tril(rng.normal(size=(8, 8))).T
    whole = np.round(3 * x / x.std(axis=0))
    for name, values in (("doubles", np.exp(x / x.std(axis=0))), ("whole numbers of some 25 values", whole)):
        table = pa.table({f"c{i}": np.ascontiguousarray(values[:, i]) for i in range(8)})
        schemes = [_policy(role, 8).fit(table) for role in ("copula", "gaussian")]
        ours, plain = (partial(scheme.release, table, "b", KEY, threads=1) for scheme in schemes)
        with threadpool_limits(1):
            pair = compare(ours, plain, rounds=8)
        yield at_most(f"copula copy 1,000,000 x 8, {name}", pair, PLAIN, 3)


def _policy(role: str, columns: int) -> sf.Policy:
    names = "".join(f'c{i} = "{role}"\n' for i in range(columns))
    return sf.Policy.loads(f'dataset = "b"\norder = "keep"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\n{names}')
