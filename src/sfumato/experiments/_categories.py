"""Copies of one categorical column at many retention probabilities, on one path or independent of each other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.policy import Policy


def copies(table: pa.Table, retentions: Any, size: int, key: Key, *, independent: bool) -> list[pa.Table]:
    """One copy per retention probability, in the given order; the column holds integers from 0 to `size - 1`."""
    role = 'role = "independent", of = "uniform"' if independent else 'role = "uniform"'
    ladder = "".join(f"l{i} = {p}\n" for i, p in enumerate(sorted(map(float, retentions), reverse=True)))
    column = f"{table.column_names[0]} = {{ {role}, domain = {{ min = 0, max = {size - 1} }} }}"
    scheme = Policy.loads(f'dataset = "d"\norder = "keep"\n[levels]\n{ladder}[columns]\n{column}').fit(table)
    return scheme.release_levels(table, [Level(float(p)) for p in retentions], key)
