"""Independent components of known records and of turned ones, matched with each other (Guo and Wu)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sfumato.attacks import Evidence, Records
from sfumato.attacks._linear_map import Back, LinearMapAttack, TrainingSet
from sfumato.attacks.linkage.principal_axes import Axes
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.convergence_warnings import unconcerned

_CONTRASTS = ("logcosh", "cube", "exp")
"""Ways in which components can stand out; the one whose result looks most like the sample is taken."""

_SOME = 1000

_QUANTILES = np.linspace(0.01, 0.99, 99)


@dataclass(frozen=True, kw_only=True)
class Ica(LinearMapAttack):
    """Find independent components of the sample and of the copy, and match them by the shape of their laws.

    It asks nothing of the matrix but that it can be inverted, so that it undoes projections as well; it needs columns
    that are mixtures of independent parts, at most one of them normal.
    """

    reference = "Guo and Wu 2007, as in giannella2010, section II-A"

    def told(self, evidence: Evidence) -> Records | None:
        knowledge = evidence.knowledge
        return knowledge.known if knowledge.sample is None else knowledge.sample

    def learn(self, lesson: TrainingSet) -> tuple[Back, Mapping[str, Any]]:
        sample, rows = lesson.records, lesson.rows
        size = min(sample.shape[1], rows.shape[1])
        if len(sample) < 10 * sample.shape[1]:
            raise AttackError(
                f"the attack 'ica' needs a sample of at least {10 * sample.shape[1]} records, got {len(sample)}"
            )
        theirs = Axes.of(rows, size)
        if any(axes.values[-1] < 1e-9 * axes.values[0] for axes in (theirs, Axes.of(sample, size))):
            raise AttackError("the attack 'ica' needs columns that do not follow from each other, and some do")
        backs = [_back(sample, rows, theirs, contrast) for contrast in _CONTRASTS]
        some = rows[:: max(len(rows) // _SOME, 1)]
        apart = [_energy(back(some), sample[:: max(len(sample) // _SOME, 1)]) for back, _ in backs]
        back, distance = backs[int(np.argmin(apart))]
        return back, {"sample": len(sample), "mismatch of components": distance}


def _back(sample: Floats, rows: Floats, theirs: Axes, contrast: str) -> tuple[Back, float]:
    """From rows to records, by components that stand out in one way; and how ill they match."""
    size = len(theirs.values)
    mixing, ours = _components(sample, size, contrast)
    unmixing, parts = _components(theirs.coordinates(rows - theirs.mean), size, contrast)
    order, signs, distance = _matched(ours, parts)
    inverse, centre = np.linalg.pinv(unmixing), sample.mean(axis=0)

    def back(some: Floats) -> Floats:
        found = theirs.coordinates(some - theirs.mean) @ inverse.T
        restored: Floats = (found[:, order] * signs) @ mixing.T + centre
        return restored

    return back, distance


def _energy(restored: Floats, sample: Floats) -> float:
    """How far the law of restored records is from that of the sample, but for what is the same for all."""
    units = np.where(sample.std(axis=0) > 0, sample.std(axis=0), 1.0)
    found, real = restored / units, sample / units
    return float(2 * cdist(found, real).mean() - cdist(found, found).mean())


def _components(records: Floats, size: int, contrast: str) -> tuple[Floats, Floats]:
    """The mixing matrix, and the components with mean 0 and variance 1."""
    from sklearn.decomposition import FastICA  # noqa: PLC0415 - takes long to import

    model = FastICA(size, fun=contrast, random_state=0, whiten="unit-variance", max_iter=500)
    with unconcerned():  # where parts are nearly normal there is no best answer
        try:
            parts = model.fit_transform(records)
        except ValueError as error:
            raise AttackError(f"the attack 'ica' found no independent components: {error}") from None
    return model.mixing_, parts


def _matched(ours: Floats, theirs: Floats) -> tuple[Any, Floats, float]:
    """Which of their components is which of ours, and whether it is mirrored, by the distance of their quantiles."""
    one, other, turned = (np.quantile(part, _QUANTILES, axis=0).T for part in (ours, theirs, -theirs))
    plain = np.sqrt(((one[:, None] - other[None]) ** 2).mean(axis=2))
    mirrored = np.sqrt(((one[:, None] - turned[None]) ** 2).mean(axis=2))
    rows, order = linear_sum_assignment(np.minimum(plain, mirrored))
    signs = np.where(mirrored[rows, order] < plain[rows, order], -1.0, 1.0)
    return order, signs, float(np.minimum(plain, mirrored)[rows, order].mean())
