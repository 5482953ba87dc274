"""Attacks on rotated and projected records: the base class that chooses the copy and the training set."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, FittedAttack, MappedRows, Records
from sfumato.attacks.evidence.statistics import complete_records
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation

Inverse = Callable[[Floats], Floats]
"""An estimate of the inverse map: from released rows to standardised records."""


@dataclass(frozen=True)
class TrainingSet:
    """The rows of a copy, and original records from which the map between the two is estimated."""

    copy: MappedRows
    rows: Floats
    """The released rows without missing values."""
    records: Floats
    """Standardised original records, known ones or a sample, without missing values."""
    images: Floats | None = None
    """The rows of the known records, where the attacker knows which ones they are."""

    @property
    def model(self) -> Rotation:
        """The public model of the copy."""
        return self.copy.model


class LinearMapAttack(Attack):
    """An attack that inverts the linear map of one copy: of several copies, the one with the least noise."""

    supports = frozenset({Rotation.kind, Projection.kind})
    combines_copies = False
    needs_all_records = True
    needs_known_records = True

    @abc.abstractmethod
    def fit_inverse(self, training: TrainingSet) -> tuple[Inverse, Mapping[str, Any]]:
        """Estimate the inverse of the map, and report diagnostics of the fit."""

    def training_records(self, evidence: Evidence) -> Records | None:
        """The original records to train on: by default the sample or, without one, the known records."""
        return evidence.knowledge.records

    def fit(self, evidence: Evidence) -> FittedAttack:
        """Choose the copy and the training set, and fit the inverse map."""
        best = min(range(len(evidence.linear_maps)), key=lambda i: evidence.linear_maps[i].model.noise)
        copy = evidence.linear_maps[best]
        known = self.training_records(evidence)
        if known is None:
            raise self.lacks_known_records()
        records, images = copy.standardised(known.numbers(copy.model.sources)), None
        if known is evidence.knowledge.known and evidence.knowledge.known_rows is not None:
            images = copy.values[evidence.knowledge.known_rows]
            both = complete_records(np.hstack([records, images]))
            records, images = both[:, : records.shape[1]], both[:, records.shape[1] :]
        records, rows = complete_records(records), complete_records(copy.values)
        if len(rows) < 2 or not len(records):
            raise AttackError(f"the attack {self.name!r} needs records without missing numbers, and there are none")
        inverse, explanation = self.fit_inverse(TrainingSet(copy, rows, records, images))

        def estimate(some: Evidence) -> Estimate:
            part = some.linear_maps[best]
            missing = np.isnan(part.values).any(axis=1)
            values = np.full((some.rows, len(part.model.sources)), np.nan)
            values[~missing] = part.original_units(inverse(part.values[~missing]))
            return Estimate(self.name, part.model.sources, values, models=(part.model,), explanation=explanation)

        return estimate
