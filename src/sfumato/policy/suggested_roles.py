"""Suggested roles: what the name, the type, the values and the labels of a column suggest, with the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.kernels import Floats
from sfumato.policy.personal_data import direct_identifier
from sfumato.policy.relations import rare_categories
from sfumato.policy.roles import DROP
from sfumato.tables import numeric
from sfumato.tables.domain import LISTED, most_categories, observed
from sfumato.tables.labels import labels_of

FEW = 20
"""Integers with at most this number of distinct values are taken for codes."""

_IDENTITY = re.compile(
    r"(^|_)([a-z]?id|mrn|key|uuid|guid|nr|no|number|code|record|patient|person|customer)($|_|\d)"
    r"|(nummer|nr|numero|numéro|kennung|schlüssel|schluessel)$",
    re.IGNORECASE,
)

_ENTITY = re.compile(
    r"(patient|person|subject|participant|respondent|household|family|customer|client|member|insured|student|pupil"
    r"|employee|worker|user|animal|haushalt|kunde|versichert|menage|ménage|familie|(^|[-_ .])(hh|hid))"
    r"(s|en|n)?[-_ .]?(id|nr|no|number|key|code|nummer)?$",
    re.IGNORECASE,
)

_FEWEST_ENTITIES, _FEWEST_EACH = 100, 1.5
"""The fewest entities of a table, and the fewest rows of each on average, for the role entity to be suggested."""

_EXACT = 2**53
"""Whole numbers up to here are exact as decimals."""

_SHARED, _SPIKE, _MOST_SPECIAL = 0.01, 5, 12
"""Special values are of at least this share of the records, so many times as frequent as most values, and so many."""

_UNITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares are rounded to the first of these that is at least that of 16 records."""

_WEIGHT = re.compile(r"(^|[-_ .])(\w*weight|wt|wgt|pond|poids|\w*gewicht|hochrechnung\w*)s?($|[-_ .\d])", re.IGNORECASE)

_WEIGHTS = (
    " If these are survey weights, perturbed ones bias every estimate, and `sfumato mine` does not weight: keep them, "
    "or drop them and release the design variables."
)

_CODES = re.compile(r"-(1|[789]|[789]{2,})|([89])\2+")
"""Numbers that often stand for an answer that is missing, such as 99, 888 and -1."""

_APART = 1.5
"""A code for missing values is so many times as large as the largest of the others."""

_FOLLOWS = " It follows the order of the rows, so that neighbours could be averaged if it were shown."

Suggestion = tuple[str, dict[str, Any], str]
"""A role, its options, and the reason."""


def suggestion(field: pa.Field, column: pa.ChunkedArray, *, has_id: bool) -> Suggestion:
    """The role of a column in plain noise, its options and the reason."""
    name, kind = field.name, column.type
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_nested(plain) or types.is_null(plain):
        return "drop", {}, f"{kind}, which no mechanism can perturb; left out."
    whole = column.combine_chunks()
    array = whole.dictionary_decode() if types.is_dictionary(kind) else whole
    distinct = pc.count_distinct(array).as_py()
    if array.null_count == len(array) and len(array):
        return "drop", {}, "nothing but missing values; left out."
    personal = direct_identifier(name, array)
    if personal:
        return "drop", {}, f"{personal}: a direct identifier; left out."
    if _is_identifier(name, array, distinct):
        return _identifier(array, has_id=has_id)
    if labels_of(field) and distinct <= LISTED and is_code(array):
        return _categories(array, distinct, f"codes with labels ({_some(labels_of(field))})")
    return _of_type(plain, array, distinct)


def _some(labels: dict[Any, str]) -> str:
    """The first labels of a column."""
    shown = [f"{code} = {text}" for code, text in list(labels.items())[:3]]
    return ", ".join(shown) + (", ..." if len(labels) > len(shown) else "")


def is_code(array: pa.Array) -> bool:
    """Whether all values of a column are whole numbers or texts, as codes are."""
    if not types.is_floating(array.type):
        return bool(types.is_integer(array.type) or types.is_string(array.type) or types.is_large_string(array.type))
    values = array.drop_null().to_numpy(zero_copy_only=False)
    return bool((np.abs(values) < _EXACT).all() and (values == np.rint(values)).all())


def _of_type(plain: pa.DataType, array: pa.Array, distinct: int) -> Suggestion:
    """What the type of a column and the number of its values suggest."""
    if types.is_floating(plain) and distinct <= FEW and is_code(array):
        return _categories(array.cast(pa.int64()), distinct, "codes, stored as decimals")
    if types.is_floating(plain) or types.is_decimal(plain):
        return _numbers(array, "amounts")
    if numeric.is_temporal(plain):
        return "gaussian", {}, f"{'dates' if types.is_date(plain) else 'times'}, which keep their type."
    if types.is_time(plain):
        return "copula", {}, "times of day; copies have its margin."
    if types.is_integer(plain):
        if distinct <= FEW:
            return _categories(array, distinct, "codes")
        hint = "; if they are codes rather than amounts, use uniform" if distinct <= 100 * FEW else ""
        return _numbers(array, f"whole numbers with {distinct:,} values{hint}")
    if distinct > most_categories(len(array)):
        return "drop", {}, f"text with {distinct:,} values, too many to be categories; left out.{_odd_cells(array)}"
    return _categories(array, distinct, "categories")


def margin_preserving(role: str, why: str) -> Suggestion:
    """The role copula instead of noise; it moves outliers into the outermost bins."""
    what = re.split(r"; |\.( |$)|, (?=from|which|all)", why, maxsplit=1)[0]
    note = "the names of its categories become public" if role == "uniform" else "its largest few are moved inwards"
    return "copula", {}, f"{what}; copies have its margin, and {note}."


def _identifier(array: pa.Array, *, has_id: bool) -> Suggestion:
    if has_id:
        return "drop", {}, "a different value in every row, like another identifier; left out."
    text = "a different value in every row: identifies the record. Copies do not show it, unless `publish = true`."
    return "id", {"publish": False}, text + (_FOLLOWS if _is_sorted(array) else "")


def is_entity(name: str, column: pa.ChunkedArray) -> bool:
    """Whether a column seems to name persons or households that have several rows each."""
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not _ENTITY.search(name) or not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
        return False
    distinct = pc.count_distinct(column.combine_chunks()).as_py()
    return not column.null_count and distinct >= _FEWEST_ENTITIES and len(column) >= _FEWEST_EACH * distinct


def hints(name: str, column: pa.ChunkedArray) -> str:
    """What somebody who knows the data should look at in a column of numbers."""
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind)):
        return ""
    return (_WEIGHTS if _WEIGHT.search(name) else "") + _codes_for_missing(column.combine_chunks())


def _codes_for_missing(array: pa.Array) -> str:
    """A hint at the largest or smallest value where it looks like a code, several records have it, and none is near."""
    distinct = pc.value_counts(array.drop_null())
    values, counts = (distinct.field(part).to_numpy(zero_copy_only=False) for part in ("values", "counts"))
    order = np.argsort(values, kind="stable")
    if len(order) < 3 or not np.isfinite(values.astype(np.float64)).all():
        return ""
    (low, high), (next_low, next_high) = values[order[[0, -1]]], values[order[[1, -2]]]
    for code, near, at in ((high, next_high, order[-1]), (low, next_low, order[0])):
        far = code > _APART * near > 0 if code > 0 else near >= 0
        if far and counts[at] > 1 and _CODES.fullmatch(f"{code:.10g}"):
            return (
                f" {code:.10g} is far from all other values (the next is {near:,.10g}), and {counts[at]:,} records "
                "have it: if it stands for a missing value, empty these cells, or state it as `missing` in [file] "
                "where no other column means it; else copies show it as a number."
            )
    return ""


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
    least, low, high, most = np.quantile(values, [0, 0.001, 0.999, 1])
    quarter, three = _middle(values)
    reach = 6 * (three - quarter)
    ends = _round(low if least < quarter - reach else least, high if most > three + reach else most)
    cut = int(((values < ends[0]) | (values > ends[1])).sum())
    below, above = ends[0] - least, most - ends[1]
    options = special_values(values) if types.is_integer(array.type) or types.is_floating(array.type) else {}
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


def _middle(values: Floats) -> tuple[float, float]:
    """The quartiles; of a column in which most values are equal, as zeros often are, those of the others."""
    quarter, three = np.quantile(values, [0.25, 0.75])
    if quarter < three:
        return float(quarter), float(three)
    others = values[values != quarter]
    if not others.size:
        return float(quarter), float(three)
    low, high = np.quantile(others, [0.25, 0.75])
    return min(float(low), float(quarter)), max(float(high), float(three))


def special_values(values: Floats) -> dict[str, Any]:
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
    rare = rare_categories(array)
    merge = f" {rare} with fewer than 5 records: merge them with others." if rare else ""
    return "uniform", {"domain": values}, f"{distinct} {what}; add values that could occur but do not.{merge}"


def _odd_cells(array: pa.Array) -> str:
    """A hint where most cells of a text are numbers, and a few are not: where the first is, and not what it says."""
    odd = pc.invert(pc.match_substring_regex(array, r"^\s*-?[0-9]+([.,][0-9]+)?\s*$"))
    rows = np.flatnonzero(odd.fill_null(False).to_numpy(zero_copy_only=False))
    if not 0 < len(rows) <= 0.2 * (len(array) - array.null_count):
        return ""
    return (
        f" Most of its cells are numbers, and {len(rows):,} are not, the first in row {rows[0] + 1:,}: correct them, "
        "or state them as `missing` in [file]."
    )
