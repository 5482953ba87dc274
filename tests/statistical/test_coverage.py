"""Coverage of 95 % confidence intervals: 93 to 97 % over 1,000 releases of one table, each with a key of its own."""

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
PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9)
NAMES = ("age", "income", "score")

Array = Any


def check(verdict: Verdict, got: float, what: str, *, most: float = 0.97) -> None:
    """The observed coverage must lie within the bounds, and be compatible with a true coverage within them."""
    assert 0.93 * RELEASES <= got <= most * RELEASES, f"{what}: {got:.0f} of {RELEASES}"
    verdict.accept(covered_p(int(got), most=most), what)


def covered_p(hits: int, releases: int = RELEASES, *, most: float = 0.97) -> float:
    """The p-value of a coverage between 93 % and `most`, by the exact binomial tails beyond them."""
    below, above = stats.binom.cdf(hits, releases, 0.93), stats.binom.sf(hits - 1, releases, most)
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
    covered, naive = np.zeros(6), np.zeros(3)
    for number in range(RELEASES):
        copy = scheme.release(original, level, offices.key(number))
        found = Moments(columns=NAMES).fit(copy)
        means = hits(found.mean_interval_, truth)
        variances = hits(found.covariance_interval_[range(3), range(3)], np.diag(spread))
        covered += np.concatenate([means, variances])
        uncorrected = np.diag(np.cov(offices.numbers(copy).T))
        naive += np.abs(uncorrected - np.diag(spread)) < uncorrected * 1.96 * np.sqrt(2 / len(values))
    statistics = [f"{statistic} of {name}" for statistic in ("mean", "variance") for name in NAMES]
    for name, got in zip(statistics, covered, strict=True):
        check(verdict, got, name)
    for name, got in zip(NAMES, naive, strict=True):
        verdict.reject(covered_p(int(got)), f"variance of {name} in the copy itself")


@pytest.mark.slow
@pytest.mark.statistical(checks=15)
@pytest.mark.parametrize("level", ["close", "far"])
def test_quantiles(verdict: Verdict, original: pa.Table, level: str) -> None:
    values = offices.numbers(original)
    truth = np.quantile(values, PROBABILITIES, axis=0, method="inverted_cdf")
    scheme = offices.policy().fit(original)
    covered, naive = np.zeros((3, len(PROBABILITIES))), np.zeros((3, len(PROBABILITIES)))
    for number in range(RELEASES):
        copy = scheme.release(original, level, offices.key(number))
        found = Moments(columns=NAMES).fit(copy)
        for i, name in enumerate(NAMES):
            ends = [(interval.low, interval.high) for interval in found.quantile(name, PROBABILITIES)]
            covered[i] += hits(np.array(ends), truth[:, i])
            width = np.diff(ends, axis=1)[:, 0] / 2
            naive[i] += np.abs(np.quantile(copy.column(name).to_numpy(), PROBABILITIES) - truth[:, i]) < width
    for i, name in enumerate(NAMES):
        for probability, got in zip(PROBABILITIES, covered[i], strict=True):
            check(verdict, got, f"{probability:.0%} quantile of {name}", most=1.0)  # wider by the resolution
        verdict.reject(covered_p(int(naive[i, 0])), f"10 % quantile of {name} in the copy itself")


@pytest.mark.slow
@pytest.mark.statistical(checks=7)
def test_frequencies_and_counts(verdict: Verdict, original: pa.Table) -> None:
    scheme = offices.policy().fit(original)
    wards = np.array(original.column("ward").to_pylist())
    truth = np.array([np.mean(wards == ward) for ward in "abcd"])
    there = pc.and_(pc.equal(original.column("ward"), "a"), original.column("smokes"))
    young = float(np.sum(original.column("age").to_numpy() < 40))
    sites = [pc.and_(there, pc.equal(original.column("site"), site)) for site in ("north", "south")]
    counted = dict(zip(("north", "south"), (pc.sum(site).as_py() for site in sites), strict=True))
    covered, naive = np.zeros(7), np.zeros(4)
    for number in range(RELEASES):
        copy = scheme.release(original, "far", offices.key(number))
        table = Frequencies(columns=["ward"]).fit(copy).table("ward")
        ends = np.column_stack([table.column("low").to_numpy(), table.column("high").to_numpy()])
        covered[:4] += hits(ends, truth)
        observed = np.array([pc.mean(pc.equal(copy.column("ward"), ward)).as_py() for ward in "abcd"])
        naive += np.abs(observed - truth) < np.diff(ends, axis=1)[:, 0] / 2
        answer = count(copy, where=(of("ward") == "a") & of("smokes").isin([True]), by=["site"]).to_pylist()
        for row in answer:
            index = 4 + ("north", "south").index(row["site"])
            covered[index] += row["count_low"] <= counted[row["site"]] <= row["count_high"]
        [row] = count(copy, where=of("age") < 40).to_pylist()
        covered[6] += row["count_low"] <= young <= row["count_high"]
    for name, got in zip(["a", "b", "c", "d", "a in the north", "a in the south", "young"], covered, strict=True):
        check(verdict, got, name, most=1.0 if name == "young" else 0.97)  # a range is wider by the resolution
    verdict.reject(covered_p(int(naive[0])), "the uncorrected frequency in the copy")
