"""Anonymity of columns released unchanged: k-anonymity, l-diversity, t-closeness, and uniqueness in a population.

Quasi-identifiers are the columns that a copy shows unchanged; perturbed columns are the sensitive attributes. Records
that agree in all quasi-identifiers form an equivalence class (Samarati and Sweeney 1998).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from sfumato.audit.measures.mixed_table import MixedTable
from sfumato.kernels import Floats, Rows


@dataclass(frozen=True)
class SensitiveAttribute:
    """How much the equivalence classes tell about a sensitive attribute."""

    column: str
    diversity: int
    """The smallest number of distinct values in an equivalence class (distinct l-diversity)."""
    closeness: float
    """The largest distance between the distribution in an equivalence class and that of the table (t-closeness)."""


@dataclass(frozen=True)
class Anonymity:
    """The equivalence classes of the records that were audited."""

    columns: tuple[str, ...]
    """The quasi-identifiers."""
    k: int
    """The size of the smallest equivalence class."""
    uniques: int
    """The number of records that are alone in theirs."""
    below: dict[int, float]
    """The share of records in classes smaller than 2, 3 and 5."""
    population: int
    """The number of records that these are a sample of."""
    population_uniques: float
    """The estimated share of these records that are unique in the population too."""
    attributes: tuple[SensitiveAttribute, ...]


def anonymity(quasi: MixedTable, sensitive: MixedTable, population: int) -> Anonymity | None:
    """The anonymity of records with these quasi-identifiers; none without any."""
    if not quasi.columns or not len(quasi):
        return None
    classes = equivalence_classes(quasi)
    counts = np.bincount(classes)
    sizes = counts[classes]
    below = {k: float((sizes < k).mean()) for k in (2, 3, 5)}
    uniques = int((sizes == 1).sum())
    share = uniques / len(sizes) if population <= len(sizes) else unique_share(counts, population)
    attributes = [
        SensitiveAttribute(name, *_told(values, classes, number=bool(number)))
        for name, values, number in zip(sensitive.columns, sensitive.values.T, sensitive.is_number, strict=True)
    ]
    return Anonymity(quasi.columns, int(sizes.min()), uniques, below, population, share, tuple(attributes))


def equivalence_classes(quasi: MixedTable) -> Rows:
    """The number of the equivalence class of each record; a missing value is a value of its own."""
    _, classes = np.unique(np.nan_to_num(quasi.values, nan=-np.inf), axis=0, return_inverse=True)
    return classes.reshape(-1)


def unique_share(counts: Sequence[int] | Rows, population: int) -> float:
    """The share of a sample that is unique in the population it is from, by Pitman's model (Hoshino 2001).

    Args:
        counts: the sizes of the equivalence classes in the sample.
        population: the number of records of the population.

    """
    sizes = np.asarray(counts)
    total, uniques = int(sizes.sum()), int((sizes == 1).sum())
    if not uniques:
        return 0.0
    if uniques == total:
        return 1.0  # no two records agree: nothing says that anybody in the population does
    theta, alpha = _pitman(sizes)
    expected = math.exp(gammaln(theta + 1) - gammaln(theta + alpha) + alpha * math.log(population))
    return min(expected / population, uniques / total)


def _pitman(sizes: Rows) -> tuple[float, float]:
    """The maximum-likelihood parameters `θ` and `α` of Pitman's sampling formula."""
    values, frequencies = np.unique(sizes, return_counts=True)
    total, classes = float(sizes.sum()), float(len(sizes))

    def loss(parameters: Floats) -> float:
        theta, alpha = math.exp(min(parameters[0], 50.0)), float(expit(parameters[1])) * (1 - 1e-6) + 5e-7
        between = (classes - 1) * math.log(alpha) + gammaln(theta / alpha + classes) - gammaln(theta / alpha + 1)
        within = float(frequencies @ (gammaln(values - alpha) - gammaln(1 - alpha)))
        return float(-(between - gammaln(theta + total) + gammaln(theta + 1) + within) / total)

    found = minimize(loss, np.array([math.log(classes), 0.0]), method="Nelder-Mead", options={"maxiter": 500})
    return math.exp(min(float(found.x[0]), 50.0)), float(expit(found.x[1]))


def _told(values: Floats, classes: Rows, *, number: bool) -> tuple[int, float]:
    """The smallest number of distinct values in a class, and the largest distance of its distribution."""
    distinct, codes = np.unique(np.nan_to_num(values, nan=-np.inf), return_inverse=True)
    codes = codes.reshape(-1)
    order = np.lexsort((codes, classes))
    first = np.flatnonzero(np.diff(classes[order], prepend=-1))
    new = (np.diff(codes[order], prepend=-1) != 0) | (np.diff(classes[order], prepend=-1) != 0)
    diversity = np.add.reduceat(new.astype(np.int64), first)
    overall = np.bincount(codes) / len(codes)
    farthest = 0.0
    for members in np.split(codes[order], first[1:]):
        shares = np.bincount(members, minlength=len(distinct)) / len(members)
        farthest = max(farthest, _earth_movers(shares - overall, ordered=number))
    return int(diversity.min()), farthest


def _earth_movers(difference: Floats, *, ordered: bool) -> float:
    """The earth mover's distance of two distributions: over ordered values, or values that are all as far apart."""
    if ordered and len(difference) > 1:
        return float(np.abs(np.cumsum(difference)).sum() / (len(difference) - 1))
    return float(np.abs(difference).sum() / 2)
