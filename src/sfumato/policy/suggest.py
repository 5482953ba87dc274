"""Policy suggestions: a commented draft from a look at the table, to be corrected by somebody who knows the data."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tomli_w
from pyarrow import types

from sfumato.kernels import Floats
from sfumato.policy.roles import DROP
from sfumato.policy.targets import Target
from sfumato.tables import numeric
from sfumato.tables.domain import observed
from sfumato.tables.source import Source

EXAMINED = 1_000_000
"""The number of rows that are examined."""

_MAX_BYTES = 1 << 28
"""The number of bytes after which no more rows are examined."""

FEW = 20
"""Integers with at most this number of distinct values are taken for codes."""

LISTED = 60
"""Domains of at most this number of values are written out."""

_DIRECT = re.compile(
    r"(^|_)(name|surname|forename|e?mail|phone|tel|mobile|address|street|ssn|iban|passport)($|_)", re.IGNORECASE
)
_IDENTITY = re.compile(
    r"(^|_)([a-z]?id|mrn|key|uuid|guid|nr|no|number|code|record|patient|person|customer)($|_|\d)", re.IGNORECASE
)

_HEAD = """\
# A draft, from a look at {examined} rows. Read every line before you release anything.{ids}

dataset = {dataset}

# Trust levels, from the most to the least trusted: fidelity 1 would be the original, and near 0 a copy is synthetic
# data. At 0.8 the best linear attacker has a residual error of 20 % of a column's variance. The ladder is fixed for
# the dataset's life; any level between, above or below can be requested on demand. `sfumato level 0.8` shows more.
{attacked}[levels]
internal = {levels[0]:g}
partner = {levels[1]:g}
public = {levels[2]:g}

# Rows are released in a secret order. With order = "keep" above, neighbours that are alike can be averaged.

# Roles: id (identifies a record), keep (released unchanged), drop (left out), copula (copies look like the data: same
# values, margins and rank correlations, other people), gaussian (noise in the numbers themselves, which mining can
# correct for), uniform (random replacement; correlated categories should share a `joint` group).
[columns]
"""

_SHARED, _SPIKE, _MOST_SPECIAL = 0.01, 5, 12
"""Special values are of at least this share of the records, so many times as frequent as most values, and so many."""

_UNITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares are rounded to the first of these that is at least that of 16 records."""

_FEWEST_ROWS = 500
"""With fewer values a margin would have few bins, and rare values would be lost."""

_NO_ID = (
    "\n# No column seems to identify a record, so its row number does: add an id if rows may move between versions."
)

_FOLLOWS = " It follows the order of the rows, so that neighbours can be averaged: hide it so, or use random ids."

Suggestion = tuple[str, dict[str, Any], str]
"""A role, its options, and the reason."""


def draft(
    table: Any,
    *,
    dataset: str = "table",
    calibrated: Sequence[tuple[float, Target]] = (),
    plain_noise: bool | Collection[str] = False,
) -> str:
    """The draft in TOML, with a comment for each choice.

    Args:
        table: the table.
        dataset: the name of the dataset.
        calibrated: targets, each with the highest fidelity at which it holds.
        plain_noise: whether all columns, or which of them, are to have the roles `gaussian` and `uniform` rather than
            `copula`; in a small table all have.

    """
    source = Source.of(table)
    batches, rows, size = [], 0, 0
    for batch in source.batches():
        batches.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= EXAMINED or size >= _MAX_BYTES:
            break
    examined = pa.Table.from_batches(batches, schema=source.schema)
    plain = examined.column_names if plain_noise is True or rows < _FEWEST_ROWS else plain_noise or ()
    lines, has_id = _column_lines(examined, plain)
    share = f"{rows:,}" if source.rows in (None, rows) else f"the first {rows:,} of {source.rows:,}"
    highest = min((fidelity for fidelity, _ in calibrated), default=0.8)
    head = _HEAD.format(
        examined=share,
        dataset=_value(dataset),
        ids="" if has_id else _NO_ID,
        attacked=f"# No attack that sfumato knows breaks the targets below up to {highest:g}.\n" if calibrated else "",
        levels=[round(highest * share, 3) for share in (1, 0.625, 0.25)],
    )
    targets = [f"{_key(target.column)} = {_value(target.requirement())}" for _, target in calibrated]
    audit = ["# What no attack may achieve; else no copy is made.\n[audit]", *targets] if calibrated else []
    return "\n".join([head, *lines, *audit])


def _column_lines(examined: pa.Table, plain: Collection[str]) -> tuple[list[str], bool]:
    """The line of each column with its comment, and whether one of them identifies records."""
    lines, has_id = [], False
    for name in examined.column_names:
        role, options, why = _suggestion(name, examined.column(name), has_id=has_id)
        has_id = has_id or role == "id"
        present = len(examined.column(name)) - examined.column(name).null_count
        if name not in plain and role in ("gaussian", "uniform") and present >= _FEWEST_ROWS:
            role, options, why = _margin_preserving(role, why)
        elif name in plain and role == "copula":
            role, why = DROP, "times of day, which only copula can perturb; left out."
        value = _value({"role": role, **options}) if options else _value(role)
        lines.append(f"# {_key(name)}: {why}\n{_key(name)} = {value}\n")
    return lines, has_id


def _suggestion(name: str, column: pa.ChunkedArray, *, has_id: bool) -> Suggestion:
    kind = column.type
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(plain) or types.is_null(plain):
        return "drop", {}, f"{kind}, which no mechanism can perturb; left out."
    if _DIRECT.search(name):
        return "drop", {}, "a direct identifier of a person; left out."
    whole = column.combine_chunks()
    array = whole.dictionary_decode() if types.is_dictionary(kind) else whole
    distinct = pc.count_distinct(array).as_py()
    if array.null_count == len(array) and len(array):
        return "drop", {}, "nothing but missing values; left out."
    if _is_identifier(name, array, distinct):
        return _identifier(array, has_id=has_id)
    return _of_type(plain, array, distinct)


def _of_type(plain: pa.DataType, array: pa.Array, distinct: int) -> Suggestion:
    """What the type of a column and the number of its values suggest."""
    if types.is_floating(plain) or types.is_decimal(plain):
        return _numbers(array, "amounts")
    if numeric.is_temporal(plain):
        return "gaussian", {}, f"times ({plain}), which keep their type."
    if types.is_time(plain):
        return "copula", {}, "times of day; copies have its margin."
    if types.is_integer(plain):
        if distinct <= FEW:
            return _categories(array, distinct, "codes")
        hint = "; if they are codes rather than amounts, use uniform" if distinct <= 100 * FEW else ""
        return _numbers(array, f"whole numbers with {distinct:,} values{hint}")
    if distinct > max(LISTED, len(array) // 20):
        return "drop", {}, f"text with {distinct:,} values, too many to be categories; left out."
    return _categories(array, distinct, "categories")


def _margin_preserving(role: str, why: str) -> Suggestion:
    """The role copula instead of noise; it moves outliers into the outermost bins."""
    what = re.split(r"[;,.]", why, maxsplit=1)[0]
    note = "the names of its categories become public" if role == "uniform" else "its largest few are moved inwards"
    return "copula", {}, f"{what}; copies have its margin, and {note}."


def _identifier(array: pa.Array, *, has_id: bool) -> Suggestion:
    if has_id:
        return "drop", {}, "a different value in every row, like another identifier; left out."
    text = "a different value in every row: identifies the record, and is released unless `publish = false`."
    return "id", {}, text + (_FOLLOWS if _is_sorted(array) else "")


def _is_sorted(array: pa.Array) -> bool:
    """Whether the values rise, or fall, from row to row."""
    order = pc.sort_indices(array).to_numpy()
    rows = np.arange(len(array))
    return bool((order == rows).all() or (order == rows[::-1]).all())


def _is_identifier(name: str, array: pa.Array, distinct: int) -> bool:
    """Whether a column that is different in every row looks like an identifier rather than an amount or a free text."""
    if len(array) < 2 or distinct < len(array) or array.null_count:
        return False
    if types.is_integer(array.type):
        ends = pc.min_max(array).as_py()
        dense = ends["max"] - ends["min"] < 2 * len(array)  # a running number
        return bool(_IDENTITY.search(name)) or (dense and len(array) > FEW)
    if types.is_string(array.type) or types.is_large_string(array.type):
        words = pc.any(pc.match_substring_regex(array, r"\s")).as_py() or pc.max(pc.utf8_length(array)).as_py() > 40
        return not words
    return False


def _numbers(array: pa.Array, what: str) -> Suggestion:
    """Noise, with a clip where some values are outliers."""
    values, null = numeric.read(array)
    values = values[~null] if null.size else values
    values = values[np.isfinite(values)]
    if not values.size:
        return "gaussian", {}, f"{what}, all missing."
    if np.abs(values).max() > numeric.MAX_MAGNITUDE:
        return DROP, {}, f"{what}, up to {np.abs(values).max():g}: too large for noise; state them in another unit."
    if types.is_integer(array.type) and values.std() >= 8:
        what += "; add `integer = true` to keep them whole"
    least, low, quarter, three, high, most = np.quantile(values, [0, 0.001, 0.25, 0.75, 0.999, 1])
    reach = 6 * (three - quarter)
    ends = _round(low if least < quarter - reach else least, high if most > three + reach else most)
    cut = int(((values < ends[0]) | (values > ends[1])).sum())
    below, above = ends[0] - least, most - ends[1]
    options = _special(values) if types.is_integer(array.type) or types.is_floating(array.type) else {}
    why = _why_special(**options)
    if not reach or below + above < 0.05 * (most - least) or ends[0] >= ends[1]:
        return "gaussian", options, f"{what}, from {least:g} to {most:g}.{why}"
    furthest = most if above > below else least
    return (
        "gaussian",
        {"clip": ends, **options},
        f"{what}. Some are outliers, up to {furthest:,.10g}, which noise would not hide: clipped at the 0.1 % and "
        f"99.9 % quantiles, which changes {cut:,} values.{why}",
    )


def _special(values: Floats) -> dict[str, Any]:
    """The values that many records share, stated so that analysts need not guess; nothing where they are too many."""
    distinct, counts = np.unique(values, return_counts=True)
    usual = max(float(np.median(counts)), 1.0)
    shared = np.flatnonzero((counts >= max(_SHARED * len(values), 16)) & (counts >= _SPIKE * usual))
    if len(shared) > _MOST_SPECIAL:
        return {}
    unit = next((unit for unit in _UNITS if unit >= 16 / len(values)), 1.0)
    shares = np.maximum(np.rint(counts[shared] / len(values) / unit), 1) * unit
    if shares.sum() >= 1:
        return {}
    pairs = zip(distinct[shared].tolist(), shares.tolist(), strict=True)
    return {"special": [[int(value) if value.is_integer() else value, round(share, 3)] for value, share in pairs]}


def _why_special(special: Sequence[Sequence[float]] = ()) -> str:
    shared = ", ".join(f"{value:,.10g}" for value, _ in special)
    return f" Many records share {shared}: stated for analysts, with the share of each." if shared else ""


def _round(low: float, high: float) -> list[float]:
    """Two ends as people would write them: rounded outwards to a hundredth of their distance, whole where they are."""
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 2) if high > low else 1.0
    ends = [round(math.floor(low / unit) * unit, 12), round(math.ceil(high / unit) * unit, 12)]
    return [int(end) if end.is_integer() else end for end in ends]


def _categories(array: pa.Array, distinct: int, what: str) -> Suggestion:
    """Random replacement over a domain that is written out where it is short."""
    if distinct > LISTED or not distinct:
        return (
            "uniform",
            {},
            f"{distinct:,} {what}; the domain is taken from the table; state it explicitly if you can.",
        )
    values = observed(array)
    if distinct == 1:
        return (
            "uniform",
            {"domain": values},
            "one value only, so that noise hides nothing; drop it, or add possible values.",
        )
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
