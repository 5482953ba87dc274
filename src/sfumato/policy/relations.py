"""Relations between columns that an owner should know of: copies of each other, functions, dependent categories."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.kernels import Floats
from sfumato.tables import numeric

Codes = npt.NDArray[np.int64]

_ROWS = 20_000
"""The number of rows that are examined."""

_EXACT = 1e-8
"""The share of a column's variance that others may leave of it, if it is a function of them."""

_MOST_COLUMNS = 60
"""The number of columns of categories that are compared with each other."""

_DEPENDENT = 0.5
"""Cramér's V above which two categories are replaced together."""

_MOST_PAIRS = 100
"""The most combinations of categories that are replaced together."""


def notes(table: pa.Table) -> dict[str, str]:
    """A sentence for each column that others determine, or that determines an earlier one."""
    sample = table.slice(0, _ROWS)
    found = _linear(sample)
    coded = dict(list(_codes(sample).items())[:_MOST_COLUMNS])
    names = list(coded)
    for at, name in enumerate(names):
        for other in names[:at]:
            pairs = _pairs(coded[other], coded[name])
            if pairs == coded[other].max() + 1:
                found.setdefault(name, f"{other} determines it: drop one of them.")
            elif pairs == coded[name].max() + 1:
                found.setdefault(name, f"It determines {other}: drop one of them, or keep the coarser one.")
    return found


def _linear(sample: pa.Table) -> dict[str, str]:
    """Columns of numbers that are weighted sums of others."""
    columns = {}
    for name in sample.column_names:
        kind = sample.schema.field(name).type
        if types.is_integer(kind) or types.is_floating(kind):
            values, null = numeric.read(sample.column(name).combine_chunks())
            columns[name] = np.where(null, np.nan, values) if null.size else values
    if len(columns) < 2:
        return {}
    names, values = list(columns), np.column_stack(list(columns.values()))
    values = values[(np.abs(values) < numeric.MAX_MAGNITUDE).all(axis=1)]
    if len(values) < 10 * len(names):
        return {}
    spread = values.std(axis=0)
    kept = np.flatnonzero(spread > 0)
    if np.linalg.eigvalsh(np.corrcoef(values[:, kept], rowvar=False).reshape(len(kept), -1)).min(initial=1) > _EXACT:
        return {}  # no column is nearly a sum of others
    return _sums([names[i] for i in kept], (values[:, kept] - values[:, kept].mean(axis=0)) / spread[kept])


def _sums(names: list[str], values: Floats) -> dict[str, str]:
    """For each column that others add up to, which ones; the last of several is named."""
    found: dict[str, str] = {}
    for at in reversed(range(len(names))):
        others = [i for i in range(len(names)) if i != at and names[i] not in found]
        if not others:
            continue
        weights = np.linalg.lstsq(values[:, others], values[:, at], rcond=None)[0]
        if np.mean((values[:, at] - values[:, others] @ weights) ** 2) < _EXACT:
            used = [names[i] for i, weight in zip(others, weights, strict=True) if abs(weight) > 1e-4]
            found[names[at]] = f"{' and '.join(used[:4])} determine{'' if len(used) > 1 else 's'} it: drop one of them."
    return found


def _codes(sample: pa.Table) -> dict[str, Codes]:
    """The categories of columns that have several, each of some records, as numbers."""
    coded = {}
    for name in sample.column_names:
        kind = sample.schema.field(name).type
        if types.is_nested(kind) or types.is_null(kind) or types.is_floating(kind):
            continue
        column = sample.column(name).combine_chunks()
        column = column.dictionary_decode() if types.is_dictionary(kind) else column
        indices = column.dictionary_encode(null_encoding="encode").indices.to_numpy()
        if 1 < indices.max(initial=0) + 1 <= len(sample) // 10:
            coded[name] = indices.astype(np.int64)
    return coded


def _pairs(a: Codes, b: Codes) -> int:
    """The number of combinations that occur: as many as one column has categories if it determines the other."""
    return len(np.unique(a * (b.max() + 1) + b))


def dependent_groups(table: pa.Table, domains: Mapping[str, int]) -> dict[str, str]:
    """The joint group of each column of categories that depends on another, by its number of values."""
    sample = table.slice(0, _ROWS)
    coded = {name: codes for name, codes in _codes(sample.select(list(domains))).items() if domains[name] > 1}
    groups: dict[str, str] = {}
    names = list(coded)
    for at, name in enumerate(names):
        for other in names[at + 1 :]:
            small = domains[name] * domains[other] <= _MOST_PAIRS
            if small and not {name, other} & set(groups) and _association(coded[name], coded[other]) > _DEPENDENT:
                groups[name] = groups[other] = f"{name}_{other}"
    return groups


def _association(a: Codes, b: Codes) -> float:
    """Cramér's V of two columns."""
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / counts.sum()
    squared = float(((counts - expected) ** 2 / expected).sum() / counts.sum())
    return float(np.sqrt(squared / (min(counts.shape) - 1)))


def rare_categories(array: pa.Array, fewest: int = 5) -> int:
    """The number of categories that fewer records have."""
    return int(pc.sum(pc.less(pc.value_counts(array.drop_null()).field("counts"), fewest)).as_py() or 0)
