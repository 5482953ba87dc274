"""Guidance of a guided survey: directions on which answers are projected before they are sent (zhang2005, section 4).

The collector keeps for each class the co-occurrence matrix `A_c`, which counts how often two bits are set in the same
row, and the number `N_c` of rows. Directions are ordered by the magnitude of their eigenvalues, not by their value as
printed: `A_0 - A_1` is indefinite, and the printed order drops its second strongest direction (errata E1, E2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.kernels import Floats
from sfumato.survey.perturbation import Integers

MAX_ANGLE = 60.0
"""The largest angle, in degrees, between the guidance and the directions of unperturbed rows that raises no alarm."""


@dataclass(frozen=True)
class CooccurrenceCounts:
    """The sufficient statistics that the collector keeps of the rows it received: `O(d²)` counts for each class."""

    pairs: Integers
    """`A_c`: for each class, the number of rows in which both of two bits are set."""
    rows: Integers
    """`N_c`: the number of rows in each class, including rows without any bit set."""

    @classmethod
    def empty(cls, classes: int, width: int) -> CooccurrenceCounts:
        """The counts of no rows."""
        return cls(np.zeros((classes, width, width), np.int64), np.zeros(classes, np.int64))

    def add(self, bits: Integers, labels: Integers) -> CooccurrenceCounts:
        """These counts with further rows added."""
        pairs, rows = self.pairs.copy(), self.rows.copy()
        for label in np.unique(labels):
            members = bits[labels == label]
            pairs[label] += members.T @ members
            rows[label] += len(members)
        return CooccurrenceCounts(pairs, rows)

    def without_floor(self, floor: float) -> Floats:
        """Unbiased estimates of `A_c` without the floor under every bit's probability: `p = (q-f)/(1-2f)`."""
        sums = np.diagonal(self.pairs, axis1=1, axis2=2)
        count = self.rows[:, None, None]
        pairs: Floats = (self.pairs - floor * (sums[:, :, None] + sums[:, None, :]) + count * floor**2) / (
            1 - 2 * floor
        ) ** 2
        single = (sums - self.rows[:, None] * floor) / (1 - 2 * floor)
        index = np.arange(sums.shape[1])
        pairs[:, index, index] = single
        return pairs


def spectrum(pairs: Floats | Integers) -> tuple[Floats, Floats]:
    """Magnitudes of the eigenvalues of the difference between classes, largest first, and their eigenvectors.

    For two classes the matrix is `A_0 - A_1`; for more it is `Σ_{c<e} (A_c - A_e)²`, whose roots are taken.
    """
    count = len(pairs)
    if count == 2:
        values, vectors = np.linalg.eigh((pairs[0] - pairs[1]).astype(np.float64))
        values = np.abs(values)
    else:
        gaps = [(pairs[c] - pairs[e]).astype(np.float64) for c in range(count) for e in range(c + 1, count)]
        squares, vectors = np.linalg.eigh(sum(gap @ gap for gap in gaps))
        values = np.sqrt(np.maximum(squares, 0))
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def disclosure_level(values: Floats, error: float) -> int:
    """The disclosure level `k*`: the number of eigenvalues above `error` times the largest (eq. 6)."""
    if not values[0] > 0:
        return 0  # the classes do not differ in any pair of bits (E3)
    return int(np.count_nonzero(values > error * values[0]))


@dataclass(frozen=True)
class Guidance:
    """The directions on which respondents' devices project answers, the same for all respondents in an epoch."""

    version: str
    """The hash of the survey's definition."""
    epoch: int
    matrix: Floats
    """`V`: a row for each bit, a column for each direction."""

    @cached_property
    def digest(self) -> str:
        """The hash of this guidance, as published in the survey's public log."""
        width, level = self.matrix.shape
        header = f"{self.version}:{self.epoch}:{width}:{level}:".encode()
        return hashlib.sha256(header + np.ascontiguousarray(self.matrix, "<f8").tobytes()).hexdigest()

    @property
    def level(self) -> int:
        """The disclosure level: the number of directions."""
        return int(self.matrix.shape[1])


def fingerprint(version: str, digests: Sequence[str]) -> str:
    """A short hash for respondents to compare: it differs if they were asked differently, now or at any time before."""
    return hashlib.sha256(f"{version}{''.join(digests)}".encode()).hexdigest()[:16]


def make_guidance(version: str, epoch: int, pairs: Floats | Integers, error: float) -> tuple[Guidance | None, int]:
    """The next guidance, with at least as many directions as there are classes, and the disclosure level `k*`.

    The guidance is None where the classes do not differ at all.
    """
    values, vectors = spectrum(pairs)
    needed = disclosure_level(values, error)
    if not needed:
        return None, 0
    level = min(max(needed, len(pairs)), len(values))
    return Guidance(version, epoch, np.ascontiguousarray(vectors[:, :level])), needed


def largest_angle(one: Floats, other: Floats) -> float:
    """The largest principal angle between two subspaces, in degrees."""
    cosines = np.linalg.svd(one.T @ other, compute_uv=False)
    return float(np.degrees(np.arccos(np.clip(cosines.min(), -1, 1))))


def alarms(guidance: Guidance, needed: int, classes: int, unperturbed: CooccurrenceCounts | None) -> list[str]:
    """Reasons to distrust some guidance.

    Rows perturbed under guidance confirm that guidance, right or wrong (E14): only unperturbed rows can contradict it.

    Args:
        needed: the disclosure level `k*` before it was raised to the number of classes.
        unperturbed: counts of unperturbed rows; None where the guidance itself was computed from them.

    """
    reasons = []
    if needed < classes:
        reasons.append(
            f"lock-in: the answers received suggest {needed} directions, fewer than the {classes} classes need"
        )
    if unperturbed is not None:
        _, vectors = spectrum(unperturbed.pairs)
        angle = largest_angle(guidance.matrix, vectors[:, :classes])  # weaker directions of few rows are noise
        if angle > MAX_ANGLE:
            reasons.append(f"lock-in: the guidance is {angle:.0f} degrees away from that of the unperturbed answers")
    return reasons
