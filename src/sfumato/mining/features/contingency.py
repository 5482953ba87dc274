"""Contingency tables of categorical columns, whose factors know their categories and retention probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.mining.copies.copy import Copy
from sfumato.models.uniform_replacement import UniformReplacement

MAX_CELLS = 1 << 22
"""The largest number of cells of a contingency table."""


def domain_values(domain: dict[str, Any]) -> Sequence[Any]:
    """The values of a domain, as a manifest writes it: a list, or a range of whole numbers."""
    return (
        domain["values"] if "values" in domain else range(domain.get("min", 0), domain.get("min", 0) + domain["count"])
    )


@dataclass(frozen=True)
class PerturbedFactor:
    """A factor that was perturbed by uniform replacement: one column, or several that were perturbed jointly."""

    model: UniformReplacement
    is_perturbed = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose combined values are the categories."""
        return self.model.columns

    @property
    def retention(self) -> float:
        """The probability that a category was retained."""
        return self.model.retention

    @property
    def size(self) -> int:
        """The number of categories."""
        return self.model.size

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        """The categories in the order of their codes, with one value per column."""
        null = [None] if self.model.perturbs_null else []
        return list(product(*([*domain_values(domain), *null] for domain in self.model.domains)))

    def codes(self, copy: Copy, table: pa.Table) -> Rows:
        """The category codes of some rows; -1 where missing."""
        return copy.codes(table, self.model)

    def recoding(self, other: Factor) -> Rows:
        """The code here of each code of another factor over the same columns."""
        return np.arange(other.size)


@dataclass(frozen=True)
class PublicFactor:
    """A factor that was released unchanged; its categories are collected as rows are read."""

    columns: tuple[str, ...]
    code_of: dict[Any, int] = field(default_factory=dict)
    """The code of each category, in the order of first appearance."""
    retention: float = 1.0
    is_perturbed = False

    @property
    def size(self) -> int:
        """The number of categories read so far."""
        return len(self.code_of)

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        """The categories in the order of their codes."""
        return [(value,) for value in self.code_of]

    def codes(self, copy: Copy, table: pa.Table) -> Rows:  # noqa: ARG002 - the signature of every factor
        """The category codes of some rows; a missing value is a category of its own."""
        array = table.column(self.columns[0]).combine_chunks()
        if pa.types.is_nested(array.type):
            raise MiningError(f"{self.columns[0]!r} must hold single values, and it holds lists; leave the column out")
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode("encode")
        values = encoded.dictionary.to_pylist()
        if encoded.indices.null_count:
            values.append(None)
        code_of_index = np.array([self._code(value) for value in values] or [0], np.int64)
        indices = pc.fill_null(encoded.indices.cast(pa.int64()), len(values) - 1)
        codes: Rows = code_of_index[indices.to_numpy(zero_copy_only=False)]
        return codes

    def recoding(self, other: Factor) -> Rows:
        """The code here of each code of another factor over the same column; new categories are added."""
        return np.array([self._code(value) for (value,) in other.labels], np.int64)

    def _code(self, value: Any) -> int:
        return self.code_of.setdefault(value, len(self.code_of))


Factor = PerturbedFactor | PublicFactor


def perturbed_factors(copy: Copy, columns: Sequence[str]) -> list[PerturbedFactor]:
    """The factors of those columns that were perturbed by uniform replacement; joint columns are one factor."""
    factors: list[PerturbedFactor] = []
    for name in columns:
        model = copy.replacement_model(name)
        if model is not None and not any(name in factor.columns for factor in factors):
            factors.append(PerturbedFactor(model.narrowed(columns)))
    return factors


def factors_of(copy: Copy, columns: Sequence[str]) -> list[Factor]:
    """The factors of some categorical columns; columns that were perturbed jointly are one factor."""
    factors: list[Factor] = []
    for name in columns:
        if not any(name in factor.columns for factor in factors if factor.is_perturbed):
            factors.append(_factor(copy, name, columns))
    return factors


def _factor(copy: Copy, name: str, columns: Sequence[str]) -> Factor:
    """The factor that a column belongs to; refuses a column that holds no categories."""
    replacement = copy.replacement_model(name)
    if replacement is not None:
        return PerturbedFactor(replacement.narrowed(columns))
    if copy.unchanged_model(name) is not None:
        return PublicFactor((name,))
    if copy.copula_model(name) is not None:
        raise MiningError(
            f"{name!r} has the margin of the original and needs no correction; count it in the copy as it stands"
        )
    kind = "is a coordinate of rotated records" if copy.rotation_model(name) else "is numeric with noise"
    raise MiningError(f"a contingency table needs categorical columns, and {name!r} {kind}; use Density or Moments")


class ContingencyTable:
    """The counts of a copy's records by some factors, filled as rows are read."""

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = list(factors)
        self._cells: dict[tuple[int, ...], float] = {}
        self._dense: Floats | None = None
        if all(factor.is_perturbed for factor in factors):
            self._dense = np.zeros(_checked([factor.size for factor in factors]))

    def add(self, copy: Copy, table: pa.Table) -> None:
        """Count some rows; rows with a missing category are left out."""
        if len(self.factors) == 1 and self._dense is not None:
            counts = np.bincount(self.factors[0].codes(copy, table) + 1, minlength=self._dense.size + 1)
            self._dense += counts[1:]  # the first counts missing values
            return
        codes = np.stack([factor.codes(copy, table) for factor in self.factors])
        codes = codes[:, (codes >= 0).all(axis=0)]
        if self._dense is not None:
            keys = np.ravel_multi_index(tuple(codes), self._dense.shape)
            self._dense += np.bincount(keys, minlength=self._dense.size).reshape(self._dense.shape)
            return
        sizes = codes.max(axis=1, initial=0) + 1
        if np.prod(sizes.astype(np.float64)) > 2**62:
            raise MiningError(
                f"a contingency table may have {MAX_CELLS:,} cells, and this one has more; use fewer columns"
            )
        keys, counts = np.unique(np.ravel_multi_index(tuple(codes), tuple(sizes)), return_counts=True)
        for cell, count in zip(zip(*np.unravel_index(keys, tuple(sizes)), strict=True), counts, strict=True):
            self._cells[cell] = self._cells.get(cell, 0.0) + float(count)

    def __add__(self, other: ContingencyTable) -> ContingencyTable:
        """The sum of two tables over the same columns, matched by category, since each may have its own codes."""
        if self._dense is not None and other._dense is not None:
            self._dense += other._dense
            return self
        recodings = [one.recoding(two) for one, two in zip(self.factors, other.factors, strict=True)]
        for cell, count in other._cells.items():
            recoded = tuple(int(recoding[code]) for recoding, code in zip(recodings, cell, strict=True))
            self._cells[recoded] = self._cells.get(recoded, 0.0) + count
        return self

    def counts(self) -> Floats:
        """The counts, with one dimension per factor."""
        if self._dense is not None:
            return self._dense
        out = np.zeros(_checked([factor.size for factor in self.factors]))
        for cell, count in self._cells.items():
            out[cell] = count
        return out


def contingency_tables(copy: Copy, groups: Sequence[Sequence[str]]) -> list[ContingencyTable]:
    """The contingency tables of some groups of columns, counted in one pass."""
    return copy.fold(
        [name for names in groups for name in names],
        partial(_tabulated, groups=groups),
        lambda one, other: [a + b for a, b in zip(one, other, strict=True)],
    )


def _tabulated(copy: Copy, tables: Iterable[pa.Table], *, groups: Sequence[Sequence[str]]) -> list[ContingencyTable]:
    contingency = [ContingencyTable(factors_of(copy, names)) for names in groups]
    for table in tables:
        for part in contingency:
            part.add(copy, table)
    return contingency


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    cells = int(np.prod([float(size) for size in shape])) if shape else 1
    if cells > MAX_CELLS:
        raise MiningError(
            f"a contingency table may have {MAX_CELLS:,} cells, and this one has {cells:,}; use fewer columns"
        )
    return tuple(shape)
