"""The mean and covariance of the original, as well as an attacker can know them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks.evidence.evidence import Knowledge
from sfumato.errors import AttackError
from sfumato.kernels import Floats


@dataclass(frozen=True)
class Statistics:
    """Of the original, and of the copy it was seen through."""

    mean: Floats
    covariance: Floats
    """Of the original; where it is estimated it may have negative directions."""
    seen: Floats
    """Of the copy: the above and its noise."""
    rows: int | None
    """How many records it was estimated from; none where it is known."""


def statistics(columns: tuple[str, ...], copy: Floats, noise: Floats, knowledge: Knowledge) -> Statistics:
    """From what is known; else from a sample of the population; else from the copy, `Σx = Σy - Σr` (huang2005, eq. 14).

    Args:
        copy: records without missing values.
        noise: the covariance of the copy's noise.

    """
    if knowledge.statistics is not None:
        names, mean, covariance = knowledge.statistics
        places = [names.index(name) for name in columns]
        known = covariance[np.ix_(places, places)]
        return Statistics(mean[places], known, known + noise, None)
    if knowledge.sample is not None:
        sample = complete(knowledge.sample.numbers(columns))
        if len(sample) < 2:
            raise AttackError("a sample must have at least two records without missing numbers; give a larger one")
        covariance = np.atleast_2d(np.cov(sample.T))
        return Statistics(sample.mean(axis=0), covariance, covariance + noise, len(sample))
    copy = chosen(copy, knowledge)
    seen = np.atleast_2d(np.cov(copy.T))
    return Statistics(copy.mean(axis=0), seen - noise, seen, len(copy))


def chosen(copy: Floats, knowledge: Knowledge) -> Floats:
    """The records that statistics are estimated from: all, or so many, evenly spread."""
    if knowledge.samples is None or knowledge.samples >= len(copy):
        return copy
    places = np.linspace(0, len(copy) - 1, max(knowledge.samples, 2)).astype(np.int64)
    taken: Floats = copy[places]
    return taken


def complete(values: Floats) -> Floats:
    """The records without a missing value."""
    return values[~np.isnan(values).any(axis=1)]


def means_of(values: Floats) -> Floats:
    """The mean of what is there of each column; 0 where nothing is."""
    there = ~np.isnan(values)
    means: Floats = np.where(there, values, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return means


def learnable(values: Floats) -> Floats:
    """Records to learn moments from: the complete ones or, where they are few, all of them.

    There, what is missing is put at the column's mean, and the rest is moved apart so that the variance stays.
    """
    whole = complete(values)
    if len(whole) >= max(50, 10 * values.shape[1]) or len(whole) == len(values):
        return whole
    there = ~np.isnan(values)
    share = there.mean(axis=0)
    means = means_of(values)
    moved: Floats = means + np.where(there, values - means, 0.0) / np.sqrt(np.maximum(share, 1e-12))
    return moved
