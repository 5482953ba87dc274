"""Whether categories were replaced as their manifests say, and whether each copy adds to a better one and no more.

On one path a less faithful copy keeps the value of a better one with probability `p₂/p₁` and else draws anew, whatever
the true value is (xiao2009, Lemma 1): every count below is binomial, and exactly so. The columns of a joint group are
kept or drawn together, and each by itself has the same law.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import stats

from sfumato.attacks import Categories, column_of
from sfumato.audit.checks import Check
from sfumato.kernels import Mask, Rows

FEWEST_ROWS = 50


@dataclass(frozen=True)
class Column:
    """One categorical column of one copy."""

    name: str
    """Of the copy."""
    column: str
    codes: Rows
    truth: Rows
    size: int
    retention: float

    @classmethod
    def of(cls, name: str, part: Categories, truth: Rows) -> list[Column]:
        """The columns of an attribute."""
        model = part.model
        found = []
        for i, (column, domain) in enumerate(zip(model.columns, model.domains, strict=True)):
            codes, real = (np.where(c >= 0, column_of(c, model, i), -1) for c in (part.codes, truth))
            found.append(cls(name, column, codes, real, int(domain["count"]) + model.perturbs_null, model.retention))
        return found

    @property
    def subject(self) -> str:
        """For a message."""
        return f"{self.name}, {self.column}"


def replacement_checks(columns: Sequence[Column]) -> Iterator[Check]:
    """All checks on the copies of one column on one path."""
    ordered = sorted(columns, key=lambda one: -one.retention)
    for one in ordered:
        if ((one.codes >= 0) != (one.truth >= 0)).any():
            yield Check(one.subject, "values are missing where the original has some", 0.0, (one.name,))
            return
    there = ordered[0].truth >= 0
    truth = ordered[0].truth[there]
    if ordered[0].size < 2 or len(truth) < FEWEST_ROWS:
        return
    for one in ordered:
        for check in _kept(one.subject, "the original", truth, one.codes[there], one.retention, one.size):
            yield replace(check, copies=(one.name,))
    for first, second in combinations(ordered, 2):
        ratio, subject = second.retention / first.retention, f"{first.name} and {second.name}, {first.column}"
        before, after = first.codes[there], second.codes[there]
        if ratio >= 1 - 1e-9:
            yield Check(subject, "copies of the same level differ", float((before == after).all()))
            continue
        yield from _kept(subject, first.name, before, after, ratio, first.size)
        hidden = before != truth
        fault = "where the better copy hides the truth, the other shows it: together they tell more"
        yield Check(subject, fault, _rate((after == truth)[hidden], (1 - ratio) / first.size))


def _kept(subject: str, better: str, before: Rows, after: Rows, ratio: float, size: int) -> Iterator[Check]:
    """A value stays with probability `r + (1-r)/s`; what replaces it is any other with the same probability."""
    rate = _rate(after == before, ratio + (1 - ratio) / size)
    yield Check(subject, f"it does not keep the value of {better} as often as stated", rate)
    moved = (after - before)[after != before] % size
    if size <= len(moved):
        counts = np.bincount(moved, minlength=size)[1:]
        law = stats.binom(len(moved), 1 / (size - 1))
        worst = min(float(law.sf(counts.max() - 1)), float(law.cdf(counts.min())))
        yield Check(subject, "what replaces a value is not drawn evenly", min(1.0, 2 * (size - 1) * worst))


def crossed(parts: Sequence[tuple[Categories, Rows]], name: str) -> Iterator[Check]:
    """Whether two attributes of one copy are replaced independently, given the true codes of each."""
    for (a, truth), (b, real) in combinations(parts, 2):
        there = (truth >= 0) & (real >= 0)
        names = (" x ".join(part.model.columns) for part in (a, b))
        p = _independent((a.codes == truth)[there], (b.codes == real)[there])
        yield Check(f"{name}, {' and '.join(names)}", "the same draws decide about two attributes", p)


def _rate(hits: Mask, rate: float) -> float:
    count, total = int(hits.sum()), len(hits)
    law = stats.binom(total, rate)
    return float(min(1.0, 2 * min(law.cdf(count), law.sf(count - 1))))


def _independent(first: Mask, second: Mask) -> float:
    """Fisher's exact test, as a hypergeometric law given the margins."""
    both, total = int((first & second).sum()), len(first)
    law = stats.hypergeom(total, int(first.sum()), int(second.sum()))
    return float(min(1.0, 2 * min(law.cdf(both), law.sf(both - 1))))
