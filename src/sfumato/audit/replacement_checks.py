"""Checks of replaced categories: retention as published, and a less faithful copy only degrades a better one.

On one path a less faithful copy keeps the value of a better one with probability `p₂/p₁` and else draws a new one,
whatever the true value is (xiao2009, Lemma 1): every count below has exactly a binomial distribution. The columns of a
joint group are kept or drawn together, and each by itself has the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import stats

from sfumato.attacks import Categories, marginal_codes
from sfumato.audit.checks import Check
from sfumato.kernels import Mask, Rows

MIN_ROWS = 50
"""The number of records that a test needs."""


@dataclass(frozen=True)
class CategoryColumn:
    """One categorical column of one copy, and its true values."""

    name: str
    """The name of the copy."""
    column: str
    codes: Rows
    truth: Rows
    size: int
    """The number of categories."""
    retention: float

    @classmethod
    def of(cls, name: str, part: Categories, truth: Rows) -> list[CategoryColumn]:
        """The columns of an attribute: one, or those of a joint group."""
        model = part.model
        columns = []
        for i, (column, domain) in enumerate(zip(model.columns, model.domains, strict=True)):
            codes, real = (np.where(c >= 0, marginal_codes(c, model, i), -1) for c in (part.codes, truth))
            columns.append(cls(name, column, codes, real, int(domain["count"]) + model.perturbs_null, model.retention))
        return columns

    @property
    def subject(self) -> str:
        """The name of the copy and the column, for a message."""
        return f"{self.name}, {self.column}"


def replacement_checks(columns: Sequence[CategoryColumn]) -> Iterator[Check]:
    """All checks on the copies of one column on one path."""
    ordered = sorted(columns, key=lambda one: -one.retention)
    for one in ordered:
        if ((one.codes >= 0) != (one.truth >= 0)).any():
            yield Check(one.subject, "values are missing where the original has some", 0.0, (one.name,))
            return
    there = ordered[0].truth >= 0
    truth = ordered[0].truth[there]
    if ordered[0].size < 2 or len(truth) < MIN_ROWS:
        return
    for one in ordered:
        for check in _retention_checks(one.subject, "the original", truth, one.codes[there], one.retention, one.size):
            yield replace(check, copies=(one.name,))
    for first, second in combinations(ordered, 2):
        yield from _pair_checks(first, second, truth, there)


def _pair_checks(first: CategoryColumn, second: CategoryColumn, truth: Rows, there: Mask) -> Iterator[Check]:
    """A copy and a less faithful one, in the records that have a value, with the true values of those."""
    ratio, subject = second.retention / first.retention, f"{first.name} and {second.name}, {first.column}"
    before, after = first.codes[there], second.codes[there]
    if ratio >= 1 - 1e-9:
        yield Check(subject, "copies of the same level differ", float((before == after).all()))
        return
    yield from _retention_checks(subject, first.name, before, after, ratio, first.size)
    replaced = before != truth
    fault = "where the better copy replaced the true value, the other one has it, so that together they disclose more"
    yield Check(subject, fault, _binomial_p((after == truth)[replaced], (1 - ratio) / first.size))


def _retention_checks(subject: str, better: str, before: Rows, after: Rows, ratio: float, size: int) -> Iterator[Check]:
    """A value is retained with probability `r + (1-r)/s`; its replacement is uniform over the other values."""
    p = _binomial_p(after == before, ratio + (1 - ratio) / size)
    yield Check(subject, f"it does not retain the value of {better} as often as stated", p)
    shifts = (after - before)[after != before] % size
    if size <= len(shifts):
        counts = np.bincount(shifts, minlength=size)[1:]
        distribution = stats.binom(len(shifts), 1 / (size - 1))
        smallest = min(float(distribution.sf(counts.max() - 1)), float(distribution.cdf(counts.min())))
        yield Check(subject, "replacements are not uniformly distributed", min(1.0, 2 * (size - 1) * smallest))


def attribute_independence_checks(parts: Sequence[tuple[Categories, Rows]], name: str) -> Iterator[Check]:
    """Tests that two attributes of one copy are replaced independently, given the true codes of each."""
    for (a, truth), (b, real) in combinations(parts, 2):
        there = (truth >= 0) & (real >= 0)
        names = (" x ".join(part.model.columns) for part in (a, b))
        p = _fisher_exact_p((a.codes == truth)[there], (b.codes == real)[there])
        yield Check(f"{name}, {' and '.join(names)}", "two attributes share their random draws", p)


def _binomial_p(hits: Mask, rate: float) -> float:
    """The exact two-sided binomial test of a rate."""
    count, total = int(hits.sum()), len(hits)
    distribution = stats.binom(total, rate)
    return float(min(1.0, 2 * min(distribution.cdf(count), distribution.sf(count - 1))))


def _fisher_exact_p(first: Mask, second: Mask) -> float:
    """Fisher's exact test of independence: given the margins, the count of both is hypergeometric."""
    both, total = int((first & second).sum()), len(first)
    distribution = stats.hypergeom(total, int(first.sum()), int(second.sum()))
    return float(min(1.0, 2 * min(distribution.cdf(both), distribution.sf(both - 1))))
