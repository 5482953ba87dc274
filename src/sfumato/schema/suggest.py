"""A first draft of a policy, from a look at the table: to be read and corrected by somebody who knows the data."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tomli_w
from pyarrow import types

from sfumato.schema import numeric
from sfumato.schema.domain import observed
from sfumato.schema.table import Source

LOOK = 1_000_000
"""Rows that are looked at."""

FEW = 20
"""Whole numbers with at most so many distinct values are taken for codes."""

LISTED = 60
"""Domains of at most so many values are written out."""

_DIRECT = re.compile(
    r"(^|_)(name|surname|forename|e?mail|phone|tel|mobile|address|street|ssn|iban|passport)($|_)", re.IGNORECASE
)
_IDENTITY = re.compile(
    r"(^|_)(id|key|uuid|guid|nr|no|number|code|record|patient|person|customer)($|_|\d)", re.IGNORECASE
)

_HEAD = """\
# A draft, from a look at {rows:,} rows. Read every line before you release anything.

dataset = {dataset}

# Trust levels, from the most to the least trusted. A fidelity of 0.8 leaves the best linear attacker an error of
# 20 % of a numeric column's variance, and shows a category unchanged with probability 0.8. The ladder is fixed for
# the dataset's life; any level between, above or below can be asked for on demand. `sfumato level 0.8` tells more.
[levels]
internal = 0.8
partner = 0.5
public = 0.2

# Roles: id (names a record), keep (shown as it is), drop (left out), gaussian (noise), uniform (random replacement).
[columns]
"""


def draft(table: Any, *, dataset: str = "table") -> str:
    """The draft in TOML, with a comment for each choice."""
    source = Source.of(table)
    seen, rows = [], 0
    for batch in source.batches():
        seen.append(batch)
        rows += batch.num_rows
        if rows >= LOOK:
            break
    looked = pa.Table.from_batches(seen, schema=source.schema)
    has_id = False
    lines = [_HEAD.format(rows=rows, dataset=_value(dataset))]
    for name in looked.column_names:
        role, options, why = _judge(name, looked.column(name), has_id=has_id)
        has_id = has_id or role == "id"
        said = _value({"role": role, **options}) if options else _value(role)
        lines.append(f"# {name}: {why}\n{_key(name)} = {said}\n")
    return "\n".join(lines)


def _judge(name: str, column: pa.ChunkedArray, *, has_id: bool) -> tuple[str, dict[str, Any], str]:
    """A role, its options, and the reason."""
    kind = column.type
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(plain) or types.is_null(plain):
        return "drop", {}, f"{kind}, which no mechanism blurs; left out."
    whole = column.combine_chunks()
    array = whole.dictionary_decode() if types.is_dictionary(kind) else whole
    distinct = pc.count_distinct(array).as_py()
    single = len(array) > 1 and distinct == len(array) and not array.null_count
    if _DIRECT.search(name):
        return "drop", {}, "names a person directly; left out."
    if single and not has_id and not types.is_floating(plain) and (_IDENTITY.search(name) or types.is_string(plain)):
        return "id", {}, "a different value in every row: names the record, and is shown unless `publish = false`."
    if types.is_floating(plain) or types.is_decimal(plain) or numeric.is_moment(plain):
        return _noisy(array, "continuous")
    if types.is_integer(plain):
        if distinct > FEW:
            return _noisy(array, f"whole numbers with {distinct:,} values; add `integer = true` to keep them whole")
        return _categories(array, distinct, "codes")
    if distinct > max(LISTED, len(array) // 20):
        return "drop", {}, f"text with {distinct:,} values, too many to be categories; left out."
    return _categories(array, distinct, "categories")


def _noisy(array: pa.Array, what: str) -> tuple[str, dict[str, Any], str]:
    """Noise, with a clip where some values lie far outside the rest."""
    if numeric.is_moment(array.type):
        return "gaussian", {}, f"{what} ({array.type}); comes back in the same type."
    values, null = numeric.read(array)
    values = values[~null] if null.size else values
    values = values[np.isfinite(values)]
    if not values.size:
        return "gaussian", {}, f"{what}, without any value."
    low, quarter, three, high = np.quantile(values, [0.001, 0.25, 0.75, 0.999])
    reach = 6 * (three - quarter)
    far = int(((values < quarter - reach) | (values > three + reach)).sum())
    if not far or low >= high:
        return "gaussian", {}, f"{what}, from {values.min():g} to {values.max():g}."
    clip = [float(f"{low:.3g}"), float(f"{high:.3g}")]
    return (
        "gaussian",
        {"clip": clip},
        f"{what}; {far:,} values lie far outside the rest (up to {values[abs(values).argmax()]:g}) and no noise would "
        "hide them: clipped at the 0.1 % and 99.9 % quantiles.",
    )


def _categories(array: pa.Array, distinct: int, what: str) -> tuple[str, dict[str, Any], str]:
    """Random replacement over a domain that is written out where it is short."""
    if distinct > LISTED or not distinct:
        return "uniform", {}, f"{distinct:,} {what}; the domain is what the table holds, better state it."
    values = observed(array)
    return "uniform", {"domain": values}, f"{distinct} {what}; add values that could occur but do not."


def _value(value: Any) -> str:
    """A TOML value on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)
