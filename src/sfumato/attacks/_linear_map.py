"""Attacks on turned records: what is common to all of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks import Attack, Estimate, Evidence, Guess, MappedRows, Records
from sfumato.attacks.evidence.statistics import complete
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation

Back = Callable[[Floats], Floats]
"""From turned rows to the records that they were, before they were turned."""


@dataclass(frozen=True)
class TrainingSet:
    """What an attack on turned records has."""

    copy: MappedRows
    rows: Floats
    """Released, without missing values."""
    records: Floats
    """Of the original, as they are before they are turned: known ones, or a sample."""

    @property
    def model(self) -> Rotation:
        """How the copy was made."""
        return self.copy.model


class LinearMapAttack(Attack):
    """An attack that turns one copy back: of several on one path, the most faithful."""

    supports = frozenset({Rotation.kind, Projection.kind})
    pools = False
    whole = True
    needs_known = True

    @abc.abstractmethod
    def learn(self, lesson: TrainingSet) -> tuple[Back, Mapping[str, Any]]:
        """How to turn rows back, and what there is to say of it."""

    @abc.abstractmethod
    def told(self, evidence: Evidence) -> Records | None:
        """The records that it learns from, of all that is known."""

    def prepare(self, evidence: Evidence) -> Guess:
        """Choose the copy, then learn."""
        place = min(range(len(evidence.turned)), key=lambda i: evidence.turned[i].model.noise)
        copy = evidence.turned[place]
        told = self.told(evidence)
        if told is None:
            raise AttackError(f"the attack {self.name!r} learns from records that it knows; declare some")
        records = complete(copy.placed(told.numbers(copy.model.sources)))
        rows = complete(copy.values)
        if len(rows) < 2 or not len(records):
            raise AttackError(f"the attack {self.name!r} needs records without missing numbers, and there are none")
        back, explanation = self.learn(TrainingSet(copy, rows, records))

        def guess(some: Evidence) -> Estimate:
            part = some.turned[place]
            missing = np.isnan(part.values).any(axis=1)
            found = np.full((some.rows, len(part.model.sources)), np.nan)
            found[~missing] = part.restored(back(part.values[~missing]))
            return Estimate(self.name, part.model.sources, found, explanation=explanation)

        return guess
