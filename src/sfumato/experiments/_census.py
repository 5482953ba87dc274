"""The census table of li2012 (Age and Income), and copies of it at random noise levels, on one path or independent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import Score
from sfumato.audit.attack import attack, score
from sfumato.experiments import _data
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme

NAMES = ("Age", "Income")
OURS, INDEPENDENT = "Ours", "IN"
_ROLES = {OURS: '"gaussian"', INDEPENDENT: '{ role = "independent", of = "gaussian" }'}


def people(rows: int) -> pa.Table:
    """Age and Income of the first `rows` people."""
    values, _ = _data.census()
    return pa.table({name: values[:rows, i] for i, name in enumerate(NAMES)})


def data_source() -> str:
    """The substitute for the paper's table, which is not public."""
    return _data.census()[1]


def scheme(table: pa.Table, noises: Iterable[float], how: str) -> TableScheme:
    """A policy with one level per noise variance σ², relative to the data's, fitted to the table."""
    ladder = "".join(f"l{i} = {1 / (1 + noise)}\n" for i, noise in enumerate(sorted(noises)))
    columns = "".join(f"{name} = {_ROLES[how]}\n" for name in table.column_names)
    return Policy.loads(f'dataset = "table"\norder = "keep"\n[levels]\n{ladder}[columns]\n{columns}').fit(table)


def copies(table: pa.Table, noises: Any, how: str, key: Key) -> list[pa.Table]:
    """One copy per noise variance, in the given order."""
    levels = [Level(1 / (1 + float(noise))) for noise in noises]
    return scheme(table, map(float, noises), how).release_levels(table, levels, key)


def llse_errors(released: list[pa.Table], table: pa.Table, **knowledge: Any) -> dict[str, float]:
    """The residual error of the joint LLSE attack on each attribute, as a share of its variance."""
    return _shares(score(attack("llse", released, **knowledge), table))


def regression_errors(released: list[pa.Table], table: pa.Table) -> dict[str, float]:
    """The residual error of the best linear combination of all copies, whatever their manifests say about them.

    Its weights are fitted to every other record, and its error is measured on those in between.
    """
    known = np.arange(0, len(table), 2)
    estimate = attack("regression", released, known=(known, table.take(known)))
    return _shares(score(estimate, table, leave_out=known))


def _shares(result: Score) -> dict[str, float]:
    """The residual error of each attribute, as a share of its variance."""
    return {number.column: float(number.error.attack.estimate) for number in result.numbers}
