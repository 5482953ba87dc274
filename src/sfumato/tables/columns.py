"""Columns of a table in the terms of a model: numbers as doubles, categories as indices into their domains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from sfumato.kernels import Floats, Rows
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.tables import numeric
from sfumato.tables.domain import Domain


def numbers_of(table: pa.Table, columns: Sequence[str]) -> Floats:
    """Some columns as doubles, one row per record; NaN where missing."""
    out = np.empty((len(columns), table.num_rows)).T  # column by column in memory, as Arrow has it
    for i, name in enumerate(columns):
        values, null = numeric.read(contiguous(table.column(name)))
        out[:, i] = np.where(null, np.nan, values) if null.size else values
    return out


def noisy_numbers(table: pa.Table, model: GaussianNoise) -> Floats:
    """The numbers of a copy as sums of the original and of noise: a rescaled copy is brought back to that."""
    return restored(numbers_of(table, model.columns), model)


def restored(values: Floats, model: GaussianNoise) -> Floats:
    """Numbers of a copy, one column per column of its model, as sums of the original and of noise."""
    if not model.centre:
        return values
    centre = np.array(model.centre)
    out: Floats = centre + (values - centre) / model.shrinkage
    return out


def codes_of(table: pa.Table, model: UniformReplacement) -> Rows:
    """One index over the product of the domains; -1 where a value is missing and stays missing."""
    if len(model.columns) == 1:
        domain = Domain.decode(model.domains[0])
        codes = domain.codes(contiguous(table.column(model.columns[0])), model.columns[0])
        return np.where(codes < 0, domain.count, codes) if model.perturbs_null else codes
    total, missing = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, np.bool_)
    for name, encoded in zip(model.columns, model.domains, strict=True):
        domain = Domain.decode(encoded)
        codes = domain.codes(contiguous(table.column(name)), name)
        missing |= codes < 0
        total = total * (domain.count + model.perturbs_null) + np.where(codes < 0, domain.count, codes)
    return total if model.perturbs_null else np.where(missing, -1, total)


def with_bins(table: pa.Table, models: Iterable[UniformReplacement]) -> pa.Table:
    """An original whose columns of numbers are in the bins that copies show them in."""
    for model in models:
        for name, encoded in zip(model.columns, model.domains, strict=True):
            domain = Domain.decode(encoded)
            if domain.edges and name in table.column_names:
                codes = domain.codes(contiguous(table.column(name)), name)
                shown = domain.array(np.maximum(codes, 0), codes < 0, pa.string())
                table = table.set_column(table.column_names.index(name), name, shown)
    return table


def contiguous(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies
    return column
