"""Lay a sample of the population on the turned records, and turn these back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks import Evidence, Records
from sfumato.attacks._linear_map import Back, LinearMapAttack, TrainingSet
from sfumato.attacks._parameters import at_least, one_of
from sfumato.attacks.linkage.likelihood import GaussianMixture, turned
from sfumato.attacks.linkage.principal_axes import Axes
from sfumato.attacks.linkage.signs import by_energy, by_moments
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.models.projection import Projection

_STARTS = 6
"""Mirrorings by means, and as many without, that the likeliest rotation is sought from."""

_EXHAUSTIVE = 12
"""Columns up to which all mirrorings are tried."""


@dataclass(frozen=True, kw_only=True)
class KnownSample(LinearMapAttack):
    """Match the principal axes of a sample with those of the copy, choose which way each points, and turn back.

    `method`: `energy` tries all mirrorings with a two-sample statistic, as the paper does; `moments` chooses them by
    means and third moments, in any number of dimensions; `likelihood`, the default, goes on from there to the rotation
    under which the sample is likeliest. `shift`, for copies with a translation: `centred`, the default, moves both
    means to zero; `differences` takes differences of disjoint pairs as the paper does, whose law is symmetric, so that
    it cannot tell `M` from `-M`.
    """

    reference = "giannella2010, section V, Algorithm V-B.1 and eq. 10"
    method: str = "likelihood"
    shift: str = "centred"
    components: int = 8
    """Normals in the mixture that stands for the copy's law."""

    def __post_init__(self) -> None:
        one_of("method", self.method, ("energy", "moments", "likelihood"))
        one_of("shift", self.shift, ("centred", "differences"))
        at_least("components", self.components, 1)

    def told(self, evidence: Evidence) -> Records | None:
        knowledge = evidence.knowledge
        return knowledge.known if knowledge.sample is None else knowledge.sample

    def learn(self, lesson: TrainingSet) -> tuple[Back, Mapping[str, Any]]:
        sample, rows, translated = _noisy(lesson), lesson.rows, lesson.model.translated
        if len(sample) < 3:
            raise AttackError(f"the attack {self.name!r} needs a sample of at least three records, got {len(sample)}")
        if translated and self.shift == "differences":
            matrix = self._matrix(_differences(sample), _differences(rows), lesson)
        elif translated:
            matrix = self._matrix(sample - sample.mean(axis=0), rows - rows.mean(axis=0), lesson)
        else:
            matrix = self._matrix(sample, rows, lesson)
        here, there = (part.mean(axis=0) if translated else 0.0 for part in (sample, rows))
        centre, gain = lesson.records.mean(axis=0), _gain(lesson)
        axes = Axes.of(sample)
        facts = {
            "sample": len(sample),
            "eigen-ratio": axes.eigen_ratio,
            "invariance": 0.0 if translated else axes.invariance,
        }

        def back(some: Floats) -> Floats:
            found = (some - there) @ matrix + here
            return found if gain is None else centre + (found - centre) @ gain

        return back, facts

    def _matrix(self, sample: Floats, rows: Floats, lesson: TrainingSet) -> Floats:
        """The estimate of `M`, one row a dimension of the copy."""
        size = min(sample.shape[1], rows.shape[1])
        ours, theirs = Axes.of(sample, size), Axes.of(rows, size)
        starts = [(theirs.vectors * signs) @ ours.vectors.T for signs in self._signs(ours, theirs, sample, rows)]
        square = sample.shape[1] == rows.shape[1] and not isinstance(lesson.model, Projection)
        if self.method != "likelihood" or not square:
            return starts[0]
        most = max(len(rows) // (10 * rows.shape[1] ** 2), 1)
        for components in sorted({min(k, most) for k in (self.components // 2, self.components) if k}):
            # what a simple law finds is one more start for a finer one, which has more false summits
            starts = [turned(sample, GaussianMixture.of(rows, components), starts, ours.vectors), *starts]
        return starts[0]

    def _signs(self, ours: Axes, theirs: Axes, sample: Floats, rows: Floats) -> list[Floats]:
        """The likeliest mirrorings, the best first."""
        along, across = ours.coordinates(sample), theirs.coordinates(rows)
        if self.method == "moments":
            return by_moments(along, across)
        if self.method == "likelihood":  # means can mislead where they are small along an axis
            centred = by_moments(along - along.mean(axis=0), across - across.mean(axis=0))
            found = [*by_moments(along, across)[:_STARTS], *centred[: 2 * _STARTS]]
            return list({signs.tobytes(): signs for signs in found}.values())[: 2 * _STARTS]
        if len(ours.values) > _EXHAUSTIVE:
            raise AttackError(
                f"all mirrorings are tried up to {_EXHAUSTIVE} dimensions, got {len(ours.values)}; use method='moments'"
            )
        return [by_energy(along, across, theirs.spread)]


def _sizes(lesson: TrainingSet) -> Floats:
    """The standard deviation of the noise along each column, before the turn."""
    variances = np.array([line[-1] for line in lesson.model.covariance])
    sizes: Floats = np.sqrt(variances) / np.array(lesson.model.unit)
    return sizes


def _noisy(lesson: TrainingSet) -> Floats:
    """The sample, with the noise that the copy has: then both have one law."""
    if not lesson.model.noise:
        return lesson.records
    noisy: Floats = lesson.records + np.random.default_rng(0).normal(size=lesson.records.shape) * _sizes(lesson)
    return noisy


def _gain(lesson: TrainingSet) -> Floats | None:
    """The best linear filter of the noise, once the turn is undone (li2012, eq. 6)."""
    if not lesson.model.noise:
        return None
    spread = np.atleast_2d(np.cov(lesson.records.T))
    return np.asarray(np.linalg.solve(spread + np.diag(_sizes(lesson) ** 2), spread), np.float64)


def _differences(records: Floats) -> Floats:
    """Of disjoint pairs (section V-E)."""
    half = len(records) // 2
    apart: Floats = records[:half] - records[half : 2 * half]
    return apart
