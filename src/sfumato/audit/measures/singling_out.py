"""Singling out: predicates that are true of one record of a copy, and of one record of the original too.

In the manner of Anonymeter: a record of the copy is described by a few of its values, numbers by which side of the
median they lie on, and the description counts where it fits exactly one record of the copy. It succeeds if it fits
exactly one record of the original as well. The control is a group of records of the same size that was not released.
"""

from __future__ import annotations

import numpy as np

from sfumato.audit.measures.excess_risk import ExcessRisk, excess_risk
from sfumato.audit.measures.mixed_table import MixedTable
from sfumato.kernels import Floats, Mask, Rows

ATTEMPTS = 500
"""The number of descriptions, if so many are found in `_TRIES` times as many trials."""
_TRIES = 6
COLUMNS = (1, 3, 5)
"""The numbers of columns that a description uses."""


def singling_out(original: MixedTable, copy: MixedTable, control: MixedTable, columns: int) -> ExcessRisk | None:
    """The risk by descriptions of so many columns; the three tables have as many records; none if none was found."""
    rng = np.random.default_rng(0)
    columns = min(columns, len(copy.columns))
    if not columns or not len(copy):
        return None
    medians = np.array([np.median(line[~np.isnan(line)]) if not np.isnan(line).all() else 0 for line in copy.values.T])
    hits = control_hits = baseline_hits = found = 0
    for _ in range(_TRIES * ATTEMPTS):
        record = copy.values[rng.integers(len(copy))]
        chosen: Rows = rng.choice(len(copy.columns), columns, replace=False)
        if _matches(copy, record, chosen, medians).sum() != 1:
            continue
        found += 1
        hits += bool(_matches(original, record, chosen, medians).sum() == 1)
        control_hits += bool(_matches(control, record, chosen, medians).sum() == 1)
        random = _random_record(copy, rng)
        baseline_hits += bool(_matches(original, random, chosen, medians).sum() == 1)
        if found == ATTEMPTS:
            break
    name = "one column" if columns == 1 else f"{columns} columns"
    return excess_risk(name, hits, control_hits, baseline_hits, found) if found else None


def _matches(table: MixedTable, record: Floats, columns: Rows, medians: Floats) -> Mask:
    """The records that a description fits."""
    matching: Mask = np.ones(len(table), np.bool_)
    for column in columns:
        value, values = record[column], table.values[:, column]
        if np.isnan(value):
            matching &= np.isnan(values)
        elif not table.is_number[column]:
            matching &= values == value
        elif value > medians[column]:
            matching &= values >= value
        else:
            matching &= values <= value
    return matching


def _random_record(table: MixedTable, rng: np.random.Generator) -> Floats:
    """Values of unrelated records."""
    rows = rng.integers(len(table), size=len(table.columns))
    record: Floats = table.values[rows, np.arange(len(table.columns))]
    return record
