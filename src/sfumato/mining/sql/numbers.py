"""Columns as numbers in SQL: dates in days, and rescaled copies brought back to sums of the original and of noise."""

from __future__ import annotations

import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.copy import Copy
from sfumato.mining.sql.syntax import quoted


def as_number(copy: Copy, name: str) -> str:
    """The SQL expression of a column as a number; dates count in days since 1970."""
    kind, model = copy.source.schema.field(name).type, copy.noise_model(name)
    number = f"{quoted(name)}::DOUBLE"
    if pa.types.is_date(kind):
        number = f"(CAST({quoted(name)} AS DATE) - DATE '1970-01-01')::DOUBLE"
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        raise MiningError(
            f"{name!r} holds timestamps or durations, which SQL queries do not support; use Moments for it"
        )
    if model is None or not model.centre:
        return number
    return f"({model.centre[0]!r} + ({number} - {model.centre[0]!r}) / {model.shrinkage!r})"
