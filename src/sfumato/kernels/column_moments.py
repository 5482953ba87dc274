"""Means and deviations of columns of numbers in which some are missing."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats


def column_means(values: Floats) -> Floats:
    """The mean of the values of each column that are not missing; 0 where all are missing."""
    present = ~np.isnan(values)
    means: Floats = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return means


def column_units(values: Floats) -> Floats:
    """The deviation of each column, and 1 for one that does not vary."""
    deviations = np.nan_to_num(column_deviations(values))
    return np.where(deviations > 0, deviations, 1.0)


def column_deviations(values: Floats) -> Floats:
    """The standard deviation of the values of each column that are not missing; 0 where there are fewer than two."""
    present = ~np.isnan(values)
    squares = np.where(present, (values - column_means(values)) ** 2, 0.0).sum(axis=0)
    deviations: Floats = np.sqrt(squares / np.maximum(present.sum(axis=0) - 1, 1))
    return deviations
