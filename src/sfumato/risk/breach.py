"""Advice on turned copies: how many known records undo how much of them, before any leaves (giannella2010, IV-D)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import ReleaseError
from sfumato.kernels import Floats, Mask, Rows
from sfumato.kernels.hypersphere import best_breach, uniform_breach
from sfumato.models.rotation import Rotation
from sfumato.tables.sampling import order

ROWS = 10_000
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
    baseline: tuple[float, ...]
    """The share of records that the mean finds, without any copy."""
    dangers: tuple[Danger, ...]

    def enough(self) -> int | None:
        """The least number of known records that breaks the table, if any that was tried does."""
        return next((danger.known for danger in self.dangers if breaks(danger.share, self.baseline)), None)

    def hold_back(self, withstand: int, role: str) -> None:
        """Refuse a copy that fewer known records break than the policy says it must withstand."""
        enough = self.enough()
        if enough is not None and enough < withstand:
            raise ReleaseError(
                f"no turned copy may leave: {counted(enough)} enough to find {SHARE:.0%} of the others within "
                f"{EPSILONS[-1]:.0%} of their size, and it must withstand {withstand}. Turn more columns together, add "
                f"`noise = true` to [{role}], or take the risk with `accept` and a reason; see `sfumato advise`"
            )


def counted(known: int) -> str:
    """So many known records are."""
    return "1 known record is" if known == 1 else f"{known} known records are"


def breaks(share: tuple[float, ...], baseline: tuple[float, ...]) -> bool:
    """Whether so much is found, of what a guess without any copy would not find, that a table counts as broken."""
    return share[-1] - baseline[-1] >= SHARE * (1 - baseline[-1])


def advise(records: Floats, model: Rotation) -> Advice:
    """The danger of giving a copy of some records, for a growing number of known ones.

    It is assumed that known records are found among the turned ones, as they nearly always are: with exact distances,
    a handful is enough for that.

    Args:
        records: as they are before they are turned, without missing values.
        model: of the copy.

    """
    size = records.shape[1]
    base = without_a_copy(records)
    if len(records) < 3:  # whoever knows one of two knows half of the table
        worst = (1.0,) * len(EPSILONS)
        return Advice(size, (0.0,) * len(EPSILONS), (Danger(1, worst, worst),) if len(records) else ())
    most = min(size + model.translated + 2, len(records) - 1)
    draws = [_Draw.of(records, order(len(records), i)[:most], translated=model.translated) for i in range(_DRAWS)]

    def danger(count: int) -> Danger:
        rho, share = np.mean([draw.found(count) for draw in draws], axis=0)
        return Danger(count, tuple(map(float, rho)), tuple(map(float, share)))

    found = {count: danger(count) for count in _counts(most)}
    low, high = _bracket(found, base)
    while high - low > 1:  # the least number that is enough is found exactly
        middle = (low + high) // 2
        found[middle] = danger(middle)
        low, high = _bracket(found, base)
    return Advice(size, base, tuple(found[count] for count in sorted(found)))


def without_a_copy(records: Floats) -> tuple[float, ...]:
    """The share of records that their mean is near enough to, for each epsilon."""
    if not len(records):
        return (0.0,) * len(EPSILONS)
    away = np.linalg.norm(records - records.mean(axis=0), axis=1)
    return tuple(float((away <= epsilon * np.linalg.norm(records, axis=1)).mean()) for epsilon in EPSILONS)


def _bracket(found: dict[int, Danger], base: tuple[float, ...]) -> tuple[int, int]:
    """The largest number of known records that is not enough, and the next one, which is."""
    enough = [count for count in sorted(found) if breaks(found[count].share, base)]
    if not enough:
        return 0, 0
    return max((count for count in found if count < enough[0]), default=0), enough[0]


def _counts(most: int) -> list[int]:
    if most <= _POINTS:
        return list(range(1, most + 1))
    return sorted({int(x) for x in np.linspace(1, most, _POINTS)})


@dataclass(frozen=True)
class _Draw:
    """Some records, in the order in which they become known, and the others."""

    size: int
    lengths: Floats
    """Of the others."""
    along: Floats
    """Their squared coordinates along what each further known record adds to the span; the rest is what is left."""
    rest: Floats
    new: Mask
    """Whether it adds anything."""
    translated: bool

    @classmethod
    def of(cls, records: Floats, known: Rows, *, translated: bool) -> _Draw:
        others = np.delete(records, known, axis=0)
        base = records[known[0]] if translated else np.zeros(records.shape[1])
        spanning = (records[known[1:]] if translated else records[known]) - base
        axes, sizes = np.linalg.qr(spanning.T)
        new = np.abs(np.diag(sizes)) > 1e-9 * max(np.abs(sizes).max(initial=0.0), 1e-300)
        apart = others - base
        along = (apart @ axes) * new[: axes.shape[1]]
        rest = np.linalg.norm(apart - along @ axes.T, axis=1)
        rest[rest < 1e-9 * np.linalg.norm(apart, axis=1).max(initial=0.0)] = 0.0
        return cls(records.shape[1], np.linalg.norm(others, axis=1), along**2, rest, new, translated)

    def found(self, count: int) -> Floats:
        """The largest ρ and the share found, for each epsilon, with so many known records."""
        reach = min(count - self.translated, self.along.shape[1])
        away = np.sqrt(self.along[:, reach:].sum(axis=1) + self.rest**2)
        unknown = self.size - int(self.new[:reach].sum())
        out = np.empty((2, len(EPSILONS)))
        for j, epsilon in enumerate(EPSILONS):
            out[0, j] = uniform_breach(unknown, away, epsilon * self.lengths).max(initial=0.0)
            out[1, j] = best_breach(unknown, away, epsilon * self.lengths).mean()
        return out
