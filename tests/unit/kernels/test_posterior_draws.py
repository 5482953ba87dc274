"""Draws of originals: they have the posterior of a normal distribution, of replaced categories, and of atoms.

All draws are fixed, so that these tests have no false alarms; tolerances are six standard errors.
"""

from __future__ import annotations

import numpy as np

from sfumato.kernels.latent_class import Channel, LatentClasses, Observed
from sfumato.kernels.marginal_atoms import Atoms
from sfumato.kernels.posterior_draws import draw_records

ROWS = 40_000
ERROR = 6 / np.sqrt(ROWS)


def test_numbers_of_one_class_have_their_normal_posterior() -> None:
    """Of two columns, the second is missing: it is drawn given the first."""
    covariance, noise = np.array([[1.0, 0.6], [0.6, 1.0]]), np.diag([0.5, 0.5])
    model = LatentClasses(np.ones(1), np.array([[1.0, 2.0]]), covariance[None], ())
    shown = Observed(np.tile([2.5, np.nan], (ROWS, 1)), ())
    drawn = draw_records(model, shown, Channel(noise, (), ()), {}, np.random.default_rng(1)).numbers
    gain = covariance[:, 0] / 1.5
    assert np.abs(drawn.mean(axis=0) - ([1.0, 2.0] + gain * 1.5)).max() < ERROR
    assert np.abs(np.cov(drawn.T) - (covariance - np.outer(gain, covariance[0]))).max() < 2 * ERROR


def test_categories_have_the_posterior_of_replacement() -> None:
    """Two classes that differ in one attribute: what is shown tells the class, and the class tells the other."""
    shares = (np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
    model = LatentClasses(np.array([0.5, 0.5]), np.zeros((2, 0)), np.zeros((2, 0, 0)), shares)
    channel = Channel(np.zeros((0, 0)), (0.6, 0.3), (2, 3))
    shown = Observed(np.empty((ROWS, 0)), (np.zeros(ROWS, np.int64), np.full(ROWS, -1)))
    drawn = draw_records(model, shown, channel, {}, np.random.default_rng(2)).codes
    classes = model.responsibilities(shown, channel)[0]
    exact = model.category_posterior(shown, classes, channel, 0)
    assert np.abs(np.bincount(drawn[0]) / ROWS - exact[0]).max() < ERROR
    assert set(drawn[1]) == {-1}  # a category that is missing stays so


def test_atoms_are_drawn_as_often_as_they_are_likely() -> None:
    atoms = Atoms(np.array([0.0, 1.0, 2.0, 3.0]), np.array([50.0, 1.0, 1.0, 20.0]), 0.0)
    drawn = atoms.draw(np.full(ROWS, 1.2), 0.8, np.random.default_rng(3))
    weights = atoms.ratios * np.exp(-0.5 * (atoms.points - 1.2) ** 2 / 0.8)
    for point, share in zip(atoms.points, weights / weights.sum(), strict=True):
        assert abs(np.mean(drawn == point) - share) < ERROR


def test_a_column_with_atoms_is_drawn_given_the_others() -> None:
    """Two columns that are nearly one, of which the first lies on 0 and 1 alone."""
    covariance = np.array([[0.25, 0.24], [0.24, 0.25]])
    model = LatentClasses(np.ones(1), np.full((1, 2), 0.5), covariance[None], ())
    shown = Observed(np.random.default_rng(4).normal(0.5, 1.1, (ROWS, 2)), ())
    atoms = {0: Atoms(np.array([0.0, 1.0]), np.ones(2), 0.0)}
    drawn = draw_records(model, shown, Channel(np.eye(2), (), ()), atoms, np.random.default_rng(5)).numbers
    assert set(drawn[:, 0]) == {0.0, 1.0}
    assert np.corrcoef(drawn[:, 0], drawn[:, 1]).min() > 0.7
