"""Simulated rotations and projections: what a copy of some records could look like, without any key."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Floats
from sfumato.kernels.linear_map import random_orthogonal
from sfumato.models.rotation import Rotation


def simulated_rows(records: Floats, model: Rotation, seed: int) -> Floats:
    """The rows of a copy of these records, with a map and noise drawn from a seed.

    Args:
        records: the inputs of the linear map: centred, scaled and without missing values.
        model: the public model of the copy.
        seed: what the map and the noise depend on.

    """
    rng = np.random.default_rng(seed)
    size, count = records.shape[1], len(model.columns)
    normals = rng.normal(size=(count, size))
    matrix = random_orthogonal(normals) if model.preserves_distances else normals / np.sqrt(count)
    if model.noise:
        deviations = np.sqrt([line[-1] for line in model.covariance]) / np.array(model.unit)
        records = records + rng.normal(size=records.shape) * deviations
    shift = 10 * records.std() * rng.normal(size=count) if model.translated else np.zeros(count)
    rows: Floats = records @ matrix.T + shift
    return rows
