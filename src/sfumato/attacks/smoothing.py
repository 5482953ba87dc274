"""Smoothing along the rows: neighbours in the order of rows, or of published ids, that resemble each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Knowledge, Posterior
from sfumato.attacks.bayes import linear_gain
from sfumato.attacks.collusion import stated_posterior
from sfumato.attacks.evidence.pooling import pool
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.attacks.evidence.statistics import complete_or_imputed, statistics
from sfumato.kernels import Floats, Rows
from sfumato.kernels.ridge import ridge_regression
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_WIDTHS = (2, 10, 50, 200)
"""How many neighbours on either side are averaged."""

_MAX_INPUTS = 320
"""The most averages from which the mean of a record is predicted; with many columns fewer widths are used."""

_TRAINING = 20_000
"""The most records that the prediction is fitted to."""

_MAX_CATEGORIES = 100
"""Attributes with more categories are not smoothed."""


@dataclass(frozen=True, kw_only=True)
class Smoothing(Attack):
    """The best linear estimate around a mean that the neighbours of a record predict.

    The noise of neighbours is independent of that of the record, so that regressing its noisy values on averages of
    theirs predicts the original: a moving average whose widths the data choose. Categories have a prior of their own in
    each neighbourhood. Copies in a secret order have no neighbours, unless published ids tell them.
    """

    reference = "huang2005, section 6, with a mean predicted from neighbours; xiao2009, eq. 25, with a local prior"
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    needs_all_records = True
    unit_tolerance = 1e-3

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for evidence without an order."""
        super().check(evidence)
        if evidence.positions is None:
            raise AttackError(
                f"the attack {self.name!r} needs copies in a known order, or with published ids, and these are in a "
                "secret one; choose another attack"
            )

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Smooth all records; estimates of some of them are looked up by their positions."""
        positions = evidence.positions
        assert positions is not None  # noqa: S101 - `check` has refused it
        orders = [np.argsort(column, kind="stable") for column in positions.T]
        columns, values = _smoothed_numbers(evidence, orders)
        posteriors = [
            _smoothed_categories(parts, orders, evidence.knowledge)
            for parts in evidence.attributes().values()
            if parts[0].size <= _MAX_CATEGORIES
        ]
        whole = Estimate(self.name, columns, values, tuple(posteriors))
        sorted_positions = positions[orders[0], 0]

        def estimate(some: Evidence) -> Estimate:
            wanted = some.positions
            assert wanted is not None  # noqa: S101 - records of the same copies
            found_at = np.searchsorted(sorted_positions, wanted[:, 0]).clip(0, len(sorted_positions) - 1)
            return whole.take(orders[0][found_at])

        return estimate


def _smoothed_numbers(evidence: Evidence, orders: Sequence[Rows]) -> tuple[tuple[str, ...], Floats]:
    """The estimates of all numbers, and their columns."""
    if not evidence.numbers:
        return (), np.empty((evidence.rows, 0))
    pooled = pool(evidence.numbers)
    values = pooled.apply(evidence.numbers)
    centre = complete_or_imputed(values).mean(axis=0)
    missing = np.isnan(values)
    filled = np.where(missing, centre, values)
    count = max(1, _MAX_INPUTS // (len(orders) * filled.shape[1]))
    inputs = np.hstack([_neighbour_means(filled, order, width) for order in orders for width in _WIDTHS[-count:]])
    training = np.linspace(0, len(filled) - 1, min(len(filled), _TRAINING)).astype(np.int64)
    mean = ridge_regression(inputs[training], filled[training])(inputs)
    around = filled - mean
    local = statistics(pooled.columns, around, pooled.covariance, Knowledge())
    estimates = mean + around @ linear_gain(local.covariance, pooled.covariance).T
    return pooled.columns, np.where(missing, np.nan, estimates)


def _neighbour_means(values: Floats, order: Rows, width: int) -> Floats:
    """For each record the mean of up to `width` records before and after it in an order, without itself."""
    ordered, rows = values[order], np.arange(len(order))
    sums = np.vstack([np.zeros(values.shape[1]), np.cumsum(ordered, axis=0)])
    first, last = np.maximum(rows - width, 0), np.minimum(rows + width + 1, len(order))
    out = np.empty_like(ordered)
    out[order] = (sums[last] - sums[first] - ordered) / np.maximum(last - first - 1, 1)[:, None]
    return out


def _smoothed_categories(parts: Sequence[Categories], orders: Sequence[Rows], knowledge: Knowledge) -> Posterior:
    """The posterior of an attribute with the local prior under which the copies are the most likely, if one is."""
    prior = attribute_prior(parts[0], knowledge)
    posterior = stated_posterior(parts, prior)
    candidates = [prior[None, :], *(_local_prior(parts[0], prior, order, w) for order in orders for w in _WIDTHS[1:])]
    local = max(candidates, key=lambda candidate: _likelihood(parts[0], candidate))
    ratios = np.ones((len(posterior.values), len(prior)))
    for shown, ratio in zip(posterior.values.T, posterior.likelihood_ratios.T, strict=True):
        rows = np.flatnonzero(shown >= 0)
        ratios[rows, shown[rows]] = ratio[rows]
    relative = local / np.maximum(prior, 1e-300)
    everything = np.tile(np.arange(len(prior)), (len(ratios), 1))
    return replace(posterior, values=everything, likelihood_ratios=ratios * relative)


def _local_prior(part: Categories, prior: Floats, order: Rows, width: int) -> Floats:
    """The distribution of the categories of a record's neighbours before they were replaced, shrunk to the overall one.

    Of the neighbours' categories a share `p` was retained, the others are uniform (xiao2009, eq. 1).
    """
    retention, size = part.model.retention, len(prior)
    shown = np.where(part.codes[:, None] == np.arange(size), 1.0, 0.0)
    found = (_neighbour_means(shown, order, width) - (1 - retention) / size) / retention
    weight = 2 * width * retention**2  # about so many records would tell as much without replacement
    mixed = (weight * np.maximum(found, 0) + prior) / (weight + 1)
    local: Floats = mixed / mixed.sum(axis=1, keepdims=True)
    return local


def _likelihood(part: Categories, local: Floats) -> float:
    """The mean log-likelihood of the categories shown, none of which was used for the prior of its own record."""
    known = np.flatnonzero(part.codes >= 0)
    priors = np.broadcast_to(local, (len(part.codes), local.shape[1]))[known, part.codes[known]]
    retention = part.model.retention
    return float(np.log(retention * priors + (1 - retention) / local.shape[1]).mean()) if len(known) else 0.0
