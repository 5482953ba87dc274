"""Categories as the axes of a table of counts: what values there are, and how likely each was kept."""

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
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement

CELLS = 1 << 22
"""How many cells a table of counts may have."""


def values_of(domain: dict[str, Any]) -> Sequence[Any]:
    """The values of a domain as a manifest tells it."""
    return (
        domain["values"] if "values" in domain else range(domain.get("min", 0), domain.get("min", 0) + domain["count"])
    )


@dataclass(frozen=True)
class Replaced:
    """An attribute that was replaced at random: a column, or some columns of a joint group."""

    model: UniformReplacement

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns."""
        return self.model.columns

    @property
    def retention(self) -> float:
        """How likely a value was kept."""
        return self.model.retention

    @property
    def size(self) -> int:
        """How many values there are."""
        size = 1
        for domain in self.model.domains:
            size *= int(domain["count"]) + self.model.perturbs_null
        return size

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        """The values, one for each column, in the order of their codes."""
        gap = [None] if self.model.perturbs_null else []
        return list(product(*([*values_of(domain), *gap] for domain in self.model.domains)))

    def codes(self, copy: Copy, table: pa.Table) -> Rows:
        """Of some rows; -1 where missing."""
        return copy.codes(table, self.model)

    def places(self, other: Axis) -> Rows:
        """Where the codes of another count of the same attribute are here."""
        return np.arange(other.size)


@dataclass(frozen=True)
class Shown:
    """A column that is shown as it is; its values are found as they come."""

    columns: tuple[str, ...]
    found: dict[Any, int] = field(default_factory=dict)
    """The values and their codes."""
    retention: float = 1.0

    @property
    def size(self) -> int:
        """How many values were found."""
        return len(self.found)

    @property
    def labels(self) -> list[tuple[Any, ...]]:
        """The values, in the order of their codes."""
        return [(value,) for value in self.found]

    def codes(self, copy: Copy, table: pa.Table) -> Rows:  # noqa: ARG002 - as above
        """Of some rows; missing is a value of its own."""
        array = table.column(self.columns[0]).combine_chunks()
        if pa.types.is_nested(array.type):
            raise MiningError(f"{self.columns[0]!r} holds lists, which are no categories; leave it out")
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode("encode")
        values = encoded.dictionary.to_pylist()
        if encoded.indices.null_count:
            values.append(None)
        places = np.array([self.found.setdefault(value, len(self.found)) for value in values] or [0], np.int64)
        index = pc.fill_null(encoded.indices.cast(pa.int64()), len(values) - 1)
        codes: Rows = places[index.to_numpy(zero_copy_only=False)]
        return codes

    def places(self, other: Axis) -> Rows:
        """Where the codes of another count of the same column are here; what is new to this one is added."""
        return np.array([self.found.setdefault(value, len(self.found)) for (value,) in other.labels], np.int64)


Axis = Replaced | Shown


def axes_of(copy: Copy, columns: Sequence[str]) -> list[Axis]:
    """The attributes that some columns of categories belong to."""
    axes: list[Axis] = []
    for name in columns:
        model = copy.model(name)
        if isinstance(model, UniformReplacement):
            if not any(name in axis.columns for axis in axes):
                part = model.narrowed(columns)
                axes.append(Replaced(part))
        elif isinstance(model, Unchanged):
            axes.append(Shown((name,)))
        else:
            what = "is turned" if isinstance(model, Rotation) else "is a number with noise"
            raise MiningError(f"frequencies are of categories, and {name!r} {what}; ask for its density or moments")
    return axes


class Counts:
    """A table of counts over some axes, filled as rows come."""

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = list(axes)
        self._cells: dict[tuple[int, ...], float] = {}
        self._dense: Floats | None = None
        if all(isinstance(axis, Replaced) for axis in axes):
            self._dense = np.zeros(_checked([axis.size for axis in axes]))

    def add(self, copy: Copy, table: pa.Table) -> None:
        """Count some rows; those that miss a category are left out."""
        if len(self.axes) == 1 and self._dense is not None:
            seen = np.bincount(self.axes[0].codes(copy, table) + 1, minlength=self._dense.size + 1)
            self._dense += seen[1:]  # the first are missing
            return
        codes = np.stack([axis.codes(copy, table) for axis in self.axes])
        codes = codes[:, (codes >= 0).all(axis=0)]
        if self._dense is not None:
            keys = np.ravel_multi_index(tuple(codes), self._dense.shape)
            self._dense += np.bincount(keys, minlength=self._dense.size).reshape(self._dense.shape)
            return
        sizes = codes.max(axis=1, initial=0) + 1
        if np.prod(sizes.astype(np.float64)) > 2**62:
            raise MiningError(
                f"a table of counts has at most {CELLS:,} cells, and this has more; ask for fewer columns"
            )
        keys, counts = np.unique(np.ravel_multi_index(tuple(codes), tuple(sizes)), return_counts=True)
        for cell, count in zip(zip(*np.unravel_index(keys, tuple(sizes)), strict=True), counts, strict=True):
            self._cells[cell] = self._cells.get(cell, 0.0) + float(count)

    def __add__(self, other: Counts) -> Counts:
        """Of both; values are told by their labels, since each found its own as they came."""
        if self._dense is not None and other._dense is not None:
            self._dense += other._dense
            return self
        places = [one.places(two) for one, two in zip(self.axes, other.axes, strict=True)]
        for cell, count in other._cells.items():
            ours = tuple(int(place[code]) for place, code in zip(places, cell, strict=True))
            self._cells[ours] = self._cells.get(ours, 0.0) + count
        return self

    def table(self) -> Floats:
        """The counts, an axis an attribute."""
        if self._dense is not None:
            return self._dense
        out = np.zeros(_checked([axis.size for axis in self.axes]))
        for cell, count in self._cells.items():
            out[cell] = count
        return out


def counted(copy: Copy, wanted: Sequence[Sequence[str]]) -> list[Counts]:
    """The tables of counts of some groups of columns, in one pass."""
    return copy.fold(
        [name for names in wanted for name in names],
        partial(_counts_of, wanted=wanted),
        lambda one, other: [a + b for a, b in zip(one, other, strict=True)],
    )


def _counts_of(copy: Copy, tables: Iterable[pa.Table], *, wanted: Sequence[Sequence[str]]) -> list[Counts]:
    counts = [Counts(axes_of(copy, names)) for names in wanted]
    for table in tables:
        for part in counts:
            part.add(copy, table)
    return counts


def _checked(shape: Sequence[int]) -> tuple[int, ...]:
    cells = int(np.prod([float(size) for size in shape])) if shape else 1
    if cells > CELLS:
        raise MiningError(
            f"a table of counts has at most {CELLS:,} cells, and this one has {cells:,}; ask for fewer columns"
        )
    return tuple(shape)
