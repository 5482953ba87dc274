"""Draws from the posterior of whole records under latent classes: what the originals may have been."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.kernels import Floats, Rows
from sfumato.kernels.category_draws import draw_categories, draw_codes
from sfumato.kernels.latent_class import Channel, LatentClasses, Observed, missing_patterns, posterior_gain
from sfumato.kernels.marginal_atoms import Atoms


def draw_records(
    model: LatentClasses, observed: Observed, channel: Channel, atoms: Mapping[int, Atoms], rng: np.random.Generator
) -> Observed:
    """One draw of the original of every record: its class, and within it numbers and categories.

    What a record does not show is drawn, too, except that a category which is missing stays so.
    """
    classes = draw_codes(model.responsibilities(observed, channel)[0], rng.random(len(observed)))
    numbers = np.empty_like(observed.numbers)
    for present, rows in missing_patterns(observed.numbers) if numbers.shape[1] else ():
        ordered = rows[np.argsort(classes[rows], kind="stable")]
        found, starts = np.unique(classes[ordered], return_index=True)
        for k, some in zip(found, np.split(ordered, starts[1:]), strict=True):
            values = observed.numbers[some][:, present]
            numbers[some] = _draw_numbers(model.means[k], model.covariances[k], values, present, channel, atoms, rng)
    codes = []
    for table, shown, retention, size in zip(
        model.shares, observed.codes, channel.retentions, channel.sizes, strict=True
    ):
        codes.append(draw_categories(table, classes, shown, retention, (1 - retention) / size, rng.random(len(shown))))
    return Observed(numbers, tuple(codes))


def _draw_numbers(
    mean: Floats,
    covariance: Floats,
    values: Floats,
    present: Rows,
    channel: Channel,
    atoms: Mapping[int, Atoms],
    rng: np.random.Generator,
) -> Floats:
    """The numbers of records of one class, of which some columns are shown."""
    gain = posterior_gain(covariance, channel.noise, present)
    means = mean + (values - mean[present]) @ gain.T
    left = covariance - gain @ covariance[present]
    spread, axes = np.linalg.eigh((left + left.T) / 2)
    spread = np.maximum(spread, 1e-12 * max(float(spread[-1]), 1e-100))
    drawn: Floats = means + rng.normal(size=means.shape) @ (axes * np.sqrt(spread)).T
    drawn[:, np.diag(covariance) == 0] = mean[np.diag(covariance) == 0]  # at a special value
    precision = (axes / spread) @ axes.T if atoms else left
    for column, one in atoms.items():
        others = np.arange(len(mean)) != column
        pull = (drawn - means)[:, others] @ precision[column, others] / precision[column, column]
        drawn[:, column] = one.draw(means[:, column] - pull, 1 / float(precision[column, column]), rng)
    return drawn
