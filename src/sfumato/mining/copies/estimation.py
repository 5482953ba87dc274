"""Any statistic of the original, with an interval: computed on plausible originals, and corrected by rehearsals.

The joint distribution that plausible originals are drawn from is drawn to a simpler one where the copy is noisy, so
that relations in them may be weaker than in the original. A rehearsal shows by how much: a plausible original is
perturbed again, as the copy was, and what its own plausible originals say is compared with what it is known to be
(parametric bootstrap through the noise; Efron and Tibshirani 1993, section 10.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.imputation import Combined, check_columns, combine
from sfumato.mining.copies.perturbed_again import perturbed_again
from sfumato.mining.copies.plausible_originals import PlausibleOriginals

R = TypeVar("R")

_REHEARSALS, _ANSWERS = 5, 4
"""The number of plausible originals that are perturbed again, and of plausible originals of each."""

REHEARSED = 50_000
"""The most records of a rehearsal."""


@dataclass(frozen=True)
class Rehearsal(Generic[R]):
    """What some work made of a plausible original, and of those of its copy."""

    truth: R
    answers: list[R]


def estimate(
    copy: Any,
    statistic: Callable[[pa.Table], Any],
    *,
    columns: Sequence[str] | None = None,
    m: int = 20,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Combined:
    """Estimate any statistic of the original: a function of a table that gives a number, or several.

        estimate("copy.parquet", lambda table: np.corrcoef(table["age"], table["income"])[0, 1])

    Args:
        copy: a copy, as a table or a path.
        statistic: computes numbers from a table like the original; it may fit any model.
        columns: the columns that it uses; all, unless they are given.
        m: the number of plausible originals.
        confidence: the confidence level of the intervals.
        random_state: the seed.

    """
    opened = Copy.of(copy)
    originals = PlausibleOriginals.of(opened, check_columns(opened, columns, m))

    def measure(table: pa.Table) -> Any:
        return np.asarray(statistic(table), np.float64)

    found, rehearsals = rehearsed(originals, m, random_state, measure)
    return combine(found, confidence=confidence, biases=[np.mean(r.answers, axis=0) - r.truth for r in rehearsals])


def rehearsed(
    originals: PlausibleOriginals, m: int, random_state: int, work: Callable[[Any], R], rows: int | None = None
) -> tuple[list[R], list[Rehearsal[R]]]:
    """What some work makes of plausible originals; and of some of them, perturbed again, in the same way.

    Args:
        originals: the plausible originals of a copy.
        m: their number.
        random_state: the seed.
        work: what is done to each.
        rows: the most records that are perturbed again, if originals need not be in memory; all, unless it is given.

    """
    count = originals.copy.rows
    some = pa.array(evenly_spaced(count, min(count, rows or count)))
    both = originals.each(m, random_state, lambda one: (work(one), one.take(some)), in_memory=rows is None)
    rehearsals = []
    for number, (_, original) in enumerate(both[:_REHEARSALS]):
        copy = perturbed_again(originals.copy, original, np.random.default_rng([random_state, number]))
        answers = originals.of_another(copy).each(_ANSWERS, random_state, work)
        rehearsals.append(Rehearsal(work(original), answers))
    return [answer for answer, _ in both], rehearsals
