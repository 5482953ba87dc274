"""Adoption of an earlier copy: a policy and a table with which all further copies lie on one path with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError
from sfumato.kernels import Floats
from sfumato.levels import Ladder, Level
from sfumato.policy.document import Column
from sfumato.policy.roles import DROP
from sfumato.release.policy import Policy
from sfumato.tables import numeric
from sfumato.tables.source import Source

EARLIER = "earlier"
"""The name of the earlier copy's level, and the option of a column that names what was released of it."""

_DIGITS = 3
"""Significant digits of measured noise in a policy."""

_WIDTH = 5.0
"""Standard errors by which correlations of independent noise may differ from 0."""


@dataclass(frozen=True)
class Adoption:
    """What is needed to release a table of which a copy was released earlier."""

    table: pa.Table
    """The original, with what was released of each adopted column in a further one."""
    policy: Policy
    """A draft whose level `earlier` is the earlier copy."""
    unchanged: tuple[str, ...]
    """Columns that were released as they are, which no noise can take back."""

    @property
    def sizes(self) -> dict[str, float]:
        """The standard deviation of the noise of each adopted column."""
        columns = self.policy.columns.items()
        return {name: column.options["sd"] for name, column in columns if column.role == "adopted"}


def adopt(
    table: Any,
    earlier: Any,
    *,
    by: Sequence[str] = (),
    sizes: Mapping[str, float] | None = None,
    dataset: str = "table",
) -> Adoption:
    """Draft a policy whose copies lie on one path with a copy that was released earlier.

    Args:
        table: the original.
        earlier: the copy, by whatever software, with normal noise.
        by: the columns that identify records; without any, both tables have the same rows in the same order.
        sizes: the standard deviation of the noise of some columns, where it is known; others are measured.
        dataset: the name of the dataset.

    """
    original, given = _read(table), _read(earlier)
    shown = _aligned(original, given, by)
    noise = _noise(original, shown, by)
    unchanged = tuple(name for name, values in noise.items() if not np.nan_to_num(values).any())
    adopted = sorted(set(noise) - set(unchanged))
    if not adopted:
        raise SourceError("an earlier copy must have noise in some column of numbers that the table has, got none")
    joined, columns = original, dict[str, Column]()
    for name in adopted:
        sd = (sizes or {}).get(name) or _rounded(float(np.nanstd(noise[name])))
        columns[name] = Column("adopted", {EARLIER: _free(f"{name}_{EARLIER}", joined.column_names), "sd": sd})
        joined = joined.append_column(columns[name].options[EARLIER], shown.column(name))
    records = np.column_stack([_numbers(original.column(name)) for name in adopted])
    settings: dict[str, Any] = {"fidelity": _fidelity(records, [columns[name].options["sd"] for name in adopted])}
    settings |= _correlations(np.column_stack([noise[name] for name in adopted]))
    policy = _policy(original, dataset, columns, settings)
    policy.fit(joined)  # refuses noise that does not fit
    return Adoption(joined, policy, unchanged)


def _noise(original: pa.Table, shown: pa.Table, ids: Sequence[str]) -> dict[str, Floats]:
    """The noise of each column of numbers that both have."""
    both = [name for name in original.column_names if name in shown.column_names and name not in ids]
    return {
        name: _numbers(shown.column(name)) - _numbers(original.column(name))
        for name in both
        if numeric.is_number(original.schema.field(name).type) and numeric.is_number(shown.schema.field(name).type)
    }


def _policy(original: pa.Table, dataset: str, columns: Mapping[str, Column], settings: Mapping[str, Any]) -> Policy:
    """The draft for the table, with its adopted columns and the earlier copy's level."""
    draft = Policy.suggest(original, dataset=dataset)
    levels = {name: level for name, level in draft.ladder.levels.items() if level.fidelity != settings["fidelity"]}
    levels[EARLIER] = Level(settings["fidelity"])
    hidden = {column.options[EARLIER]: Column(DROP) for column in columns.values()}
    return replace(
        draft,
        ladder=Ladder(dict(sorted(levels.items(), key=lambda one: -one[1].fidelity))),
        columns={**draft.columns, **columns, **hidden},
        settings={**draft.settings, "adopted": settings},
    )


def _read(table: Any) -> pa.Table:
    source = Source.of(table)
    return pa.Table.from_batches(source.batches(), schema=source.schema)


def _aligned(original: pa.Table, given: pa.Table, by: Sequence[str]) -> pa.Table:
    """The rows of the earlier copy in those of the original; null for records that it does not have."""
    if not by:
        if given.num_rows != original.num_rows:
            raise SourceError(
                f"an earlier copy without ids must have the rows of the table in the same order, and has "
                f"{given.num_rows:,} instead of {original.num_rows:,}; name the columns that identify records"
            )
        return given
    for name, side in ((name, side) for name in by for side in (original, given)):
        if name not in side.column_names:
            raise SourceError(f"both tables must have the column {name!r} that identifies records")
    keys = [list(zip(*(side.column(name).to_pylist() for name in by), strict=True)) for side in (original, given)]
    if any(len(set(side)) < len(side) for side in keys):
        raise SourceError(f"{', '.join(by)} must identify records, and some share them; name more columns")
    rows = {one: i for i, one in enumerate(keys[1])}
    return given.take(pa.array([rows.get(one) for one in keys[0]], pa.int64()))


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Numbers, NaN where null."""
    values: Floats = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    return values


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _fidelity(records: Floats, sizes: Sequence[float]) -> float:
    """What the earlier copy counts as: the largest share of a column that a linear attacker recovers, rounded up."""
    complete = records[~np.isnan(records).any(axis=1)]
    covariance = np.atleast_2d(np.cov(complete.T))
    total = covariance + np.diag(np.square(sizes))
    recovered = np.diag(covariance @ np.linalg.solve(total, covariance)) / np.maximum(np.diag(covariance), 1e-300)
    return min(max(math.ceil(100 * float(recovered.max())) / 100, 0.01), 0.99)


def _correlations(noise: Floats) -> dict[str, Any]:
    """The correlations of the noise, where it is not independent."""
    complete = noise[~np.isnan(noise).any(axis=1)]
    if noise.shape[1] < 2 or len(complete) < 2:
        return {}
    found = np.atleast_2d(np.corrcoef(complete.T))
    if np.abs(found - np.eye(len(found))).max() < _WIDTH / math.sqrt(len(complete)):
        return {}
    return {"correlations": [[_rounded(float(entry)) for entry in line[:i]] for i, line in enumerate(found) if i]}
