"""Rotation: numbers under one secret orthogonal map, so that distances are preserved (giannella2010)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from sfumato.errors import PolicyError
from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model


@dataclass(frozen=True)
class Rotation(Model):
    """`Y = M·(X - centre)/unit + v`, `M` orthogonal, both secret and the same for all records (giannella2010, III-B).

    Where noise was asked for, it is added to the record before the map is applied, so that copies of several levels are
    copies with noise, seen through one rotation.
    """

    kind = "rotation"
    sources: tuple[str, ...]
    """The columns of the original; none of them is a column of the copy."""
    centre: tuple[float, ...]
    unit: tuple[float, ...]
    clip: tuple[tuple[Any, Any] | None, ...]
    """The ends in the column's units, or as dates in ISO format."""
    step: float
    """Every value in the copy is a multiple of it."""
    translated: bool
    """Whether there is a secret `v`; else it is zero, and lengths are preserved as distances are."""
    shuffled: bool
    """Whether the rows of the copy are in a secret order."""
    noise: float
    """`σ²`, or 0 where no noise was asked for."""
    covariance: tuple[tuple[float, ...], ...]
    """Of the noise, in the units of the original; the lower triangle, or nothing."""
    collusion_resistant: bool
    """Whether copies with the same scheme and key lie on one Markov path."""

    @property
    def original_columns(self) -> tuple[str, ...]:
        return self.sources

    @property
    def is_perturbed(self) -> bool:
        return bool(self.noise)

    @property
    def is_collusion_resistant(self) -> bool:
        return self.collusion_resistant

    @property
    def preserves_distances(self) -> bool:
        """Whether the map is orthogonal, so that every distance is exact."""
        return True

    def promises(self, level: Level) -> list[str]:  # noqa: ARG002 - its noise says more
        names = f"{len(self.sources)} numbers"
        if self.noise:
            return [
                f"Distances, {names} rotated together after noise of equal variance in all directions: the distances "
                "of the noisy records are preserved, and if the rotation is undone, the best linear estimate has a "
                f"residual error of at least {self.noise / (1 + self.noise):.4g} of a column's variance."
            ]
        return [
            f"Distances, {names} rotated together: every distance between two records is preserved, to about "
            f"{self.step:.1g}."
        ]

    def limits(self) -> list[Limit]:
        out = [Limit("Rotated, not hidden", self.sources, self._recovery())]
        if any(self.centre):
            out.append(Limit("The means and standard deviations of these columns are published, to three digits"))
        if not self.shuffled:
            out.append(Limit("The rows are in the order of the table: a known record is found by its row number"))
        first, last = self.columns[0], self.columns[-1]
        return [*out, Limit(f"A record that lacks one of these numbers has no values in {first} to {last}")]

    def _recovery(self) -> str:
        """How the map may be undone."""
        if self.noise:
            return "A sample of the same population may undo the rotation; then only the noise protects."
        most = "recover all others, and fewer recover much" if self.is_invertible else "recover the others in part"
        known = len(self.sources) + self.translated
        return f"An attacker who knows {known} of the records can {most}; so can one with a sample of the population."

    @property
    def is_invertible(self) -> bool:
        """Whether as many known records as there are columns recover all others: no noise, and no lost dimensions."""
        return not self.noise and len(self.columns) >= len(self.sources)

    def describe(self, column: str, amount: Amount) -> str:  # noqa: ARG002
        noise = ", after noise" if self.noise else ""
        return f"a linear combination of {len(self.sources)} columns ({self.kind}{noise})"

    def unshuffled(self) -> Self:
        return dataclasses.replace(self, shuffled=False)

    def narrowed(self, names: Sequence[str]) -> Self:
        kept = self._kept(names)
        if len(kept) == len(self.columns):
            return self
        if kept:
            raise PolicyError("columns that were rotated together are shown together")
        return dataclasses.replace(self, columns=())

    def validate(self) -> None:
        if {len(self.centre), len(self.unit), len(self.clip)} != {len(self.sources)} or not self.columns:
            raise TypeError("each original column has one value of each kind")
