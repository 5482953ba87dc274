"""Estimates: an attack's guess of every number, and its posterior distribution of every category."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.models import Model
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.pages.described import Described, Description, counted

_LARGEST_GROUP = 1 << 22
"""The largest number of categories of a joint group whose marginal distributions are computed."""


@dataclass(frozen=True)
class Posterior:
    """The posterior distribution of one categorical attribute of every record, stored sparsely.

    The probability of a category is proportional to its prior times its likelihood ratio. The ratio is 1 except for the
    few categories that the copies of a record show, so that a domain of any size can be represented.
    """

    model: UniformReplacement
    prior: Floats
    values: Rows
    """The categories that the copies show, one row per record; -1 where there is none."""
    likelihood_ratios: Floats
    """How many times as likely the copies are under each of these categories as under one that no copy shows."""

    @classmethod
    def dense(cls, model: UniformReplacement, prior: Floats, probabilities: Floats) -> Posterior:
        """The posterior whose probabilities of all categories are given, one row per record."""
        values = np.broadcast_to(np.arange(len(prior)), probabilities.shape)
        return cls(model, prior, values, np.maximum(probabilities / np.maximum(prior, 1e-300), 1e-12))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the attribute."""
        return self.model.columns

    def probability(self, codes: Rows) -> Floats:
        """The posterior probability of these categories, one per record (xiao2009, eq. 25)."""
        prior = np.where(self.values >= 0, self.prior[self.values], 0.0)
        total = 1 + (prior * (self.likelihood_ratios - 1)).sum(axis=1)
        ratio = 1 + ((self.values == codes[:, None]) * (self.likelihood_ratios - 1)).sum(axis=1)
        return np.where(codes >= 0, self.prior[codes] * ratio / total, np.nan)

    def marginals(self) -> list[Posterior]:
        """The marginal posterior distribution of each column of a joint group."""
        if len(self.columns) == 1 or len(self.prior) > _LARGEST_GROUP:
            return []
        excess = np.where(self.values >= 0, self.prior[self.values], 0.0) * (self.likelihood_ratios - 1)
        marginals = []
        for i, name in enumerate(self.columns):
            codes = np.where(self.values >= 0, marginal_codes(self.values, self.model, i), -1)
            every = marginal_codes(np.arange(len(self.prior)), self.model, i)
            prior = np.bincount(every, self.prior).astype(np.float64)
            mass = sum(np.where(codes == codes[:, [j]], excess[:, [j]], 0.0) for j in range(codes.shape[1]))
            for j in range(codes.shape[1] - 1, 0, -1):  # a category that two copies show is counted once
                codes[(codes[:, :j] == codes[:, j : j + 1]).any(axis=1), j] = -1
            ratios = np.where(codes >= 0, 1 + mass / np.maximum(prior[codes], 1e-300), 1.0)
            marginals.append(Posterior(self.model.narrowed([name]), prior, codes, ratios))
        return marginals

    def mode(self) -> Rows:
        """The most probable category of each record (maximum a posteriori)."""
        commonest = int(self.prior.argmax())  # of the categories that no copy shows, the most probable one
        density = np.where(self.values >= 0, self.prior[self.values] * self.likelihood_ratios, -1.0)
        best = density.argmax(axis=1)
        rows = np.arange(len(self.values))
        candidate: Rows = self.values[rows, best]
        return np.where(density[rows, best] >= self.prior[commonest], candidate, commonest)


def marginal_codes(codes: Rows, model: UniformReplacement, column: int) -> Rows:
    """The codes of one column of a joint group, from those of the group."""
    for domain in reversed(model.domains[column + 1 :]):
        codes = codes // (int(domain["count"]) + model.perturbs_null)
    return codes % (int(model.domains[column]["count"]) + model.perturbs_null)


@dataclass(frozen=True, repr=False)
class Estimate(Described):
    """The estimate of the original by one attack, one row per record in the order of the copies."""

    attack: str
    columns: tuple[str, ...]
    values: Floats
    """Estimates of the numeric columns; NaN where the copies have no value."""
    posteriors: tuple[Posterior, ...] = ()
    """The posterior distribution of each categorical attribute."""
    records: Any = None
    """The identifier columns of the records, where the copies contain them."""
    in_secret_order: bool = False
    """Whether the copies, and so the estimates, are in an order that only the key tells."""
    models: tuple[Model, ...] = ()
    """The models of the copies, which define what of the truth is compared with the estimate."""
    explanation: Mapping[str, Any] = field(default_factory=dict)
    """Diagnostics of the attack, such as how many known records were linked."""

    def __len__(self) -> int:
        return len(self.values)

    def description(self) -> Description:
        """What notebooks and prompts show."""
        rows = [(name, "number") for name in self.columns]
        rows += [(" x ".join(one.columns), f"{len(one.prior):,} categories") for one in self.posteriors]
        facts = (f"{len(self):,} records", counted(len(rows), "column"))
        return Description(f"Estimate by {self.attack!r}", facts, ("column", "estimated"), rows)

    def take(self, rows: Rows) -> Estimate:
        """The estimate of the records in these rows."""
        posteriors = tuple(
            replace(one, values=one.values[rows], likelihood_ratios=one.likelihood_ratios[rows])
            for one in self.posteriors
        )
        return replace(self, values=self.values[rows], posteriors=posteriors, records=None)


def concatenate(parts: list[Estimate]) -> Estimate:
    """The estimates of consecutive batches of records, as one."""
    first = parts[0]
    posteriors = tuple(
        Posterior(
            posterior.model,
            posterior.prior,
            np.concatenate([part.posteriors[i].values for part in parts]),
            np.concatenate([part.posteriors[i].likelihood_ratios for part in parts]),
        )
        for i, posterior in enumerate(first.posteriors)
    )
    values = np.concatenate([part.values for part in parts])
    return Estimate(first.attack, first.columns, values, posteriors, explanation=first.explanation)
