"""Information leakage of perturbed answers: mutual information between a respondent's answers and the row sent.

It needs the distribution of the population, so it serves results and experiments, not respondents' devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sfumato.kernels import Floats
from sfumato.survey.definition import Survey
from sfumato.survey.perturbation import Integers, bit_probabilities, one_hot


def entropy(codes: Integers) -> float:
    """The entropy of a row of answers, in bits, for respondents drawn from these rows."""
    probabilities = np.unique(codes, axis=0, return_counts=True)[1] / len(codes)
    return float(-(probabilities * np.log2(probabilities)).sum())


_SAMPLE = 200
"""The number of unperturbed rows that are taken for the population when a survey's disclosure is measured."""


def measures(survey: Survey, codes: Integers, labels: Integers, guidance: Floats) -> tuple[float, float]:
    """The degrees of privacy disclosure `l_p` and of error `l_e` of some guidance (zhang2005, definitions 1 and 2).

    Both are measured for respondents like those who answered unperturbed. `l_p` is the share of the information in a
    respondent's answers that the row discloses, for the guidance in use rather than the worst one. `l_e` is the largest
    error of a difference between classes in the share of one answer or of a pair; larger sets are not estimated (E6).
    """
    sample, floor = codes[:_SAMPLE], survey.guided.floor
    total = entropy(sample)
    bits = (
        guided(sample, survey.sizes, guidance, np.random.default_rng(2005), draws=1000, floor=floor) if total else 0.0
    )
    worst = degree_of_error(one_hot(codes, survey.sizes), labels, guidance, len(survey.classes))
    return min(max(bits / total, 0.0), 1.0) if total else 0.0, worst


def degree_of_error(rows: Integers, labels: Integers, guidance: Floats, classes: int) -> float:
    """The degree of error `l_e` for sets of one answer or two: definition 1 of zhang2005, exact for these rows."""
    true = rows.astype(float)
    sent = bit_probabilities(rows, guidance)  # without the floor, which the collector corrects for
    errors = []
    for members in (labels == label for label in range(classes)):
        pairs = sent[members].T @ sent[members]
        np.fill_diagonal(pairs, sent[members].sum(0))
        errors.append((true[members].T @ true[members] - pairs) / len(rows))
    return max(float(np.abs(one - other).max()) for one, other in combinations(errors, 2))


def paper_bound(codes: Integers, sizes: Sequence[int], level: int) -> float:
    """The bound (29) of zhang2005 on the share of information disclosed at a level; false as stated (E8)."""
    values = np.linalg.svd(one_hot(codes, sizes).astype(float), compute_uv=False)
    return float((values[:level] ** 2).sum() / (len(codes) * len(sizes)))


def exact(codes: Integers, weights: Floats, sizes: Sequence[int], guidance: Floats, floor: float = 0.0) -> float:
    """The mutual information `I(t;R)` of a guided row by enumeration of all rows; feasible for few bits only."""
    probabilities = bit_probabilities(one_hot(codes, sizes), guidance, floor)
    width = probabilities.shape[1]
    sent = (np.arange(2**width)[:, None] >> np.arange(width)) & 1
    conditional = np.prod(np.where(sent[None], probabilities[:, None], 1 - probabilities[:, None]), axis=2)
    return _entropy_of(weights @ conditional) - float(weights @ [_entropy_of(row) for row in conditional])


def _entropy_of(distribution: Floats) -> float:
    positive = distribution[distribution > 0]
    return float(-(positive * np.log2(positive)).sum())


def guided(
    codes: Integers,
    sizes: Sequence[int],
    guidance: Floats,
    rng: np.random.Generator,
    *,
    draws: int = 4000,
    floor: float = 0.0,
) -> float:
    """The mutual information `I(t;R)` of a guided row, for respondents drawn from these rows, by simulation."""
    profiles, counts = np.unique(codes, axis=0, return_counts=True)
    probabilities = bit_probabilities(one_hot(profiles, sizes), guidance, floor)
    truth = rng.choice(len(profiles), draws, p=counts / counts.sum())
    sent = (rng.random((draws, probabilities.shape[1])) < probabilities[truth]).astype(np.int64)
    with np.errstate(divide="ignore"):
        log_one, log_zero = np.log2(probabilities), np.log2(1 - probabilities)
    log_likelihood = np.empty((draws, len(profiles)))
    for index, row in enumerate(sent):
        log_likelihood[index] = np.where(row, log_one, log_zero).sum(1)
    return _mutual_information(log_likelihood, truth, counts / counts.sum())


def randomised(
    codes: Integers, sizes: Sequence[int], retention: Sequence[float], rng: np.random.Generator, *, draws: int = 4000
) -> float:
    """The mutual information `I(t;R)` of randomised response, for respondents drawn from these rows, by simulation."""
    profiles, counts = np.unique(codes, axis=0, return_counts=True)
    truth = rng.choice(len(profiles), draws, p=counts / counts.sum())
    is_kept = rng.random((draws, len(sizes))) < np.asarray(retention)
    sent = np.where(is_kept, profiles[truth], rng.integers(0, np.asarray(sizes), (draws, len(sizes))))
    is_same = sent[:, None] == profiles[None]
    other = (1 - np.asarray(retention)) / np.asarray(sizes)
    log_likelihood = np.log2(np.where(is_same, np.asarray(retention) + other, other)).sum(2)
    return _mutual_information(log_likelihood, truth, counts / counts.sum())


def _mutual_information(log_likelihood: Floats, truth: Integers, weights: Floats) -> float:
    """The mean of `log2 P(R|t)/P(R)` over simulated rows, from the base-2 log-likelihood of each profile."""
    largest = log_likelihood.max(1, keepdims=True)
    log_marginal = np.log2((np.exp2(log_likelihood - largest) * weights).sum(1)) + largest[:, 0]
    return float((log_likelihood[np.arange(len(truth)), truth] - log_marginal).mean())
