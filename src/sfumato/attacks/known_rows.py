"""Known-rows attack: invert a rotation or projection, with noise or without, by regression on known records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks._linear_map import Inverse, LinearMapAttack, TrainingSet
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.ridge import ridge_regression


@dataclass(frozen=True, kw_only=True)
class KnownRows(LinearMapAttack):
    """Regress known records on their rows in the copy, and predict all other records.

    It needs no exact distances, so that noise and projections do not stop it, but it must be given the rows of the
    known records: they are known where copies release identifiers or keep the row order, or from another attack.
    """

    reference = "giannella2010, section VI: the map of a projection, estimated by least squares"

    def fit_inverse(self, training: TrainingSet) -> tuple[Inverse, Mapping[str, Any]]:
        if training.images is None:
            raise AttackError(
                f"the attack {self.name!r} needs the row indices of the known records; give them beside the records"
            )
        model = training.model
        inverse = regressed(training.records, training.images, noisy=model.noise > 0, translated=model.translated)
        return inverse, {"known": len(training.records), "columns": len(model.columns)}


def regressed(records: Floats, images: Floats, *, noisy: bool, translated: bool) -> Inverse:
    """The linear prediction of records from their images under a linear map.

    Without noise it is the least-squares solution of minimal norm, which is exact once the known records determine the
    map; with noise it is ridge regression.
    """
    if noisy:
        return ridge_regression(images, records)
    centres = (images.mean(axis=0), records.mean(axis=0)) if translated else (0.0, 0.0)
    weights = np.linalg.lstsq(images - centres[0], records - centres[1], rcond=1e-9)[0]
    return lambda some: (some - centres[0]) @ weights + centres[1]
