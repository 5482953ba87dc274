"""Intervals of 95 % hold in 93 to 97 % of releases: 1,000 releases of one table, each with a key of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats
from tests import offices
from tests.statistical.conftest import Verdict

from sfumato.mining import Frequencies, Moments, count
from sfumato.mining import column as of

RELEASES = 1000
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
NAMES = ("age", "income", "score")

Array = Any


def check(verdict: Verdict, got: float, what: str) -> None:
    """With these very keys it must lie within the bounds; and by chance it could not, if the coverage were far out."""
    assert 0.93 * RELEASES <= got <= 0.97 * RELEASES, f"{what}: {got:.0f} of {RELEASES}"
    verdict.accept(covered_p(int(got)), what)


def covered_p(hits: int, releases: int = RELEASES) -> float:
    """The coverage lies between 93 and 97 %: the exact binomial tails beyond them."""
    below, above = stats.binom.cdf(hits, releases, 0.93), stats.binom.sf(hits - 1, releases, 0.97)
    return float(min(1.0, 2 * min(below, above)))


def hits(found: Array, truth: Array) -> Array:
    return (found[..., 0] <= truth) & (truth <= found[..., 1])


@pytest.fixture(scope="module")
def original() -> pa.Table:
    return offices.table(1500)


@pytest.mark.statistical(checks=6)
@pytest.mark.parametrize("level", [pytest.param("close", marks=pytest.mark.slow), "far"])
def test_moments(verdict: Verdict, original: pa.Table, level: str) -> None:
    values = offices.numbers(original)
    truth, spread = values.mean(axis=0), np.cov(values.T)
    scheme = offices.policy().fit(original)
    total, naive = np.zeros(6), np.zeros(3)
    for number in range(RELEASES):
        seen = scheme.release(original, level, offices.key(number))
        found = Moments(columns=NAMES, shaped=bool(number % 2)).fit(seen)
        means = hits(found.mean_interval_, truth)
        variances = hits(found.covariance_interval_[range(3), range(3)], np.diag(spread))
        total += np.concatenate([means, variances])
        copy = np.cov(offices.numbers(seen).T)
        rough = np.diag(copy) * 1.96 * np.sqrt(2 / len(values))
        naive += np.abs(np.diag(copy) - np.diag(spread)) < rough
    for name, got in zip([*(f"mean of {n}" for n in NAMES), *(f"variance of {n}" for n in NAMES)], total, strict=True):
        check(verdict, got, name)
    for name, got in zip(NAMES, naive, strict=True):
        verdict.reject(covered_p(int(got)), f"variance of {name} in the copy itself")


@pytest.mark.slow
@pytest.mark.statistical(checks=15)
@pytest.mark.parametrize("level", ["close", "far"])
def test_quantiles(verdict: Verdict, original: pa.Table, level: str) -> None:
    values = offices.numbers(original)
    truth = np.quantile(values, SHARES, axis=0, method="inverted_cdf")
    scheme = offices.policy().fit(original)
    total, naive = np.zeros((3, len(SHARES))), np.zeros((3, len(SHARES)))
    for number in range(RELEASES):
        seen = scheme.release(original, level, offices.key(number))
        found = Moments(columns=NAMES).fit(seen)
        for i, name in enumerate(NAMES):
            ends = [(interval.low, interval.high) for interval in found.quantile(name, SHARES)]
            total[i] += hits(np.array(ends), truth[:, i])
            width = np.diff(ends, axis=1)[:, 0] / 2
            naive[i] += np.abs(np.quantile(seen.column(name).to_numpy(), SHARES) - truth[:, i]) < width
    for i, name in enumerate(NAMES):
        for share, got in zip(SHARES, total[i], strict=True):
            check(verdict, got, f"{share:.0%} of {name}")
        verdict.reject(covered_p(int(naive[i, 0])), f"the copy's own 10 % of {name}")


@pytest.mark.statistical(checks=7)
def test_frequencies_and_counts(verdict: Verdict, original: pa.Table) -> None:
    scheme = offices.policy().fit(original)
    wards = np.array(original.column("ward").to_pylist())
    truth = np.array([np.mean(wards == ward) for ward in "abcd"])
    there = pc.and_(pc.equal(original.column("ward"), "a"), original.column("smokes"))
    young = float(np.sum(original.column("age").to_numpy() < 40))
    sites = [pc.and_(there, pc.equal(original.column("site"), site)) for site in ("north", "south")]
    counted = dict(zip(("north", "south"), (pc.sum(site).as_py() for site in sites), strict=True))
    total, naive = np.zeros(7), np.zeros(4)
    for number in range(RELEASES):
        seen = scheme.release(original, "far", offices.key(number))
        table = Frequencies(columns=["ward"]).fit(seen).table("ward")
        ends = np.column_stack([table.column("low").to_numpy(), table.column("high").to_numpy()])
        total[:4] += hits(ends, truth)
        shown = np.array([np.mean(np.array(seen.column("ward").to_pylist()) == ward) for ward in "abcd"])
        naive += np.abs(shown - truth) < np.diff(ends, axis=1)[:, 0] / 2
        answer = count(seen, where=(of("ward") == "a") & of("smokes").isin([True]), by=["site"]).to_pylist()
        for row in answer:
            place = 4 + ("north", "south").index(row["site"])
            total[place] += row["count_low"] <= counted[row["site"]] <= row["count_high"]
        [row] = count(seen, where=of("age") < 40).to_pylist()
        total[6] += row["count_low"] <= young <= row["count_high"]
    for name, got in zip(["a", "b", "c", "d", "a in the north", "a in the south", "young"], total, strict=True):
        check(verdict, got, name)
    verdict.reject(covered_p(int(naive[0])), "the frequency that the copy shows")
