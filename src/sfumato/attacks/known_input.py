"""Find known records among turned ones, and turn the others back as far as those tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.attacks import Evidence, Records
from sfumato.attacks._linear_map import Back, LinearMapAttack, TrainingSet
from sfumato.attacks._parameters import at_least, one_of
from sfumato.attacks.linkage.distances import link_by_distance
from sfumato.attacks.linkage.inner_products import Rotated, link, uniquely_valid
from sfumato.errors import AttackError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.hypersphere import best_breach, uniform_breach
from sfumato.kernels.linear_map import orthogonal
from sfumato.models.rotation import Rotation

EPSILONS = (0.05, 0.15)


@dataclass(frozen=True, kw_only=True)
class KnownInput(LinearMapAttack):
    """Find known records among turned ones by their lengths and distances, and turn the others back from them.

    What known records do not span is guessed as zero (`guess="projection"`), which beats the paper's random turn of it
    (`guess="uniform"`): its error is the distance from the span, not √2 times that.
    """

    reference = "giannella2010, section IV and Appendix I"
    supports = frozenset({Rotation.kind})
    most: int = 100
    """Known records that are used: more than there are columns help little."""
    guess: str = "projection"

    def __post_init__(self) -> None:
        at_least("most", self.most, 1)
        one_of("guess", self.guess, ("projection", "uniform"))

    def told(self, evidence: Evidence) -> Records | None:
        known = evidence.knowledge.known
        return None if known is None else known.take(np.arange(min(self.most, len(known))))

    def learn(self, lesson: TrainingSet) -> tuple[Back, Mapping[str, Any]]:
        model = lesson.model
        if model.noise:
            raise AttackError("the attack 'known-input' finds records by exact distances, and these carry noise")
        known, rows = linked(lesson.records, lesson.rows, model)
        found, seen = lesson.records[known], lesson.rows[rows]
        span = Span.of(found, seen, translated=model.translated, least=10 * model.step)
        turn = span.uniform() if self.guess == "uniform" else span.nearest()
        others = np.delete(np.arange(len(lesson.rows)), rows)
        facts = {"known": len(lesson.records), "linked": len(known), **span.facts(lesson.rows, others)}
        if not model.translated:
            released = Rotated(lesson.rows, _tolerance(lesson.rows, model))
            facts["uniquely valid"] = len(uniquely_valid(lesson.records, released))
        return lambda some: (some - span.there) @ turn + span.here, facts


def linked(known: Floats, rows: Floats, model: Rotation) -> tuple[Rows, Rows]:
    """Which known records are surely which rows, by what the motion keeps."""
    if model.translated:
        return link_by_distance(known, rows, _tolerance(rows, model))
    return link(known, Rotated(rows, _tolerance(rows, model)))


def _tolerance(rows: Floats, model: Rotation) -> float:
    """How far a row may be from where the motion puts it."""
    return (model.step / 2 + 1e-13 * float(np.abs(rows).max())) * float(rows.shape[1] ** 0.5)


@dataclass(frozen=True)
class Span:
    """What linked records tell of the motion: `M·U = V` on what they span, and nothing beyond (Theorem 4.2)."""

    here: Floats
    there: Floats
    """Where the span is centred before and after the motion: at zero, unless there is a translation."""
    before: Floats
    after: Floats
    """`U` and `V`, orthonormal, one column a dimension that is known."""

    @classmethod
    def of(cls, known: Floats, rows: Floats, *, translated: bool, least: float = 0.0) -> Span:
        """From linked pairs; directions in which they differ by less than `least` tell nothing."""
        size = known.shape[1]
        centred = translated and len(known) > 0
        here, there = (part.mean(axis=0) if centred else np.zeros(size) for part in (known, rows))
        if not len(known):
            return cls(here, there, np.zeros((size, 0)), np.zeros((size, 0)))
        left, sizes, right = np.linalg.svd(known - here, full_matrices=False)
        rank = int((sizes > max(1e-8 * sizes.max(initial=0.0), least * size**0.5, 1e-300)).sum())
        after = (rows - there).T @ left[:, :rank] / sizes[:rank]
        turned, _, back = np.linalg.svd(after, full_matrices=False)
        return cls(here, there, right[:rank].T, turned @ back)

    @property
    def unknown(self) -> int:
        """`n - k`: the dimensions of which nothing is known."""
        return int(self.before.shape[0] - self.before.shape[1])

    def nearest(self) -> Floats:
        """`V·Uᵀ`: right in the span, zero beyond."""
        return self.after @ self.before.T

    def uniform(self, seed: int = 0) -> Floats:
        """The transpose of a motion that is uniform among those that fit (Algorithm IV-D.1)."""
        rest, gone = (np.linalg.svd(part)[0][:, part.shape[1] :] for part in (self.before, self.after))
        turn = orthogonal(np.random.default_rng(seed).normal(size=(self.unknown, self.unknown)))
        whole: Floats = self.nearest() + gone @ turn @ rest.T
        return whole

    def away(self, rows: Floats) -> tuple[Floats, Floats]:
        """Each row's distance from the span, and its length: both are seen in the copy.

        With a translation the length is not seen, and is taken from the nearest guess, which is too short.
        """
        apart = rows - self.there
        along = apart @ self.after
        away: Floats = np.linalg.norm(apart - along @ self.after.T, axis=1)
        guess = along @ self.before.T + self.here
        length: Floats = np.sqrt(np.einsum("ij,ij->i", guess, guess) + (0 if self.here.any() else away**2))
        return away, length

    def facts(self, rows: Floats, others: Rows) -> dict[str, Any]:
        """How likely a guess is a breach: `ρ(x, ε)`, of the record most in danger and of all others on average.

        A breach by distance is one by entry (MED), so that ρ bounds that from below; and where lengths survive, one by
        cosine at ε is one by distance at √(2ε) (section IV-F).
        """
        away, length = self.away(rows[others])
        nearest = away / np.where(length > 0, length, 1.0)
        said: dict[str, Any] = {"spanned": self.before.shape[1], "dimensions": self.before.shape[0]}
        for epsilon in EPSILONS if len(others) else ():
            rho = uniform_breach(self.unknown, away, epsilon * length)
            best = best_breach(self.unknown, away, epsilon * length)
            cosine = uniform_breach(self.unknown, away, (2 * epsilon) ** 0.5 * length)
            said[f"epsilon {epsilon}"] = {
                "most endangered row": int(others[nearest.argmin()]),
                "rho": float(rho.max()),
                "best guess": float(best.max()),
                "share of rows": float(best.mean()),
                "cosine": float(cosine.max()),
            }
        return said
