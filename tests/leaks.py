"""What a thief may do to a copy before it is found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.experiments._leaked_copies import NUMBERS, two_significant_digits

DAMAGES = ("dropped", "shuffled", "columns", "rounded", "altered")


def damaged(copy: pa.Table, damages: set[str], rng: np.random.Generator, *, ids: bool = True) -> pa.Table:
    """The copy after what a thief did: half of the rows dropped, a column removed, a tenth of the cells altered."""
    cells = {name: np.array(copy[name].to_numpy()) for name in NUMBERS}
    if "altered" in damages:
        for name, values in cells.items():
            hit = rng.random(len(values)) < 0.1
            cells[name] = np.where(hit, rng.permutation(values), values)
    if "rounded" in damages:
        cells = {name: two_significant_digits(values) for name, values in cells.items()}
    if "columns" in damages:
        del cells[NUMBERS[rng.integers(4)]]
    rows = np.arange(copy.num_rows)
    rows = rng.permutation(rows) if "shuffled" in damages else rows
    rows = rows[rng.random(len(rows)) < 0.5] if "dropped" in damages else rows
    out = pa.table({"id": copy["id"], **cells} if ids else cells)
    return out.take(rows)
