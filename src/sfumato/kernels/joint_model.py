"""The joint model: one distribution of whole records, numbers and categories together, fitted behind the known noise.

Attacks read from it what a record is likely to be; miners draw from it what all records may have been.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.class_estimation import fit, fit_to_convergence
from sfumato.kernels.column_moments import column_means
from sfumato.kernels.latent_class import Channel, LatentClasses, Observed
from sfumato.kernels.marginal_atoms import Atoms, find_atoms
from sfumato.kernels.mixed_records import MixedRecords
from sfumato.kernels.posterior_draws import draw_records

CLASSES, ITERATIONS, ROWS = 32, 40, 8_000
"""The number of classes at first, the most iterations of EM, and the most records that they are fitted to."""

_UNBIASED_CLASSES, _UNTIL_CONVERGED, _FROM_OTHERS = 16, 300, 120
"""Where classes shall have no bias: their number, and the most iterations from the start and from other classes."""

_MOST_COMPLETE = 0.8
"""The least share of complete records that stands for all."""

_ATOMS_FROM = 20_000
"""The most records by which atoms are found."""


@dataclass(frozen=True)
class JointModel:
    """Latent classes of records: numbers are normal within a class, with atoms, and categories independent."""

    records: MixedRecords
    classes: LatentClasses
    atoms: dict[int, Atoms]
    """The atoms of the columns that have some."""

    @classmethod
    def fit(
        cls,
        records: MixedRecords,
        observed: Observed,
        classes: int = CLASSES,
        iterations: int = ITERATIONS,
        rows: int = ROWS,
    ) -> JointModel:
        """The likeliest classes behind some of the records that are observed."""
        channel = records.channel
        model = fit(_training(observed, channel, rows), channel, classes, iterations, records.special)
        return cls(records, model, _atoms(observed, records, model))

    @classmethod
    def converged(cls, records: MixedRecords, observed: Observed, start: JointModel | None = None) -> JointModel:
        """Classes without bias, from which records can be drawn; from those of other records, if some are given."""
        channel, iterations = records.channel, _UNTIL_CONVERGED if start is None else _FROM_OTHERS
        training = _training(observed, channel, ROWS)
        first = None if start is None else start.classes
        model = fit_to_convergence(training, channel, _UNBIASED_CLASSES, iterations, first, records.special)
        return cls(records, model, _atoms(observed, records, model))

    def numbers(self, shown: Observed, classes: Floats) -> Floats:
        """The posterior mean of each number in its own unit, given the probability of each class."""
        size = len(self.records.steps)
        out = np.empty((len(shown), size))
        if not size:
            return out
        for rows, posterior in self.classes.number_posteriors(shown, classes, self.records.channel):
            out[rows] = posterior.mean()[:, :size]
            for i, one in self.atoms.items():
                out[rows, i] = one.posterior_mean(posterior, i)
        estimates: Floats = out * self.records.units[:size]
        return estimates

    def draw(self, shown: Observed, rng: np.random.Generator) -> Observed:
        """Records that may have been the originals of those that are shown, in their own units."""
        drawn = draw_records(self.classes, shown, self.records.channel, self.atoms, rng)
        return Observed(drawn.numbers * self.records.units, drawn.codes)


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


def _atoms(observed: Observed, records: MixedRecords, model: LatentClasses) -> dict[int, Atoms]:
    """The atoms of the columns that have some, where they are not stated."""
    found = {}
    stated = {i for i, values in enumerate(records.special) if values is not None}
    for i in sorted({*range(len(records.steps))} - stated):
        values = observed.numbers[:, i]
        values = values[~np.isnan(values)][:_ATOMS_FROM]
        deviation = float(np.sqrt(records.channel.noise[i, i]))
        atoms = find_atoms(
            values, deviation, float(records.steps[i]), model.weights, model.means[:, i], model.covariances[:, i, i]
        )
        if atoms is not None:
            found[i] = atoms
    return found
