"""Latent-class attack: one distribution of numbers and categories together, fitted behind the known noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack, Posterior
from sfumato.attacks._dependent_columns import fit_groups
from sfumato.attacks._mixed_records import MixedRecords
from sfumato.attacks._parameters import require_at_least
from sfumato.attacks.evidence.prior import attribute_prior
from sfumato.attacks.evidence.statistics import column_means
from sfumato.kernels import Floats
from sfumato.kernels.latent_class import Channel, LatentClasses, Observed, fit
from sfumato.kernels.marginal_atoms import Atoms, find_atoms
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement

_FEWEST = 3000
"""The fewest records, of those that there are, to which the classes of one group of columns are fitted."""

_MOST_COMPLETE = 0.8
"""The least share of complete records that stands for all."""


@dataclass(frozen=True, kw_only=True)
class LatentClass(Attack):
    """The posterior under latent classes of whole records, numbers, categories and public columns together.

    Within a class numbers are normal, with atoms where a column has them, and categories independent. The classes are
    fitted to the copies and the published models alone, and separately for each group of columns that
    depend on each other; of several copies on one path the best is used.
    """

    reference = "latent class analysis (Lazarsfeld and Henry 1968) behind the noise of li2012 and xiao2009, eq. 1"
    cost = 4.0
    supports = frozenset({GaussianNoise.kind, UniformReplacement.kind})
    combines_copies = False
    example = {"classes": 6, "iterations": 12}
    imputes_missing = True
    unit_tolerance = 0.05  # clusters break ties in another way
    classes: int = 32
    """The number of classes at first; those that lose their records are dropped."""
    iterations: int = 40
    """The most iterations of EM."""
    rows: int = 8_000
    """The largest number of records that the classes are fitted to."""

    def __post_init__(self) -> None:
        require_at_least("classes", self.classes, 1)
        require_at_least("iterations", self.iterations, 1)
        require_at_least("rows", self.rows, 50)

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Fit classes to each group of columns that depend on each other."""
        return fit_groups(evidence, self._fit, self.name)

    def _fit(self, evidence: Evidence, groups: int) -> FittedAttack:
        """Fit the classes, and find the atoms of each column."""
        rows = max(self.rows // groups, min(self.rows, _FEWEST))
        view = MixedRecords.of(evidence)
        observed = view.observed(evidence)
        channel = view.channel
        model = fit(_training(observed, channel, rows), channel, self.classes, self.iterations)
        atoms = _atoms(observed, view, model)
        priors = {part.model.columns: attribute_prior(part, evidence.knowledge) for part in view.attributes}

        def estimate(some: Evidence) -> Estimate:
            shown = view.observed(some)
            classes = model.responsibilities(shown, channel)[0]
            posteriors = [
                Posterior.dense(
                    part.model, priors[part.model.columns], model.category_posterior(shown, classes, channel, i)
                )
                for i, part in enumerate(view.attributes)
            ]
            return Estimate(self.name, view.columns, _numbers(view, model, shown, classes, atoms), tuple(posteriors))

        return estimate


def _training(observed: Observed, channel: Channel, most: int) -> Observed:
    """Records to fit to, without missing numbers: complete ones if they are most, else all.

    A missing number is replaced by the mean with noise, as if the original did not vary where it is missing: complete
    records may be of one kind only.
    """
    complete = np.flatnonzero(~np.isnan(observed.numbers).any(axis=1))
    if len(complete) < max(50, 10 * observed.numbers.shape[1], _MOST_COMPLETE * len(observed)):
        noise = np.random.default_rng(0).normal(size=observed.numbers.shape) * np.sqrt(np.diag(channel.noise))
        filled = np.where(np.isnan(observed.numbers), column_means(observed.numbers) + noise, observed.numbers)
        observed, complete = Observed(filled, observed.codes), np.arange(len(observed))
    return observed.take(complete[:: max(len(complete) // most, 1)][:most])


def _atoms(observed: Observed, view: MixedRecords, model: LatentClasses) -> dict[int, Atoms]:
    """The atoms of the columns that have some."""
    found = {}
    for i in range(len(view.columns)):
        values = observed.numbers[:, i]
        values = values[~np.isnan(values)][:20_000]
        deviation = float(np.sqrt(view.channel.noise[i, i]))
        atoms = find_atoms(
            values, deviation, float(view.steps[i]), model.weights, model.means[:, i], model.covariances[:, i, i]
        )
        if atoms is not None:
            found[i] = atoms
    return found


def _numbers(
    view: MixedRecords, model: LatentClasses, shown: Observed, classes: Floats, atoms: dict[int, Atoms]
) -> Floats:
    """The posterior mean of each number, in its own unit."""
    size = len(view.columns)
    out = np.empty((len(shown), size))
    if not size:
        return out
    for rows, posterior in model.number_posteriors(shown, classes, view.channel):
        out[rows] = posterior.mean()[:, :size]
        for i, one in atoms.items():
            out[rows, i] = one.posterior_mean(posterior, i)
    estimates: Floats = out * view.units[:size]
    return estimates
