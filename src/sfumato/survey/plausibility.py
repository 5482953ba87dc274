"""Alarms about answers to a randomised survey that honest devices would hardly have sent.

Whatever people answer, an honest device reports each option with a probability between `(1-p)/s` and `p + (1-p)/s`, and
independently of other devices. Counts beyond what these probabilities allow come from forged or withheld answers, which
no confidence interval accounts for. The tests hold for every distribution of the true answers.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, ndtri
from scipy.stats import binom

from sfumato.survey.definition import Survey
from sfumato.survey.frequencies import estimate_share
from sfumato.survey.perturbation import Integers

FALSE_ALARM_RATE = 1e-3
"""The largest probability with which answers of honest devices alone raise an alarm."""

_ADVICE = "answers were forged or withheld, so do not rely on the shares"


def alarms(survey: Survey, levels: Integers, rows: Integers) -> list[str]:
    """Reasons to distrust the estimated shares."""
    used = [int(level) for level in np.unique(levels)]
    options = sum(survey.sizes)
    found = _estimates_outside(survey, levels, rows, FALSE_ALARM_RATE / (6 * options))
    for level in used:
        members, rate = rows[levels == level], FALSE_ALARM_RATE / (3 * len(used))
        found += _impossible_counts(survey, level, members, rate / (2 * options))
        found += _repeated_rows(survey, level, members, rate)
    return found


def influence(survey: Survey, answers: int) -> float:
    """The largest change of a share by one forged answer, which claims to be at the most careful level."""
    return min(1.0, 1 / (float(np.min(survey.retention)) * max(answers, 1)))


def _estimates_outside(survey: Survey, levels: Integers, rows: Integers, rate: float) -> list[str]:
    """Estimated shares that are further below 0 or above 1 than noise explains."""
    retention, limit, found = np.array(survey.retention)[levels], -float(ndtri(rate)), []
    for index, item in enumerate(survey.items if len(rows) else ()):
        estimates = [
            estimate_share(rows[:, index] == code, retention[:, index], item.size) for code in range(item.size)
        ]
        outside = [max(-one.mean, one.mean - 1) / one.error for one in estimates]
        worst = int(np.argmax(outside))
        if outside[worst] > limit:
            found.append(
                f"{item.name}: the estimated share of {item.labels[worst]!r} is {estimates[worst].mean:.0%}, which is "
                f"{outside[worst]:.1f} standard errors outside what is possible; {_ADVICE}"
            )
    return found


def _impossible_counts(survey: Survey, level: int, rows: Integers, rate: float) -> list[str]:
    """Options that were reported more or less often at a level than honest devices report them, if all people agree."""
    found = []
    for index, (item, kept) in enumerate(zip(survey.items, survey.retention[level], strict=True)):
        counts = np.bincount(rows[:, index], minlength=item.size)
        least, most = (1 - kept) / item.size, kept + (1 - kept) / item.size
        probabilities = np.minimum(binom.sf(counts - 1, len(rows), most), binom.cdf(counts, len(rows), least))
        worst = int(np.argmin(probabilities))
        if probabilities[worst] < rate:
            found.append(
                f"{item.name}: {counts[worst]:,} of {len(rows):,} answers at the level {survey.levels[level][0]!r} say "
                f"{item.labels[worst]!r}, and honest devices say it in {least:.0%} to {most:.0%} of cases; {_ADVICE}"
            )
    return found


def _repeated_rows(survey: Survey, level: int, rows: Integers, rate: float) -> list[str]:
    """Answers to all questions, or to one multiple choice, that arrived more often than honest devices send any."""
    parts = {"all questions": list(range(len(survey.items)))}
    for index, item in enumerate(survey.items):
        if item.option:
            parts.setdefault(item.question, []).append(index)
    found = []
    for name, part in parts.items():
        count = int(np.unique(rows[:, part], axis=0, return_counts=True)[1].max())
        sizes, kept = np.array(survey.sizes)[part], np.array(survey.retention[level])[part]
        most = float(np.log(kept + (1 - kept) / sizes).sum())
        ways = float(gammaln(len(rows) + 1) - gammaln(count + 1) - gammaln(len(rows) - count + 1))
        # A union bound over the sets of so many people and over the possible answers.
        if ways + count * most + float(np.log(sizes).sum()) < math.log(rate / len(parts)):
            found.append(
                f"{name}: {count:,} of {len(rows):,} answers at the level {survey.levels[level][0]!r} are the same, "
                f"and honest devices send any one in at most {math.exp(most):.2%} of cases; {_ADVICE}"
            )
    return found
