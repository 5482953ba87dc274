"""Age and Income of li2012, and copies of them at random levels, ours and with independent noise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from sfumato.audit.attack import attack, score
from sfumato.experiments import _data
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.policy.document import Policy
from sfumato.release.scheme import TableScheme

NAMES = ("Age", "Income")
OURS, INDEPENDENT = "Ours", "IN"
_ROLES = {OURS: '"gaussian"', INDEPENDENT: '{ role = "independent", of = "gaussian" }'}


def people(rows: int) -> pa.Table:
    """The first so many."""
    values, _ = _data.census()
    return pa.table({name: values[:rows, i] for i, name in enumerate(NAMES)})


def source() -> str:
    """What stands in for the paper's table."""
    return _data.census()[1]


def scheme(table: pa.Table, noises: Iterable[float], how: str, of: str = "gaussian") -> TableScheme:
    """A policy with a level for each noise σ², fitted to the table."""
    ladder = "".join(f"l{i} = {1 / (1 + noise)}\n" for i, noise in enumerate(sorted(noises)))
    role = _ROLES[how].replace("gaussian", of)
    columns = "".join(f"{name} = {role}\n" for name in table.column_names)
    return Policy.loads(f'dataset = "table"\n[levels]\n{ladder}[columns]\n{columns}').fit(table)


def copies(table: pa.Table, noises: Any, how: str, key: Key) -> list[pa.Table]:
    """A copy for each noise, in their order."""
    levels = [Level(1 / (1 + float(noise))) for noise in noises]
    return scheme(table, map(float, noises), how).release_levels(table, levels, key)


def errors(held: list[pa.Table], table: pa.Table, **knowledge: Any) -> dict[str, float]:
    """What the joint LLSE attack leaves of each attribute's variance."""
    found = score(attack("llse", held, **knowledge), table)
    return {name: float(found.number(name).error.attack.value) for name in table.column_names}
