"""Evenly spaced rows: some of many records, where all would take too long."""

from __future__ import annotations

import numpy as np

from sfumato.kernels import Rows


def evenly_spaced(rows: int, most: int) -> Rows:
    """The indices of all rows, or of so many of them at equal distances."""
    return np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)
