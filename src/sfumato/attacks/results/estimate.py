"""What an attack says: a guess of every number, and a belief about every category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.models import Model
from sfumato.models.uniform_replacement import UniformReplacement

_MOST = 1 << 22
"""Values of a joint group that are summed up to those of its columns."""


@dataclass(frozen=True)
class Belief:
    """What is believed about one attribute of every record, as far as it differs from the prior.

    A value's probability is its prior times its weight, over the sum of these: the weight is 1 but for the few values
    that a record's copies show, so that no domain is too large.
    """

    model: UniformReplacement
    prior: Floats
    values: Rows
    """A record a row: the values shown, -1 where there is none."""
    weights: Floats
    """How many times as likely each of them is as one that is not shown."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The attribute."""
        return self.model.columns

    def probability(self, codes: Rows) -> Floats:
        """The probability given to these values, one a record (xiao2009, eq. 25)."""
        chance = np.where(self.values >= 0, self.prior[self.values], 0.0)
        total = 1 + (chance * (self.weights - 1)).sum(axis=1)
        weight = 1 + ((self.values == codes[:, None]) * (self.weights - 1)).sum(axis=1)
        return np.where(codes >= 0, self.prior[codes] * weight / total, np.nan)

    def marginals(self) -> list[Belief]:
        """What is believed about each column of a joint group by itself."""
        if len(self.columns) == 1 or len(self.prior) > _MOST:
            return []
        shown = np.where(self.values >= 0, self.prior[self.values], 0.0) * (self.weights - 1)
        found = []
        for i, name in enumerate(self.columns):
            codes = np.where(self.values >= 0, column_of(self.values, self.model, i), -1)
            prior = np.bincount(column_of(np.arange(len(self.prior)), self.model, i), self.prior).astype(np.float64)
            mass = sum(np.where(codes == codes[:, [j]], shown[:, [j]], 0.0) for j in range(codes.shape[1]))
            for j in range(codes.shape[1] - 1, 0, -1):  # a value shown twice is counted once
                codes[(codes[:, :j] == codes[:, j : j + 1]).any(axis=1), j] = -1
            weights = np.where(codes >= 0, 1 + mass / np.maximum(prior[codes], 1e-300), 1.0)
            found.append(Belief(self.model.narrowed([name]), prior, codes, weights))
        return found

    def guess(self) -> Rows:
        """The likeliest value of each record. No value weighs less than the commonest one that is not shown."""
        commonest = int(self.prior.argmax())
        chance = np.where(self.values >= 0, self.prior[self.values] * self.weights, -1.0)
        best = chance.argmax(axis=1)
        rows = np.arange(len(self.values))
        shown: Rows = self.values[rows, best]
        return np.where(chance[rows, best] >= self.prior[commonest], shown, commonest)


def column_of(codes: Rows, model: UniformReplacement, column: int) -> Rows:
    """The codes of one column of a joint group, from those of the group."""
    for domain in reversed(model.domains[column + 1 :]):
        codes = codes // (int(domain["count"]) + model.perturbs_null)
    return codes % (int(model.domains[column]["count"]) + model.perturbs_null)


@dataclass(frozen=True)
class Estimate:
    """The guesses of one attack, a record a row in the order of the copies."""

    attack: str
    columns: tuple[str, ...]
    values: Floats
    """Guesses of numbers; NaN where the copies show none."""
    beliefs: tuple[Belief, ...] = ()
    records: Any = None
    """The columns that name the records, where the copies show them."""
    models: tuple[Model, ...] = ()
    """Of the copies: they say what of the truth the copies are about."""
    explanation: Mapping[str, Any] = field(default_factory=dict)
    """What the attack can say of itself: how far it came, and why."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Rows) -> Estimate:
        """The estimate of some records."""
        beliefs = tuple(replace(b, values=b.values[rows], weights=b.weights[rows]) for b in self.beliefs)
        return replace(self, values=self.values[rows], beliefs=beliefs, records=None)


def joined(parts: list[Estimate]) -> Estimate:
    """The estimates of some batches as one."""
    first = parts[0]
    beliefs = tuple(
        Belief(
            belief.model,
            belief.prior,
            np.concatenate([part.beliefs[i].values for part in parts]),
            np.concatenate([part.beliefs[i].weights for part in parts]),
        )
        for i, belief in enumerate(first.beliefs)
    )
    values = np.concatenate([part.values for part in parts])
    return Estimate(first.attack, first.columns, values, beliefs, explanation=first.explanation)
