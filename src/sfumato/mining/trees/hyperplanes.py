"""Class probabilities over a few columns jointly, by a likelihood penalised for changes across hyperplanes.

The probability `η(x)` of a class in the original lies between 0 and 1 and determines that in the copy:

    P(class | y) = Σ_x η(x)·g(x)·K(y | x) / Σ_x g(x)·K(y | x)

with the joint density `g` of all records and the perturbation `K`. Under noise, many `η` fit as well as the true one. A
decision tree represents those that change only across axis-parallel hyperplanes, and is small where one threshold
serves in many regions. So the likelihood is maximised with a penalty on every hyperplane of the grid: the root mean
square of the change across it, a group lasso (Yuan and Lin 2006) of fused differences (Tibshirani and others 2005). A
second round weighs the penalty by the inverse of the change found (the adaptive lasso, Zou 2006), which removes most of
the bias of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize

from sfumato.kernels import Floats
from sfumato.mining.features.features import TrainingSet
from sfumato.mining.trees.joint_density import JointChannel, JointGrid, KnownMarginals, joint_density

PENALTIES = (0.02, 0.06, 0.2, 0.6)
"""Candidate penalties on a change from 0 to 1 across a whole hyperplane, in units of the root of the record count."""
_SMOOTH = 0.005
"""Below this size, the penalty on a change is quadratic, so that it is differentiable."""
_REFERENCE_CHANGE, _LEAST_CHANGE = 0.2, 0.05
"""In the second round, a change of `_REFERENCE_CHANGE - _LEAST_CHANGE` keeps the penalty of the first."""
_ROUNDS, _ITERATIONS, _ROUGH_ITERATIONS = 2, 400, 20
"""The rounds of an optimisation, the largest number of iterations of each, and those of an approximation."""
_STACKED = 1 << 16
"""About how many probabilities are found at once: more would take memory, and calls no longer cost much beside them."""
_TOLERANCE = 1e-3
"""An iteration that raises the total log-likelihood by less is the last."""


@dataclass(frozen=True)
class GridClassCounts:
    """Class counts of a copy's records on a grid, from which class probabilities of the original are estimated."""

    grid: JointGrid
    channel: JointChannel
    density: Floats
    """The joint density `g` of all records of the original."""
    counts: Floats
    """The number of records by class, and by bin along every axis."""

    @classmethod
    def of(cls, training: TrainingSet, grid: JointGrid, known: KnownMarginals) -> GridClassCounts:
        """Count all records of a training set; what is found of columns by themselves is added to what is known."""
        counts = grid.class_counts(training.values, training.labels, len(training.classes))
        channel = JointChannel(grid)
        return cls(grid, channel, joint_density(grid, training.values, counts.sum(axis=0), channel, known), counts)

    def random_halves(self, rng: np.random.Generator) -> tuple[GridClassCounts, GridClassCounts]:
        """The counts of a random half of the records and of the other half, with the density of all records."""
        half = rng.binomial(self.counts.astype(np.int64), 0.5).astype(np.float64)
        one, other = (
            GridClassCounts(self.grid, self.channel, self.density, part) for part in (half, self.counts - half)
        )
        return one, other

    def class_probabilities(self, penalty: float) -> Floats:
        """`η` of every class; the first axis is that of the classes."""
        return class_probabilities([self], penalty)[0]

    def log_likelihood(self, probabilities: Floats) -> float:
        """The log-likelihood of the observed classes, given class probabilities estimated from other records."""
        observed = np.stack([self.channel.forward(one * self.density) for one in probabilities])
        observed /= self.channel.forward(self.density)
        return float((self.counts * np.log(np.maximum(observed, 1e-9))).sum())


def class_probabilities(tables: Sequence[GridClassCounts], penalty: float) -> list[Floats]:
    """`η` of every class for each of some tables of counts on one grid; the first axis is that of the classes.

    Each class is fitted against all others, and the fits are normalised; two classes need only one fit. Small
    fits are one optimisation of their sum, since calls would take longer than arithmetic.
    """
    classes, density = len(tables[0].counts), tables[0].density
    if classes == 1:
        return [np.ones((1, *density.shape)) for _ in tables]
    count = 1 if classes == 2 else classes
    members = np.concatenate([table.counts[:count] for table in tables])
    totals = np.repeat(np.stack([table.counts.sum(axis=0) for table in tables]), count, axis=0)
    at_once = max(_STACKED // density.size, 1)
    parts = [slice(first, first + at_once) for first in range(0, len(members), at_once)]
    found = [_PenalisedFits(tables[0], members[part], totals[part], penalty).run() for part in parts]
    fits = np.concatenate(found).reshape(len(tables), count, *density.shape)
    if classes == 2:
        return [np.concatenate([fit, 1 - fit]) for fit in fits]
    positive = np.maximum(fits, 1e-9)
    return list(positive / positive.sum(axis=1, keepdims=True))


def rough_class_probabilities(tables: Sequence[GridClassCounts]) -> list[Floats]:
    """A fast approximation of `class_probabilities`: a few iterations of expectation maximisation without a penalty.

    Each starts at the share of the class everywhere; to stop early keeps the probabilities smooth.
    """
    at_once = max(_STACKED // (len(tables[0].counts) * tables[0].density.size), 1)
    parts = (tables[first : first + at_once] for first in range(0, len(tables), at_once))
    return [eta for part in parts for eta in _roughly(part)]


def _roughly(tables: Sequence[GridClassCounts]) -> Floats:
    """The same for as many tables as are worked on at once."""
    density, channel = tables[0].density, tables[0].channel
    counts = np.stack([table.counts for table in tables])
    records = counts.reshape(*counts.shape[:2], -1).sum(axis=2).reshape(*counts.shape[:2], *[1] * density.ndim)
    share = (records + 1e-9) / (records + 1e-9).sum(axis=1, keepdims=True)  # a half of few records may have none
    eta = np.broadcast_to(share, (*counts.shape[:2], *density.shape))
    for _ in range(_ROUGH_ITERATIONS):
        joint = eta * density
        joint = joint * channel.adjoint(counts / channel.forward(joint))
        eta = (joint + 1e-300) / (joint + 1e-300).sum(axis=1, keepdims=True)
    return eta


class _PenalisedFits:
    """Maximises the penalised likelihoods of the probability of one class against all others, in several tables.

    The first axis of all arrays is that of the fits.
    """

    def __init__(self, counts: GridClassCounts, members: Floats, totals: Floats, penalty: float) -> None:
        self._channel, self._density = counts.channel, counts.density
        self._members, self._others = members, totals - members
        self._observed = counts.channel.forward(counts.density)
        dimensions = counts.density.ndim
        self._differences = [
            (_MeanDeviations if is_category else _AdjacentDifferences)(axis + 1, dimensions)
            for axis, is_category in enumerate(counts.grid.are_categories)
        ]
        self._records = totals.reshape(len(totals), -1).sum(axis=1).reshape(-1, *[1] * dimensions)
        self._penalty = penalty * np.sqrt(self._records)
        self._tolerance = _TOLERANCE / max(float(self._records.mean()), 1.0)

    def run(self) -> Floats:
        """Optimise in two rounds; all hyperplanes have the same penalty in the first, an adaptive one in the second."""
        shape = (len(self._members), *self._density.shape)
        share = self._members.reshape(len(self._members), -1).sum(axis=1).reshape(self._records.shape)
        probabilities = np.broadcast_to(share / np.maximum(self._records, 1.0), shape)
        penalties = [self._penalty] * self._density.ndim
        for _ in range(_ROUNDS):
            optimum = minimize(
                self._objective,
                probabilities.ravel(),
                args=(penalties,),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(0.0, 1.0),
                options={"maxiter": _ITERATIONS, "maxcor": 12, "ftol": self._tolerance, "gtol": 1e-4},
            )
            probabilities = optimum.x.reshape(shape)
            changes = [np.sqrt(_mean_square(each.apply(probabilities), each.others)) for each in self._differences]
            penalties = [self._penalty * _REFERENCE_CHANGE / (change + _LEAST_CHANGE) for change in changes]
        return probabilities

    def _objective(self, flat: Floats, penalties: list[Floats]) -> tuple[float, Floats]:
        """The negative penalised log-likelihood, and its gradient."""
        eta = flat.reshape(len(self._members), *self._density.shape)
        expected = self._channel.forward(eta * self._density) / self._observed
        np.minimum(np.maximum(expected, 1e-9, out=expected), 1 - 1e-9, out=expected)
        rest = 1 - expected
        value = -float((self._members * np.log(expected) + self._others * np.log(rest)).sum())
        ratios = (self._members / expected - self._others / rest) / self._observed
        gradient = -self._density * self._channel.adjoint(ratios)
        for differences, penalty in zip(self._differences, penalties, strict=True):
            change = differences.apply(eta)
            size = np.sqrt(_mean_square(change, differences.others) + _SMOOTH**2)
            value += float(np.sum(penalty * (size - _SMOOTH)))
            cells = change.size / size.size
            differences.add_transpose(penalty / (size * cells) * change, gradient)
        return value, gradient.ravel()


class _AdjacentDifferences:
    """Differences between adjacent cells, along a numeric axis."""

    def __init__(self, axis: int, dimensions: int) -> None:
        self.others = tuple(other for other in range(1, dimensions + 1) if other != axis)
        before = (slice(None),) * axis
        self._ahead, self._behind = (*before, slice(1, None)), (*before, slice(None, -1))

    def apply(self, values: Floats) -> Floats:
        """The change across each hyperplane."""
        changes: Floats = values[self._ahead] - values[self._behind]
        return changes

    def add_transpose(self, differences: Floats, out: Floats) -> None:
        """Add the transpose of the linear map `apply`."""
        out[self._ahead] += differences
        out[self._behind] -= differences


class _MeanDeviations:
    """Deviations from the mean, along a categorical axis; the map is symmetric."""

    def __init__(self, axis: int, dimensions: int) -> None:
        self.others = tuple(other for other in range(1, dimensions + 1) if other != axis)
        self._axis = axis

    def apply(self, values: Floats) -> Floats:
        """The deviation of each category."""
        deviations: Floats = values - values.mean(axis=self._axis, keepdims=True)
        return deviations

    def add_transpose(self, differences: Floats, out: Floats) -> None:
        """Add the transpose of the linear map `apply`."""
        out += self.apply(differences)


def _mean_square(changes: Floats, others: tuple[int, ...]) -> Floats:
    """The mean square of the changes across each hyperplane; `np.mean` takes several times as long for so few."""
    total = np.add.reduce(changes * changes, axis=others, keepdims=True)
    mean: Floats = total * (total.size / changes.size)
    return mean
