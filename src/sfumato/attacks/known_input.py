"""Known-input attack: link known records to rotated rows, and invert the rotation on what they span."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks import Evidence, Records
from sfumato.attacks._linear_map import Inverse, LinearMapAttack, TrainingSet
from sfumato.attacks._parameters import require_at_least, require_one_of
from sfumato.attacks.linkage.distances import link_by_distance
from sfumato.attacks.linkage.inner_products import ReleasedRows, link, uniquely_valid
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.hypersphere import best_breach_probability, uniform_breach_probability
from sfumato.kernels.linear_map import random_orthogonal
from sfumato.models.rotation import Rotation

EPSILONS = (0.05, 0.15)
"""The relative errors at which breach probabilities are reported."""


@dataclass(frozen=True, kw_only=True)
class KnownInput(LinearMapAttack):
    """Link known records to rotated rows by lengths and distances, and estimate the rotation from the links.

    Outside the span of the linked records the estimate is zero (`guess="projection"`), which is better than the paper's
    random completion (`guess="uniform"`): its error is the distance from the span, not √2 times that.
    """

    reference = "giannella2010, section IV and Appendix I"
    supports = frozenset({Rotation.kind})
    example = {"guess": "uniform", "max_known": 5}
    max_known: int = 100
    """The largest number of known records that are used: more than there are columns help little."""
    guess: str = "projection"
    """The estimate outside the span of the linked records: `projection` or `uniform`."""

    def __post_init__(self) -> None:
        require_at_least("max_known", self.max_known, 1)
        require_one_of("guess", self.guess, ("projection", "uniform"))

    def training_records(self, evidence: Evidence) -> Records | None:
        known = evidence.knowledge.known
        return None if known is None else known.take(np.arange(min(self.max_known, len(known))))

    def fit_inverse(self, training: TrainingSet) -> tuple[Inverse, Mapping[str, Any]]:
        model = training.model
        if model.noise:
            raise AttackError("the attack 'known-input' links records by exact distances, and these carry noise")
        known, rows = linked(training.records, training.rows, model)
        span = Span.of(training.records[known], training.rows[rows], translated=model.translated, least=10 * model.step)
        matrix = span.random_completion() if self.guess == "uniform" else span.projection()
        others = np.delete(np.arange(len(training.rows)), rows)
        explanation = {
            "known": len(training.records),
            "linked": len(known),
            **span.breach_probabilities(training.rows, others),
        }
        if not model.translated:
            released = ReleasedRows(training.rows, _tolerance(training.rows, model))
            explanation["uniquely valid"] = len(uniquely_valid(training.records, released))
        return lambda some: (some - span.released_centre) @ matrix + span.original_centre, explanation


def linked(known: Floats, rows: Floats, model: Rotation) -> tuple[Rows, Rows]:
    """The certain links between known records and rows, by the distances or inner products that the map preserves."""
    if model.translated:
        return link_by_distance(known, rows, _tolerance(rows, model))
    return link(known, ReleasedRows(rows, _tolerance(rows, model)))


def _tolerance(rows: Floats, model: Rotation) -> float:
    """The largest distance of a row from the exact image of its record, by rounding."""
    return (model.step / 2 + 1e-13 * float(np.abs(rows).max())) * float(rows.shape[1] ** 0.5)


@dataclass(frozen=True)
class Span:
    """The rotation on the span of the linked records: `M·U = V`, and unknown outside of it (Theorem 4.2)."""

    original_centre: Floats
    released_centre: Floats
    """The centres of the span before and after the map: zero, unless there is a translation."""
    original_basis: Floats
    released_basis: Floats
    """`U` and `V`: orthonormal bases of the span before and after the map, one column per dimension."""

    @classmethod
    def of(cls, known: Floats, rows: Floats, *, translated: bool, least: float = 0.0) -> Span:
        """The span of linked records and rows; directions with a variation below `least` are ignored."""
        size = known.shape[1]
        centred = translated and len(known) > 0
        original, released = (part.mean(axis=0) if centred else np.zeros(size) for part in (known, rows))
        if not len(known):
            return cls(original, released, np.zeros((size, 0)), np.zeros((size, 0)))
        left, singular, right = np.linalg.svd(known - original, full_matrices=False)
        rank = int((singular > max(1e-8 * singular.max(initial=0.0), least * size**0.5, 1e-300)).sum())
        images = (rows - released).T @ left[:, :rank] / singular[:rank]
        u, _, vt = np.linalg.svd(images, full_matrices=False)  # the nearest orthonormal basis
        return cls(original, released, right[:rank].T, u @ vt)

    @property
    def unknown_dimensions(self) -> int:
        """`n - k`: the number of dimensions outside the span."""
        return int(self.original_basis.shape[0] - self.original_basis.shape[1])

    def projection(self) -> Floats:
        """`V·Uᵀ`: the transpose of the map on the span, and zero outside of it."""
        return self.released_basis @ self.original_basis.T

    def random_completion(self, seed: int = 0) -> Floats:
        """The transpose of a rotation that is uniform among those that fit the links (Algorithm IV-D.1)."""
        original, released = (
            np.linalg.svd(basis)[0][:, basis.shape[1] :] for basis in (self.original_basis, self.released_basis)
        )
        size = self.unknown_dimensions
        rotation = random_orthogonal(np.random.default_rng(seed).normal(size=(size, size)))
        completed: Floats = self.projection() + released @ rotation @ original.T
        return completed

    def distances(self, rows: Floats) -> tuple[Floats, Floats]:
        """Each row's distance from the span, and the length of its record: both are visible in the copy.

        With a translation the length is not visible, and is taken from the projection, which is too short.
        """
        centred = rows - self.released_centre
        coordinates = centred @ self.released_basis
        distance: Floats = np.linalg.norm(centred - coordinates @ self.released_basis.T, axis=1)
        projected = coordinates @ self.original_basis.T + self.original_centre
        hidden = 0 if self.original_centre.any() else distance**2
        length: Floats = np.sqrt(np.einsum("ij,ij->i", projected, projected) + hidden)
        return distance, length

    def breach_probabilities(self, rows: Floats, others: Rows) -> dict[str, Any]:
        """The probability of a breach `ρ(x, ε)`, of the record at highest risk and on average over all other records.

        A breach by distance is one by entry (MED), so that ρ is a lower bound for that; and where lengths are
        preserved, one by cosine at ε is one by distance at √(2ε) (section IV-F).
        """
        unknown = self.unknown_dimensions
        distance, length = self.distances(rows[others])
        relative = distance / np.where(length > 0, length, 1.0)
        report: dict[str, Any] = {"spanned": self.original_basis.shape[1], "dimensions": self.original_basis.shape[0]}
        for epsilon in EPSILONS if len(others) else ():
            rho = uniform_breach_probability(unknown, distance, epsilon * length)
            best = best_breach_probability(unknown, distance, epsilon * length)
            cosine = uniform_breach_probability(unknown, distance, (2 * epsilon) ** 0.5 * length)
            report[f"epsilon {epsilon}"] = {
                "row at highest risk": int(others[relative.argmin()]),
                "rho": float(rho.max()),
                "best guess": float(best.max()),
                "share of rows": float(best.mean()),
                "cosine": float(cosine.max()),
            }
        return report
