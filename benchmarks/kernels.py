"""Releases in memory: gaussian and uniform copies against NumPy's insecure generator and against Algorithm 3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

import sfumato as sf
from measure import Line, against, at_most, compare

KEY = sf.Key.from_bytes(bytes(range(32)))
PLAIN = "NumPy (1)"


def gaussian() -> Iterator[Line]:
    """A gaussian copy of 1,000,000 x 8 doubles at three declared levels, and at a level on demand."""
    scheme, table, plain_noise = _numbers(1_000_000, 'order = "keep"')
    for level, bound in (("a", 1.2), ("b", 1.2), ("c", 1.2), (0.6, 3)):
        name = f"declared level {level}" if isinstance(level, str) else "on demand, 8 digits"
        with threadpool_limits(1):
            pair = compare(partial(scheme.release, table, level, KEY, threads=1), plain_noise, rounds=15)
        yield at_most(f"gaussian copy 1,000,000 x 8, {name}, order kept", pair, PLAIN, bound)


def shuffled() -> Iterator[Line]:
    """The same in a secret order of rows, which NumPy's baseline does not bring about."""
    scheme, table, plain_noise = _numbers(1_000_000, "")
    with threadpool_limits(1):
        pair = compare(partial(scheme.release, table, "b", KEY, threads=1), plain_noise, rounds=15)
    yield against("gaussian copy 1,000,000 x 8, rows in a secret order", pair, PLAIN, "(for comparison)", met=True)


def threads() -> Iterator[Line]:
    """Two threads against one, in memory."""
    scheme, table, _ = _numbers(4_000_000, 'order = "keep"')
    one, two = (partial(scheme.release, table, "b", KEY, threads=count) for count in (1, 2))
    with threadpool_limits(1):
        pair = compare(two, one, rounds=9)
    yield at_most("gaussian copy 4,000,000 x 8 in memory, two threads", pair, "one thread", 1 / 1.8)


def _numbers(rows: int, settings: str) -> tuple[sf.TableScheme, pa.Table, Callable[[], object]]:
    """Eight columns, their scheme, and plain noise for them."""
    rng = np.random.default_rng(1)
    mixing = np.tril(rng.normal(size=(8, 8)))
    x = rng.normal(size=(rows, 8)) @ mixing.T
    table = pa.table({f"c{i}": np.ascontiguousarray(x[:, i]) for i in range(8)})
    columns = "".join(f'c{i} = "gaussian"\n' for i in range(8))
    head = f'dataset = "b"\n{settings}\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n'
    scheme = sf.Policy.loads(f"{head}[columns]\n{columns}").fit(table)
    return scheme, table, lambda: x + rng.standard_normal(x.shape) @ mixing.T


def uniform() -> Iterator[Line]:
    """A uniform copy of 10,000,000 cells with a domain of 50 values."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 50, 10_000_000)
    table = pa.table({"x": x})
    policy = sf.Policy.loads(
        'dataset = "b"\norder = "keep"\n[levels]\na = 0.8\nb = 0.3\n[columns]\n'
        'x = { role = "uniform", domain = { min = 0, max = 49 } }'
    )
    scheme = policy.fit(table)

    def plain_replacement(p: float) -> object:
        return np.where(rng.random(len(x)) < p, x, rng.integers(0, 50, len(x)))

    for p in (0.3, 0.8):
        pair = compare(partial(scheme.release, table, p, KEY, threads=1), partial(plain_replacement, p), rounds=5)
        yield at_most(f"uniform copy of 10,000,000 cells, p = {p}, order kept", pair, "NumPy (2)", 2)


def many_levels() -> Iterator[Line]:
    """The 10th to the 10,000th distinct level against the first: nothing is stored, so nothing grows."""
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.normal(size=200_000)})
    policy = sf.Policy.loads('dataset = "b"\ndigits = 16\n[levels]\na = 0.9\nb = 0.1\n[columns]\nx = "gaussian"')
    scheme = policy.fit(table)
    # odd steps of the finest grid all take as many draws
    times = sf.Level(0.9).noise + (sf.Level(0.1).noise - sf.Level(0.9).noise) * (np.arange(10_000) * 4 + 1) / 65536
    levels = [sf.Level.from_noise(t) for t in times]
    first, released = partial(scheme.release, table, levels[0], KEY, threads=1), 1
    for count in (10, 100, 1000, 10_000):
        for level in levels[released:count]:
            scheme.release(table.slice(0, 1000), level, KEY, threads=1)
        released = count
        pair = compare(partial(scheme.release, table, levels[count - 1], KEY, threads=1), first, rounds=15)
        yield at_most(f"the {count:,}th distinct level, 200,000 cells", pair, "the first level", 1.1)


def algorithm_3() -> Iterator[Line]:
    """M - L new copies of 100,000 tuples given L = M/4 earlier ones, against Algorithm 3 of li2012, on all cores."""
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.normal(size=100_000)})
    for copies, bound in ((30, 3.0), (100, None), (300, None), (1000, 1.0)):
        fidelities = np.linspace(0.8, 0.5, copies)
        ladder = "".join(f"l{i} = {f}\n" for i, f in enumerate(fidelities))
        policy = sf.Policy.loads(f'dataset = "b"\n[levels]\n{ladder}[columns]\nx = "gaussian"')
        scheme = policy.fit(table)
        order, old = rng.permutation(copies), copies // 4
        levels = [sf.Level(float(f)) for f in fidelities[order[old:]]]
        literal = Literal(rng, table.column("x").to_numpy(), 1 / fidelities[order] - 1, old)
        pair = compare(partial(scheme.release_levels, table, levels, KEY), literal, rounds=2)
        what = f"{copies - old} copies of 100,000 tuples, {old} released before"
        if bound is None:
            yield against(what, pair, "literal Algorithm 3", "(shows the crossover)", met=True)
        else:
            yield at_most(what, pair, "literal Algorithm 3", bound)


class Literal:
    """Algorithm 3 as printed, for one attribute of variance 1: it must store the noise of every earlier copy."""

    def __init__(self, rng: np.random.Generator, x: Any, noises: Any, old: int) -> None:
        self.rng, self.x, self.noises, self.old = rng, x, noises, old
        order = np.argsort(noises[:old])
        steps = np.sqrt(np.diff(noises[:old][order], prepend=0)) * rng.normal(size=(len(x), old))
        self.stored = np.empty((len(x), old))
        self.stored[:, order] = np.cumsum(steps, axis=1)

    def __call__(self) -> object:
        k_z = np.minimum.outer(self.noises, self.noises)  # eq. 15
        inner, cross, outer = k_z[: self.old, : self.old], k_z[self.old :, : self.old], k_z[self.old :, self.old :]
        gain = cross @ np.linalg.inv(inner)  # eqs. 17, 18
        root = np.linalg.cholesky(outer - gain @ cross.T)
        fresh = self.rng.standard_normal((len(self.x), len(outer))) @ root.T
        return self.x[:, None] + self.stored @ gain.T + fresh
