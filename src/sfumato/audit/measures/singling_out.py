"""Singling out: predicates that are true of one record of a copy, and of one record of the original too.

In the manner of Anonymeter: a record of the copy is described by a few of its values, numbers by which side of the
median they lie on, and the description counts where it fits exactly one record of the copy. It succeeds if it fits
exactly one record of the original as well. The control is a group of records of the same size that was not released.
"""

from __future__ import annotations

import numpy as np

from sfumato.audit.measures.excess_risk import ExcessRisk, excess_risk
from sfumato.audit.measures.mixed_table import MixedTable
from sfumato.kernels import Floats, Rows

ATTEMPTS = 500
"""The number of descriptions, if so many are found in `_TRIES` times as many trials."""
_TRIES = 6
FEWEST = 20
"""With fewer descriptions, nothing can be said."""
_CHUNK = 200
COLUMNS = (1, 3, 5)
"""The numbers of columns that a description uses."""


def singling_out(original: MixedTable, copy: MixedTable, control: MixedTable, columns: int) -> ExcessRisk | None:
    """The risk by descriptions of so many columns; the tables have as many records; none if hardly any was found."""
    rng = np.random.default_rng(0)
    columns = min(columns, len(copy.columns))
    if not columns or not len(copy):
        return None
    medians = np.array([np.median(line[~np.isnan(line)]) if not np.isnan(line).all() else 0 for line in copy.values.T])
    hits, found = np.zeros(3, np.int64), 0  # on the original, the control, and the original by guessing
    for _ in range(_TRIES * ATTEMPTS // _CHUNK):
        records: Floats = copy.values[rng.integers(len(copy), size=_CHUNK)]
        chosen: Rows = rng.random((_CHUNK, len(copy.columns))).argsort(axis=1)[:, :columns]
        single = np.flatnonzero(_counts(copy, records, chosen, medians) == 1)[: ATTEMPTS - found]
        guesses = _random_records(copy, len(single), rng)
        for i, (table, described) in enumerate(
            ((original, records[single]), (control, records[single]), (original, guesses))
        ):
            hits[i] += int((_counts(table, described, chosen[single], medians) == 1).sum())
        found += len(single)
        if found == ATTEMPTS:
            break
    name = "one column" if columns == 1 else f"{columns} columns"
    return excess_risk(name, int(hits[0]), int(hits[1]), int(hits[2]), found) if found >= FEWEST else None


def _counts(table: MixedTable, records: Floats, columns: Rows, medians: Floats) -> Rows:
    """How many records of a table each description fits."""
    matching = np.ones((len(table), len(records)), np.bool_)
    rows = np.arange(len(records))
    for column in columns.T:
        value, values = records[rows, column], table.values[:, column]
        number, above = table.is_number[column], value > medians[column]
        fits = np.where(number, np.where(above, values >= value, values <= value), values == value)
        matching &= np.where(np.isnan(value), np.isnan(values), fits)
    counts: Rows = matching.sum(axis=0)
    return counts


def _random_records(table: MixedTable, count: int, rng: np.random.Generator) -> Floats:
    """Values of unrelated records, put together."""
    rows = rng.integers(len(table), size=(count, len(table.columns)))
    records: Floats = table.values[rows, np.arange(len(table.columns))]
    return records
