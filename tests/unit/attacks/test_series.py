"""Series: cycles, neighbours in time and tables of persons and years predict a record, and none sees its own noise."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.attacks._series import Order, Panel, panels, public_orders, shifted, spectral_prediction
from sfumato.kernels import Floats
from sfumato.kernels.forward_regression import forward_regression

ROWS = 1200


def _explained(found: Floats, truth: Floats) -> float:
    return float(1 - ((found - truth) ** 2).mean() / truth.var())


def _tide(rows: int = ROWS) -> Floats:
    """Two cycles that no number of moments holds a whole number of times."""
    at = np.arange(rows)
    level: Floats = np.cos(2 * np.pi * at / 12.42) + 0.5 * np.cos(2 * np.pi * at / 25.82 + 1)
    return level


@pytest.mark.parametrize("share", [1.0, 0.9])
def test_cycles_are_found_behind_the_noise(rng: np.random.Generator, share: float) -> None:
    """In a series with gaps, too."""
    shown = np.flatnonzero(rng.random(ROWS) < share)
    shuffled = rng.permutation(shown)
    truth, noise = _tide()[shuffled], rng.normal(size=len(shown))
    found = spectral_prediction(Order.of(shuffled), (truth + noise)[:, None], np.ones(1))[:, 0]
    assert _explained(found, truth) > 0.93  # the noise has 1.6 times the variance of the series
    assert abs(np.corrcoef(found, noise)[0, 1]) < 0.15  # false alarm: 5 standard errors


def test_a_slow_series_is_smoothed(rng: np.random.Generator) -> None:
    truth = np.cumsum(rng.normal(size=ROWS))
    truth = (truth - truth.mean()) / truth.std()
    found = spectral_prediction(Order.of(np.arange(ROWS)), (truth + rng.normal(size=ROWS))[:, None], np.ones(1))[:, 0]
    assert _explained(found, truth) > 0.8


def test_of_noise_nothing_is_predicted(rng: np.random.Generator) -> None:
    """The planted fault in the same breath: a filter that keeps the record itself follows its noise."""
    noise = rng.normal(size=(4 * ROWS, 1))
    found = spectral_prediction(Order.of(np.arange(len(noise))), noise, np.ones(1))
    assert (found**2).mean() < 0.05
    assert abs(float((found * noise).mean())) < 0.05
    kept = spectral_prediction(Order.of(np.arange(len(noise))), noise, np.full(1, 0.2))  # as if there were a signal
    assert (kept**2).mean() < 0.2


def test_persons_are_predicted_from_their_other_years(rng: np.random.Generator) -> None:
    persons, years = np.divmod(rng.permutation(400 * 6), 6)
    slope, level = rng.normal(size=(2, 400))
    truth = np.column_stack([level[persons] + (years - 2.5) * slope[persons] * k for k in (0.5, -0.5)])
    shared = rng.normal(size=(len(truth), 1))  # columns of one record have noise that resembles
    noise = 0.7 * shared + 0.7 * rng.normal(size=truth.shape)
    found = Panel(persons, years).prediction(truth + noise)
    assert min(_explained(found[:, k], truth[:, k]) for k in range(2)) > 0.7
    assert max(abs(np.corrcoef(found[:, k], noise[:, k])[0, 1]) for k in range(2)) < 0.1
    moved = (truth + noise).copy()
    moved[7] += 100.0
    changed = np.abs(Panel(persons, years).prediction(moved) - found).max(axis=1)
    assert changed[7] < 20.0  # only by way of the mean and the covariance of all


def test_public_columns_order_records(rng: np.random.Generator) -> None:
    """By an hour within each station, though the rows are shuffled, and not where neighbours do not resemble."""
    station, hour = np.divmod(rng.permutation(3 * 400), 400)
    level = _tide()[hour + 100 * station]
    public = np.column_stack([station, 1000.0 + 3600 * hour, rng.permutation(len(hour))])
    noisy = (level + rng.normal(size=len(level)))[:, None]
    orders = public_orders(public, noisy)
    assert orders
    best = orders[0]
    assert (np.diff(station[best.rows]) >= 0).all()
    assert (best.moments == np.arange(len(hour))).all()
    assert _explained(spectral_prediction(best, noisy, np.ones(1))[:, 0], level) > 0.6
    noise = rng.normal(size=noisy.shape)
    for order in public_orders(public, noise):  # one in several hundred times some neighbours resemble
        assert spectral_prediction(order, noise, np.ones(1)).var() < 0.1
    assert public_orders(None, noisy) == []
    assert [one.shape for one in panels(public, 1)] == [(400, 3)]  # three stations are too few to learn from


def test_neighbours_are_those_of_the_order() -> None:
    order = Order.of(np.array([30, 10, 20]))
    values = np.array([[3.0], [1.0], [2.0]])
    assert shifted(order, 1, values)[:, 0].tolist() == [0.0, 2.0, 3.0]
    assert shifted(order, -1, values)[:, 0].tolist() == [2.0, 0.0, 1.0]


def test_forward_regression_takes_what_helps_and_no_more(rng: np.random.Generator) -> None:
    """With a hundred useless inputs the prediction follows no noise: least squares on all would explain 10 % of it."""
    inputs = rng.normal(size=(1000, 103))
    inputs[:, 102] = 5.0  # a constant one
    inputs[:, 101] = inputs[:, 0]  # the same one again
    targets = np.column_stack([inputs[:, 0] - 2 * inputs[:, 1] + rng.normal(size=1000), rng.normal(size=1000)])
    found = forward_regression(inputs, targets + 7)
    fresh = rng.normal(size=(1000, 103))
    fresh[:, 101] = fresh[:, 0]
    assert np.abs(found(fresh)[:, 0] - (7 + fresh[:, 0] - 2 * fresh[:, 1])).max() < 0.6
    assert found(fresh)[:, 1].std() < 0.2
