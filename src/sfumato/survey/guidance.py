"""Guidance: which directions of an answer a guided survey asks for (zhang2005, section 4), from what it received.

The collector keeps for each class the matrix `A_c` of how often two bits were set together, and the number `N_c` of
rows. Directions are ordered by the magnitude of their eigenvalues, not by their value as printed: `A_0 - A_1` is
indefinite, and the printed order drops its second strongest direction for ever (errata E1, E2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.kernels import Floats
from sfumato.survey.perturbation import Integers

LOCKED = 60.0
"""Degrees between the guidance and what rows of its own kind show, above which it has locked in on nothing."""


@dataclass(frozen=True)
class Tally:
    """What the collector keeps of the rows it received: `O(d²)` numbers for each class."""

    together: Integers
    """`A_c`, by class, bit and bit."""
    rows: Integers
    """`N_c`; rows without any bit count too."""

    @classmethod
    def empty(cls, classes: int, width: int) -> Tally:
        """Of nothing."""
        return cls(np.zeros((classes, width, width), np.int64), np.zeros(classes, np.int64))

    def add(self, bits: Integers, labels: Integers) -> Tally:
        """With some more rows."""
        together, rows = self.together.copy(), self.rows.copy()
        for label in np.unique(labels):
            some = bits[labels == label]
            together[label] += some.T @ some
            rows[label] += len(some)
        return Tally(together, rows)

    def unfloored(self, floor: float) -> Floats:
        """`A_c` as it would be without the floor under every bit's probability: `p = (q-f)/(1-2f)`."""
        sums = np.diagonal(self.together, axis1=1, axis2=2)
        count = self.rows[:, None, None]
        pairs: Floats = (self.together - floor * (sums[:, :, None] + sums[:, None, :]) + count * floor**2) / (
            1 - 2 * floor
        ) ** 2
        single = (sums - self.rows[:, None] * floor) / (1 - 2 * floor)
        index = np.arange(sums.shape[1])
        pairs[:, index, index] = single
        return pairs


def spectrum(together: Floats | Integers) -> tuple[Floats, Floats]:
    """Directions by the magnitude of how differently classes use them, and these magnitudes, the largest first.

    For two classes these are the eigenvectors of `A_0 - A_1`; for more, those of `Σ_{c<e} (A_c - A_e)²`.
    """
    count = len(together)
    if count == 2:
        values, vectors = np.linalg.eigh((together[0] - together[1]).astype(np.float64))
        values = np.abs(values)
    else:
        gaps = [(together[c] - together[e]).astype(np.float64) for c in range(count) for e in range(c + 1, count)]
        squares, vectors = np.linalg.eigh(sum(gap @ gap for gap in gaps))
        values = np.sqrt(np.maximum(squares, 0))
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def needed(values: Floats, error: float) -> int:
    """`k*`: the fewest directions without which the next is weaker than `error` times the strongest (eq. 6)."""
    if not values[0] > 0:
        return 0  # classes do not differ in any pair (E3)
    return int(np.count_nonzero(values > error * values[0]))


@dataclass(frozen=True)
class Guidance:
    """What respondents' devices project answers on, the same for all in an epoch."""

    schema: str
    epoch: int
    matrix: Floats
    """`V`: a row for each bit, a column for each direction."""

    @cached_property
    def digest(self) -> str:
        """What the public log says of it."""
        width, level = self.matrix.shape
        said = f"{self.schema}:{self.epoch}:{width}:{level}:".encode()
        return hashlib.sha256(said + np.ascontiguousarray(self.matrix, "<f8").tobytes()).hexdigest()

    @property
    def level(self) -> int:
        """`k*`, the disclosure level."""
        return int(self.matrix.shape[1])


def fingerprint(schema: str, digests: Sequence[str]) -> str:
    """What people can compare: it differs if they are asked differently, now or at any time before."""
    return hashlib.sha256(f"{schema}{''.join(digests)}".encode()).hexdigest()[:16]


def guide(schema: str, epoch: int, together: Floats | Integers, error: float) -> tuple[Guidance | None, int]:
    """The next guidance, with at least as many directions as there are classes, and how many are needed.

    There is none where classes do not differ at all.
    """
    values, vectors = spectrum(together)
    needs = needed(values, error)
    if not needs:
        return None, 0
    level = min(max(needs, len(together)), len(values))
    return Guidance(schema, epoch, np.ascontiguousarray(vectors[:, :level])), needs


def angle(one: Floats, other: Floats) -> float:
    """The largest angle between two spaces of directions, in degrees."""
    overlap = np.linalg.svd(one.T @ other, compute_uv=False)
    return float(np.degrees(np.arccos(np.clip(overlap.min(), -1, 1))))


def alarms(guidance: Guidance, needs: int, classes: int, probe: Tally | None) -> list[str]:
    """Why this guidance should not be trusted.

    Blurred rows confirm whatever guidance they were made with (E14): only rows that it did not blur can tell.

    Args:
        needs: `k*` before it was raised to the number of classes.
        probe: unblurred rows of people who consented; none where the guidance itself was made from them.

    """
    out = []
    if needs < classes:
        out.append(f"lock-in: {needs} directions seem enough for {classes} classes, fewer than there must be")
    if probe is not None:
        _, vectors = spectrum(probe.together)
        found = angle(guidance.matrix, vectors[:, :classes])  # weaker directions of few rows are noise
        if found > LOCKED:
            out.append(f"lock-in: the guidance is {found:.0f} degrees away from what unblurred rows show")
    return out
