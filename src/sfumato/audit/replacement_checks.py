"""Whether categories were replaced as their manifests say, and whether each copy adds to the one before and no more.

On one path the next copy keeps the value of the one before with probability `p₂/p₁` and else draws anew, whatever the
true value is (xiao2009, Lemma 1): every count below is binomial, and exactly so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy import stats

from sfumato.attacks import Categories
from sfumato.audit.checks import Check
from sfumato.kernels import Mask, Rows


def replacement_checks(named: Sequence[tuple[str, Categories]], truth: Rows) -> Iterator[Check]:
    """All checks on the copies of one attribute on one path."""
    ordered = sorted(named, key=lambda item: -item[1].model.retention)
    there = truth >= 0
    truth = truth[there]
    attribute, size = " x ".join(ordered[0][1].model.columns), ordered[0][1].size
    if size < 2 or len(truth) < 2:
        return
    before, kept, last = truth, 1.0, "the original"
    for name, part in ordered:
        codes, retention = part.codes[there], part.model.retention
        ratio = retention / kept
        if ratio < 1 - 1e-9:
            subject = f"{name}, {attribute}"
            stay = ratio + (1 - ratio) / size
            yield Check(
                subject, f"it does not keep the value of {last} as often as stated", _rate(codes == before, stay)
            )
            yield from _evenness(subject, before, codes, size)
            if before is not truth:
                lost = before != truth
                yield Check(
                    f"{last} and {name}, {attribute}",
                    "where the better copy hides the truth, the other shows it: together they tell more",
                    _rate((codes == truth)[lost], (1 - ratio) / size),
                )
        before, kept, last = codes, retention, name


def _evenness(subject: str, before: Rows, codes: Rows, size: int) -> Iterator[Check]:
    """What replaces a value is any other with the same probability: the commonest replacement is no commoner."""
    changed = codes != before
    moved = (codes - before)[changed] % size
    if not len(moved) or size > len(moved):
        return
    counts = np.bincount(moved, minlength=size)[1:]
    law = stats.binom(len(moved), 1 / (size - 1))
    worst = min(float(law.sf(counts.max() - 1)), float(law.cdf(counts.min())))
    yield Check(subject, "what replaces a value is not drawn evenly", min(1.0, 2 * (size - 1) * worst))


def crossed(named: Sequence[tuple[str, Rows, Rows]]) -> Iterator[Check]:
    """Whether two attributes of one copy are replaced independently.

    Args:
        named: an attribute's name, its codes in the copy and the true ones.

    """
    for (a, seen, truth), (b, other, real) in combinations(named, 2):
        there = (truth >= 0) & (real >= 0)
        yield Check(
            f"{a} and {b}",
            "the same draws decide about two attributes",
            _independent((seen == truth)[there], (other == real)[there]),
        )


def _rate(hits: Mask, rate: float) -> float:
    count, total = int(hits.sum()), len(hits)
    law = stats.binom(total, rate)
    return float(min(1.0, 2 * min(law.cdf(count), law.sf(count - 1))))


def _independent(first: Mask, second: Mask) -> float:
    """Fisher's exact test, as a hypergeometric law given the margins."""
    both, total = int((first & second).sum()), len(first)
    law = stats.hypergeom(total, int(first.sum()), int(second.sum()))
    return float(min(1.0, 2 * min(law.cdf(both), law.sf(both - 1))))
