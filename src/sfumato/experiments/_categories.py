"""Copies of one column of categories at many levels, on one path and independent of each other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.policy.document import Policy


def copies(table: pa.Table, retentions: Any, size: int, key: Key, *, apart: bool) -> list[pa.Table]:
    """A copy for each retention, in their order; the column holds whole numbers from 0 on."""
    role = 'role = "independent", of = "uniform"' if apart else 'role = "uniform"'
    ladder = "".join(f"l{i} = {kept}\n" for i, kept in enumerate(sorted(map(float, retentions), reverse=True)))
    column = f"{table.column_names[0]} = {{ {role}, domain = {{ min = 0, max = {size - 1} }} }}"
    scheme = Policy.loads(f'dataset = "d"\n[levels]\n{ladder}[columns]\n{column}').fit(table)
    return scheme.release_levels(table, [Level(float(kept)) for kept in retentions], key)
