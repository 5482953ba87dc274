"""Counts and conditions as Python expressions, an alternative to writing SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.mining.sql.answers import ask
from sfumato.mining.sql.syntax import quoted


def _literal(value: Any) -> str:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"


@dataclass(frozen=True)
class Condition:
    """A condition on records, in SQL; conditions are combined with `&`, `|` and `~`."""

    sql: str

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.sql}) AND ({other.sql})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.sql}) OR ({other.sql})")

    def __invert__(self) -> Condition:
        return Condition(f"NOT ({self.sql})")

    def __bool__(self) -> bool:
        raise TypeError("conditions are combined with &, | and ~, not with `and`, `or` and `not`")


class Column:
    """A column of the original, whose comparisons are conditions."""

    __hash__ = None  # type: ignore[assignment]  # equality makes a condition

    def __init__(self, name: str) -> None:
        self._sql = quoted(name)

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return Condition(f"{self._sql} IS NULL" if value is None else f"{self._sql} = {_literal(value)}")

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return Condition(f"{self._sql} IS NOT NULL" if value is None else f"{self._sql} <> {_literal(value)}")

    def __lt__(self, value: Any) -> Condition:
        return Condition(f"{self._sql} < {_literal(value)}")

    def __le__(self, value: Any) -> Condition:
        return Condition(f"{self._sql} <= {_literal(value)}")

    def __gt__(self, value: Any) -> Condition:
        return Condition(f"{self._sql} > {_literal(value)}")

    def __ge__(self, value: Any) -> Condition:
        return Condition(f"{self._sql} >= {_literal(value)}")

    def between(self, low: Any, high: Any) -> Condition:
        """The condition that a value lies between two ends, both included."""
        return Condition(f"{self._sql} BETWEEN {_literal(low)} AND {_literal(high)}")

    def isin(self, values: Sequence[Any]) -> Condition:
        """The condition that a value is one of several."""
        return Condition(f"{self._sql} IN ({', '.join(map(_literal, values))})")


def column(name: str) -> Column:
    """A column of the original: `column("age").between(30, 40) & (column("ward") == "A")`."""
    return Column(name)


def count(copy: Any, *, where: Condition | None = None, by: Sequence[str] = (), confidence: float = 0.95) -> pa.Table:
    """The number of the original's records that fulfil a condition, by group, with confidence intervals.

    count("copy.parquet", where=column("ward") == "A", by=["region"])

    """
    selected = "".join(f"{quoted(name)}, " for name in by)
    condition = f" WHERE {where.sql}" if where is not None else ""
    groups = f" GROUP BY {', '.join(map(quoted, by))}" if by else ""
    query = f'SELECT {selected}count(*) AS "count" FROM copy{condition}{groups}'  # noqa: S608 - all of it is quoted
    return ask(copy, query, confidence=confidence)
