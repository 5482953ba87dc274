"""Advice on turned copies: how many known records undo how much of them, before any leaves (giannella2010, IV-D)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import ReleaseError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.sphere import best_breach, uniform_breach
from sfumato.models import Rotation
from sfumato.release.sampling import order

ROWS = 5_000
"""Records that the advice is worked out on, at most."""

EPSILONS = (0.05, 0.15)
SHARE = 0.1
"""A table is broken when this share of its records is found within the larger epsilon."""

_DRAWS = 12
_POINTS = 24
"""For how many numbers of known records the danger is worked out, at most."""


@dataclass(frozen=True)
class Danger:
    """What an attacker who knows so many records finds of the others, on average over who they are."""

    known: int
    rho: tuple[float, ...]
    """`ρ(x, ε)` of the record most in danger, by the paper's random guess, for each of `EPSILONS`."""
    share: tuple[float, ...]
    """The share of records that the best guess finds within each."""


@dataclass(frozen=True)
class Advice:
    """How dangerous it is to give a turned copy of a table."""

    dimensions: int
    dangers: tuple[Danger, ...]

    def enough(self) -> int | None:
        """The least number of known records that breaks the table, if any that was tried does."""
        return next((danger.known for danger in self.dangers if danger.share[-1] >= SHARE), None)

    def hold_back(self, withstand: int, role: str) -> None:
        """Refuse a copy that fewer known records break than the policy says it must withstand."""
        enough = self.enough()
        if enough is not None and enough < withstand:
            raise ReleaseError(
                f"no turned copy may leave: {enough} known records are enough to find {SHARE:.0%} of the others within "
                f"{EPSILONS[-1]:.0%} of their size, and it must withstand {withstand}. Turn more columns together, add "
                f"`noise = true` to [{role}], or take the risk with `accept` and a reason; see `sfumato advise`"
            )


def advise(records: Floats, model: Rotation) -> Advice:
    """The danger of giving a copy of some records, for a growing number of known ones.

    It is assumed that known records are found among the turned ones, as they nearly always are: with exact distances,
    a handful is enough for that.

    Args:
        records: as they are before they are turned, without missing values.
        model: of the copy.

    """
    size = records.shape[1]
    if len(records) < 3:
        return Advice(size, ())
    counts = _counts(min(size + model.translated + 2, len(records) - 1))
    drawn = [_dangers(records, order(len(records), i)[: counts[-1]], counts, model) for i in range(_DRAWS)]
    means = np.mean(drawn, axis=0)
    return Advice(
        size,
        tuple(
            Danger(count, tuple(map(float, line[0])), tuple(map(float, line[1])))
            for count, line in zip(counts, means, strict=True)
        ),
    )


def _counts(most: int) -> list[int]:
    if most <= _POINTS:
        return list(range(1, most + 1))
    return sorted({int(x) for x in np.linspace(1, most, _POINTS)})


def _dangers(records: Floats, known: Rows, counts: Sequence[int], model: Rotation) -> Floats:
    """For each number of known records, the largest ρ and the share found, for each epsilon."""
    others = np.delete(records, known, axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->i", others, others))
    base = records[known[0]] if model.translated else np.zeros(records.shape[1])
    spanning = (records[known[1:]] if model.translated else records[known]) - base
    axes, sizes = np.linalg.qr(spanning.T)
    new = np.abs(np.diag(sizes)) > 1e-9 * max(np.abs(sizes).max(initial=0.0), 1e-300)
    apart = others - base
    squares = np.einsum("ij,ij->i", apart, apart)
    along = (apart @ axes) ** 2 * new
    out = np.empty((len(counts), 2, len(EPSILONS)))
    for i, count in enumerate(counts):
        reach = min(count - model.translated, axes.shape[1])
        away = np.sqrt(np.maximum(squares - along[:, :reach].sum(axis=1), 0.0))
        away[away < 1e-9 * np.sqrt(squares.max(initial=0.0))] = 0.0
        unknown = records.shape[1] - int(new[:reach].sum())
        for j, epsilon in enumerate(EPSILONS):
            out[i, 0, j] = uniform_breach(unknown, away, epsilon * lengths).max(initial=0.0)
            out[i, 1, j] = best_breach(unknown, away, epsilon * lengths).mean()
    return out
