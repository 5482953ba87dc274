"""Uniform replacement: categories that were kept with a known probability, else drawn at random (xiao2009)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from sfumato.levels import Level
from sfumato.models import Amount, Limit, Model


@dataclass(frozen=True)
class UniformReplacement(Model):
    """`Y = X` with probability `retention`, else uniform over the domain (xiao2009, eq. 1).

    Several columns are one attribute over the product of their domains (xiao2009, section 4).
    """

    kind = "uniform-replacement"
    domains: tuple[dict[str, Any], ...]
    retention: float
    perturbs_null: bool
    """Whether null is one more category, after the listed ones; else nulls stay."""
    collusion_resistant: bool
    """Whether copies with the same scheme and key lie on one Markov path; else they are independent."""
    entity_rows: float = 1.0
    """Where records are of entities, the largest number of rows that one has, or may have: those of its rows
    that have the same category share one draw."""
    entity: str = ""
    """The column of the original that names the entities."""

    @property
    def is_collusion_resistant(self) -> bool:
        return self.collusion_resistant

    @property
    def entity_column(self) -> str:
        return self.entity

    @property
    def design_effect(self) -> float:
        return self.entity_rows

    @property
    def size(self) -> int:
        """The number of categories of the attribute; 0 where every cell is null."""
        return math.prod(int(domain["count"]) + self.perturbs_null for domain in self.domains)

    def promises(self, level: Level) -> list[str]:
        return [
            f"Categories, fidelity {level.fidelity:.6g}: a category is retained with probability {level.retention:.4g} "
            "(more where its `scale` is larger), else drawn at random from its domain, its own value included.",
            *(["Categories of one entity: rows with the same category share one draw."] if self.entity else []),
        ]

    def limits(self) -> list[Limit]:
        missing = [] if self.perturbs_null else [Limit("A missing value is released as missing", self.columns)]
        return [Limit("The list of possible values is public", self.columns), *missing]

    def describe(self, column: str, amount: Amount) -> str:  # noqa: ARG002
        count = self.domains[self.columns.index(column)]["count"]
        others = f", jointly with {len(self.columns) - 1} more" if len(self.columns) > 1 else ""
        replaced = f"replaced by one of {count:,} categories at random{others}"
        return f"retained with probability {self.retention:.4g}, otherwise {replaced}"

    def narrowed(self, names: Sequence[str]) -> Self:
        """The model of some of the columns: the marginal distribution of a uniform draw is uniform."""
        kept = self._kept(names)
        columns, domains = tuple(self.columns[i] for i in kept), tuple(self.domains[i] for i in kept)
        return dataclasses.replace(self, columns=columns, domains=domains)

    def with_entity_rows(self, rows: float) -> Self:
        return dataclasses.replace(self, entity_rows=max(self.entity_rows, rows)) if self.entity else self

    def validate(self) -> None:
        if len(self.domains) != len(self.columns) or not all(isinstance(one.get("count"), int) for one in self.domains):
            raise TypeError("each column has a domain, and a domain has a count")
