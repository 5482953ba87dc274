"""Smoothing over related records: neighbours in an order, a period apart, or with the same public value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from sfumato.attacks import Attack, AttackError, Categories, Estimate, Evidence, FittedAttack, Knowledge, Posterior
from sfumato.attacks._public_predictions import PublicPredictions
from sfumato.attacks._related_records import Related, Relations, one_hot
from sfumato.attacks.bayes import linear_gain
from sfumato.attacks.collusion import stated_posterior
from sfumato.attacks.evidence.pooling import Pool, pool
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.attacks.evidence.statistics import complete_or_imputed, statistics
from sfumato.kernels import Floats, Rows
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.forward_regression import forward_regression
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_MAX_INPUTS, _MAX_CELLS = 240, 6_000_000
"""The most numbers from which the mean of a record is predicted, and the most of all records."""

_MAX_PRIORS = 10_000_000
"""The most probabilities of local priors that are compared."""

_TRAINING = 20_000
"""The most records that the prediction is fitted to."""

_MAX_CATEGORIES = 100
"""Attributes with more categories are not smoothed."""

_PREDICTED = 12
"""The categories of attributes with at most so many are predicted from those of all related records together."""

_LEAST_PRIOR = 0.02
"""A category keeps so large a share of its overall frequency, however unlikely related records make it."""

_SIGNALS = 3
"""The most frequent categories of an attribute in which periods are looked for."""


@dataclass(frozen=True, kw_only=True)
class Smoothing(Attack):
    """The best linear estimate around a mean that related records predict.

    Related are neighbours in a known order of rows or of published ids, records a period apart, and those with the same
    value in a public column. Their noise is independent of that of the record, so that regressing its noisy values on
    averages of theirs predicts the original: the data choose the widths. So do public columns together. Categories have
    a prior of their own in each neighbourhood or group.
    """

    reference = "huang2005, section 6, with a mean predicted from related records; xiao2009, eq. 25, with a local prior"
    cost = 2.0
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    combines_copies = False
    needs_all_records = True
    unit_tolerance = 1e-3

    def check(self, evidence: Evidence) -> None:
        """Raise `AttackError` for evidence in which no records are related."""
        super().check(evidence)
        if evidence.positions is None and evidence.public is None:
            raise AttackError(
                f"the attack {self.name!r} needs copies in a known order, with published ids or with public columns, "
                "and these are in a secret one; choose another attack"
            )

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Smooth all records; estimates of some of them are looked up by their positions, or by what they show."""
        pooled = pool(evidence.numbers) if evidence.numbers else None
        values = pooled.apply(evidence.numbers) if pooled else np.empty((evidence.rows, 0))
        attributes = evidence.attributes().values()
        informed = _informed(np.where(np.isnan(values), _centre(values), values), pooled, evidence.knowledge)
        codes = one_hot([parts[0].codes for parts in attributes], _SIGNALS)
        signal = np.hstack([informed, codes.reshape(len(values), -1)])
        relations = Relations.of(evidence.positions, evidence.public, signal)
        predictions = PublicPredictions.of(evidence)
        if not relations.groups and not relations.orders and predictions is None:
            raise AttackError(f"the attack {self.name!r} needs records with a public value in common, and finds none")
        smoothed = (
            values
            if pooled is None
            else _smoothed_numbers(
                pooled,
                values,
                informed,
                _unknown(evidence),
                relations,
                np.empty((len(values), 0)) if predictions is None else predictions(evidence),
            )
        )
        posteriors = [
            _smoothed_categories(parts, relations, evidence) for parts in attributes if parts[0].size <= _MAX_CATEGORIES
        ]
        whole = Estimate(self.name, pooled.columns if pooled else (), smoothed, tuple(posteriors))
        keys = _keys(evidence, values)

        def estimate(some: Evidence) -> Estimate:
            if some is evidence:
                return whole
            own = pool(some.numbers).apply(some.numbers) if some.numbers else np.empty((some.rows, 0))
            return whole.take(_found(keys, _keys(some, own)))

        return estimate


def _informed(values: Floats, pooled: Pool | None, knowledge: Knowledge) -> Floats:
    """The noisy values, and the original ones of known records, which tell more of their neighbours."""
    if knowledge.known is None or knowledge.known_rows is None or pooled is None:
        return values
    known, informed = knowledge.known.numbers(pooled.columns), values.copy()
    informed[knowledge.known_rows] = np.where(np.isnan(known), values[knowledge.known_rows], known)
    return informed


def _unknown(evidence: Evidence) -> Rows:
    """The records whose originals the attacker does not have."""
    known = evidence.knowledge.known_rows
    return np.arange(evidence.rows) if known is None else np.delete(np.arange(evidence.rows), known)


def _keys(evidence: Evidence, values: Floats) -> Floats:
    """What a record is found by again: its position, or all that its copies show."""
    if evidence.positions is not None:
        return evidence.positions[:, :1]
    shown = [part.codes[:, None].astype(np.float64) for part in evidence.categories]
    return np.nan_to_num(np.hstack([values, *shown]), nan=-np.inf)


def _found(whole: Floats, some: Floats) -> Rows:
    """The row of each record of a part in the whole; records that show the same have the same estimate."""
    _, first, both = np.unique(np.vstack([whole, some]), axis=0, return_index=True, return_inverse=True)
    rows: Rows = first[both.ravel()[len(whole) :]]
    return rows


def _centre(values: Floats) -> Floats:
    centre: Floats = complete_or_imputed(values).mean(axis=0) if values.shape[1] else np.empty(0)
    return centre


def _smoothed_numbers(
    pooled: Pool, values: Floats, informed: Floats, unknown: Rows, relations: Relations, predicted: Floats
) -> Floats:
    """The estimates of all numbers around what related records and public columns predict."""
    mean = _from_related(informed, unknown, np.diag(pooled.covariance), relations, predicted)
    around = np.where(np.isnan(values), informed, values) - mean
    local = statistics(pooled.columns, around[unknown], pooled.covariance, Knowledge())
    estimates = mean + around @ linear_gain(local.covariance, pooled.covariance).T
    return np.where(np.isnan(values), np.nan, estimates)


def _from_related(values: Floats, unknown: Rows, noise: Floats, relations: Relations, predicted: Floats) -> Floats:
    """The mean of each noisy value, given those of all related records; learned from the unknown ones."""
    count = max(1, min(_MAX_INPUTS, _MAX_CELLS // len(values)) // values.shape[1])
    inputs = np.hstack([predicted, *islice(relations.predictions(values, noise), count)])
    training = unknown[evenly_spaced(len(unknown), _TRAINING)]
    return forward_regression(inputs[training], values[training])(inputs)


def _smoothed_categories(parts: Sequence[Categories], relations: Relations, evidence: Evidence) -> Posterior:
    """The posterior of an attribute with the local prior under which the copies are the most likely, if one is."""
    prior = attribute_prior(parts[0], evidence.knowledge)
    posterior = stated_posterior(parts, prior)
    most = max(4, _MAX_PRIORS // (len(posterior.values) * len(prior)))
    candidates = [prior[None, :], *(_local_prior(parts[0], prior, one) for one in relations.ways[:most])]
    if len(prior) <= _PREDICTED and (relations.orders or relations.panels):
        candidates.append(_predicted_prior(parts[0], prior, relations, evidence))
    local = max(candidates, key=lambda candidate: _likelihood(parts[0], candidate))
    ratios = np.ones((len(posterior.values), len(prior)))
    for shown, ratio in zip(posterior.values.T, posterior.likelihood_ratios.T, strict=True):
        rows = np.flatnonzero(shown >= 0)
        ratios[rows, shown[rows]] = ratio[rows]
    relative = local / np.maximum(prior, 1e-300)
    everything = np.tile(np.arange(len(prior)), (len(ratios), 1))
    return replace(posterior, values=everything, likelihood_ratios=ratios * relative)


def _local_prior(part: Categories, prior: Floats, one: Related) -> Floats:
    """The distribution of the categories of related records before they were replaced, shrunk to the overall one.

    Of their categories a share `p` was retained, the others are uniform (xiao2009, eq. 1).
    """
    retention, size = part.model.retention, len(prior)
    shown = np.where(part.codes[:, None] == np.arange(size), 1.0, 0.0)
    mean, counts = one.mean(shown)
    found = (mean - (1 - retention) / size) / retention
    weight = counts[:, None] * retention**2  # about so many records would tell as much without replacement
    mixed = (weight * np.maximum(found, 0) + prior) / (weight + 1)
    local: Floats = mixed / mixed.sum(axis=1, keepdims=True)
    return local


def _predicted_prior(part: Categories, prior: Floats, relations: Relations, evidence: Evidence) -> Floats:
    """The distribution of each record's category that all related records predict together.

    Whether a category is shown is a noisy number: its mean, given the original, is `p` more for that of the original
    than for others (xiao2009, eq. 1).
    """
    retention, size, knowledge = part.model.retention, len(prior), evidence.knowledge
    codes = part.codes.copy()
    if knowledge.known is not None and knowledge.known_rows is not None:
        codes[knowledge.known_rows] = knowledge.known.codes[part.model.columns]
    shown = np.where(codes[:, None] == np.arange(size), 1.0, 0.0)
    kept, other = retention + (1 - retention) / size, (1 - retention) / size
    noise = prior * kept * (1 - kept) + (1 - prior) * other * (1 - other)
    mean = _from_related(shown, _unknown(evidence), noise, relations, np.empty((len(shown), 0)))
    found = (mean - other) / retention
    mixed = np.maximum(found, _LEAST_PRIOR * prior)
    local: Floats = mixed / mixed.sum(axis=1, keepdims=True)
    return local


def _likelihood(part: Categories, local: Floats) -> float:
    """The mean log-likelihood of the categories shown, none of which was used for the prior of its own record."""
    known = np.flatnonzero(part.codes >= 0)
    priors = np.broadcast_to(local, (len(part.codes), local.shape[1]))[known, part.codes[known]]
    retention = part.model.retention
    return float(np.log(retention * priors + (1 - retention) / local.shape[1]).mean()) if len(known) else 0.0
