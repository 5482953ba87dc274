"""Attacks on rotated copies on one core: linking known records, and estimating the rotation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests import realdata
from threadpoolctl import threadpool_limits

from measure import Line
from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import breach_rate, linear_map_model, mapped_copy, random_orthogonal
from sfumato.attacks.linkage.distances import link_by_distance
from sfumato.attacks.linkage.inner_products import ReleasedRows, link


def _took(work: Any) -> float:
    """The median time of five runs."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _limit(name: str, took: float, limit: float) -> Line:
    return Line(name, took, limit, "the limit", f"at most {limit:g} s", took <= limit)


def gaussian() -> Iterator[Line]:
    """Linking known records among 100,000 x 100, as in giannella2010, footnote 18."""
    rng = np.random.default_rng(18)
    root = rng.normal(size=(100, 100)) / 10
    real = rng.normal(size=100) + rng.normal(size=(100_000, 100)) @ root
    rows = real @ random_orthogonal(rng, 100).T
    shifted = rows + 100 * rng.normal(size=100)
    known = rng.choice(100_000, 100, replace=False)
    with threadpool_limits(1):
        full = _took(lambda: link(real[known], ReleasedRows(rows, 1e-12)))
        known_half = real[known % 50_000]
        half = _took(lambda: link(known_half, ReleasedRows(rows[:50_000], 1e-12)))
        translated = _took(lambda: link_by_distance(real[known], shifted, 1e-11))
    yield _limit("link 100 known records among 100,000 x 100 (paper: 450 s)", full, 0.3)
    yield Line(
        "link 100 known records among 100,000 x 100, against 50,000 x 100",
        full,
        half,
        "half the rows",
        "at most 2.5 times",
        full <= 2.5 * half,
    )
    yield _limit("link 100 known records among 100,000 x 100 after a translation", translated, 5.0)


def letter() -> Iterator[Line]:
    """Attacks on rotated Letter Recognition data, if the dataset is available."""
    try:
        data = realdata.letter()
    except pytest.skip.Exception:
        return
    rng = np.random.default_rng(1)
    distinct = np.unique(data, axis=0)
    rows = distinct @ random_orthogonal(rng, 16).T
    known = distinct[rng.choice(len(distinct), 16, replace=False)]
    order = rng.permutation(len(data))
    sample, real = data[order[:1000]], data[order[1000:]]
    evidence = mapped_copy(real @ random_orthogonal(rng, 16).T, linear_map_model(16), sample=sample)
    with threadpool_limits(1):
        linked = _took(lambda: link(known, ReleasedRows(rows, 1e-9)))
        start = time.perf_counter()
        found = ATTACKS["known-sample"]().estimate(evidence)
        took = time.perf_counter() - start
    share = breach_rate(found.values, real, 0.15)
    yield _limit("link 16 known records of Letter (paper: 45 s)", linked, 0.1)
    name = f"maximum-likelihood rotation of Letter, sample of 1,000: {share:.0%} of records within 15 %"
    yield Line(name, took, 20.0, "the reference", "at most 20 s", took <= 20)
