"""Slow sweeps, for `make sweep`: the same properties on tables large enough to show far smaller faults."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.kernels.ziggurat import bridge
from sfumato.keys.stream import Stream

from . import pvalues as p
from . import worlds
from .conftest import Verdict

MILLIONS = 60


@pytest.mark.slow
@pytest.mark.statistical(checks=12)
def test_the_tails_of_the_normals(verdict: Verdict, key: sf.Key) -> None:
    """180 million draws: how many lie beyond each border, through layers, wedges and tail."""
    borders = (0.2, 1.0, 2.0, 3.0, 3.65, 4.5)
    stream, rows = Stream(key), 1_000_000
    none = np.zeros(rows)
    beyond = np.zeros((2, len(borders)), dtype=np.int64)
    for part in range(MILLIONS):
        addresses = np.empty(2 * rows, np.uint64)
        addresses[::2], addresses[1::2] = np.arange(part * rows, (part + 1) * rows), 5
        bits = stream.bits("a", addresses)
        for word in range(3):
            drawn = bridge(none, none, 0.0, 1.0, bits, word, addresses, partial(stream.bits, f"a/{word}"))
            beyond[0] += [(drawn > border).sum() for border in borders]
            beyond[1] += [(drawn < -border).sum() for border in borders]
    total = 3 * MILLIONS * rows
    for side in beyond:
        for border, count in zip(borders, side, strict=True):
            verdict.accept(p.rate_p(int(count), total, float(stats.norm.sf(border))), f"beyond {border}")
    verdict.reject(p.rate_p(int(beyond[0][3]), total, float(stats.norm.sf(3.01))), "tail 1 % of a deviation off")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(8))
@pytest.mark.statistical(checks=3)
def test_increments_at_random_levels(verdict: Verdict, rng: np.random.Generator, key: sf.Key, turn: int) -> None:
    """Three random levels over a random ladder, two million rows."""
    rows = 2_000_000
    rungs = np.sort(rng.uniform(0.05, 0.95, rng.integers(1, 9)))[::-1]
    table = worlds.numbers(rng, rows, 1)
    scheme = worlds.gaussian(1, "".join(f"l{i} = {f}\n" for i, f in enumerate(rungs))).fit(table)
    levels = np.sort(rng.uniform(0.03, 0.97, 2))[::-1]
    high, low = scheme.release_levels(table, levels.tolist(), key)
    times = [sf.Level(sf.Manifest.of(copy).fidelity).noise for copy in (high, low)]
    first, second = (worlds.white_noise(table, c)[0] * np.sqrt(t) for c, t in zip((high, low), times, strict=True))
    step = (second - first) / np.sqrt(times[1] - times[0])
    verdict.accept(p.variance_p(step, 1.0), "variance of the increment")
    verdict.accept(p.independent_p(first, step), "increment independent of the better copy")
    verdict.accept(p.normal_p(step), "normality of the increment")
    verdict.reject(p.variance_p(step * 0.99, 1.0), "increment 1 % too small")
    verdict.reject(p.independent_p(first, step + 0.01 * first / np.sqrt(times[0])), "keeps 1 % of the better copy")
