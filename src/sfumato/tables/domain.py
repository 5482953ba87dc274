"""Domains of categorical columns: the values that a column may take, in a fixed order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import PolicyError, SourceError

CategoryCodes = npt.NDArray[np.int64]

LARGEST = 1 << 31
"""The largest number of values of a domain, or of the product of the domains of a joint group."""

_FEW_ROWS, _FEW_VALUES = 64, 4096
"""In so few rows values are not looked for that repeat, and so few values are kept in the type of a column."""

LISTED = 60
"""So few texts are categories in a table of any size."""

OBSERVED = "observed"
"""What a policy says to have the values that occur as categories, however many they are."""

_NAMED = 5
"""The most values that an error names."""

MISSING = "missing"
"""The rule by which a value outside of a domain counts as missing."""


def _not_in_domain(column: str, count: int, unknown: Sequence[Any]) -> str:
    """What is wrong with values that a domain lacks, and each way out of it."""
    named = ", ".join(map(repr, unknown[:_NAMED]))
    more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
    return (
        f"every value of {column!r} must be in its domain of {count} values, got {named}{more}; write another of "
        "them in the file (such as a wider category), or state in the policy what such values count as (`unseen`), or "
        "a domain that has them. A dataset keeps its policy: `sfumato add --replace` states it anew while nobody has a "
        "copy"
    )


@dataclass(frozen=True)
class Domain:
    """Listed values or, where `values` is empty, `count` consecutive integers from `first`."""

    values: tuple[Any, ...] = ()
    first: int = 0
    count: int = 0
    edges: tuple[float, ...] = ()
    """Of a column of numbers, where bins begin; then the values are their names."""
    unseen: int | None = None
    """The index of the value that one outside of the domain counts as, or -1 for missing; without one it is refused."""

    @classmethod
    def binned(cls, column: str, stated: Any) -> Domain:
        """The bins of a column of numbers that a policy states by the numbers at which they meet."""
        numbers = stated if isinstance(stated, list) else []
        fits = all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in numbers)
        if not numbers or not fits or not np.all(np.diff(numbers) > 0) or not np.isfinite(numbers).all():
            raise PolicyError(
                f"`bins` of column {column!r} must be ascending numbers, as [0, 1000, 5000], got {stated!r}"
            )
        middle = [f"{low:g} to {high:g}" for low, high in pairwise(numbers)]
        names = (f"below {numbers[0]:g}", *middle, f"{numbers[-1]:g} or more")
        if len({f"{edge:g}" for edge in numbers}) < len(numbers):
            raise PolicyError(f"`bins` of column {column!r} must differ in their first six digits, got {stated!r}")
        return cls(values=names, count=len(names), edges=tuple(map(float, numbers)))

    @classmethod
    def listed(cls, values: Sequence[Any]) -> Domain:
        """A domain of these values; consecutive integers are kept as a range."""
        count = len(values)
        whole = count > 0 and all(type(value) is int for value in values)
        if whole and abs(values[0]) < 1 << 62 and list(values) == list(range(values[0], values[0] + count)):
            return cls(first=values[0], count=count)
        return cls(values=tuple(values), count=count)

    @classmethod
    def declared(cls, column: str, stated: Any) -> Domain:
        """The domain that a policy states: a list, or a table with `min` and `max`."""
        if isinstance(stated, dict) and set(stated) == {"min", "max"} and all(type(v) is int for v in stated.values()):
            if not -(1 << 62) < stated["min"] <= stated["max"] < 1 << 62:
                raise PolicyError(f"the domain of {column!r} must have min at most max, both in 63 bits, got {stated}")
            count = stated["max"] - stated["min"] + 1
            if count > LARGEST:
                raise PolicyError(
                    f"the domain of {column!r} must have at most {LARGEST:,} values, and has {count:,}; coarsen the "
                    "column, or give it the role gaussian"
                )
            return cls(first=stated["min"], count=count)
        if isinstance(stated, list) and stated and not any(isinstance(value, list | dict) for value in stated):
            plain = [value if isinstance(value, int | str) else str(value) for value in stated]
            if len({(type(value), value) for value in plain}) == len(plain):
                return cls.listed(plain)
        raise PolicyError(
            f"the domain of {column!r} must be a list of distinct values or {{ min = 0, max = 9 }}, got {stated!r}"
        )

    @classmethod
    def decode(cls, data: dict[str, Any]) -> Domain:
        """The inverse of `encode`."""
        values, count = tuple(data.get("values", ())), data["count"]
        if not isinstance(count, int) or not 0 <= count <= LARGEST or ("values" in data and len(values) != count):
            raise ValueError("a domain has as many values as it counts")
        edges = tuple(map(float, data.get("edges", ())))
        if edges and (len(edges) + 1 != count or any(low >= high for low, high in pairwise(edges))):
            raise ValueError("bins meet at ascending numbers, one fewer than there are bins")
        unseen = data.get("unseen")
        if unseen is not None and not (type(unseen) is int and -1 <= unseen < count):
            raise ValueError("a value outside of a domain counts as one of it, or as missing")
        return cls(values=values, first=data.get("min", 0), count=count, edges=edges, unseen=unseen)

    def encode(self) -> dict[str, Any]:
        """The domain as JSON."""
        rule = {} if self.unseen is None else {"unseen": self.unseen}
        if self.values or not self.count:
            edges = {"edges": list(self.edges)} if self.edges else {}
            return {"values": list(self.values), "count": self.count, **edges, **rule}
        return {"min": self.first, "count": self.count, **rule}

    def with_unseen(self, column: str, stated: Any) -> Domain:
        """The same domain with the rule of a policy for values that are not in it."""
        if stated is None:
            return self
        values: Sequence[Any] = self.values or range(self.first, self.first + self.count)
        if (stated == MISSING) == (stated in values):
            raise PolicyError(
                f"`unseen` of column {column!r} must be {MISSING!r}, where that is no category, or a value of its "
                f"domain, got {stated!r}"
            )
        return replace(self, unseen=-1 if stated == MISSING else list(values).index(stated))

    def codes(self, array: pa.Array, column: str) -> CategoryCodes:
        """The index of each value; -1 where null. A value outside the domain is refused."""
        if types.is_null(array.type):
            return np.full(len(array), -1, np.int64)
        if self.edges and is_number(array.type):
            return self._bins(array)
        if types.is_dictionary(array.type):
            table = np.append(self._lookup(array.dictionary), -1)
            indices = array.indices.cast(pa.int64()).fill_null(len(table) - 1)
            found: CategoryCodes = table[indices.to_numpy(zero_copy_only=False)]
        elif types.is_integer(array.type) and not self.values:
            found = self._offset(array)
        elif len(array) <= _FEW_ROWS:
            found = self._lookup(array)
        else:
            found = self.codes(array.dictionary_encode(), column)
        if self.unseen is not None:
            return np.where(found < -1, self.unseen, found)
        if len(found) and found.min() < -1:
            unknown = array.take(pa.array(np.flatnonzero(found < -1))).unique().to_pylist()
            raise SourceError(_not_in_domain(column, self.count, unknown))
        return found

    def may_miss(self, array: pa.Array) -> bool:
        """Whether some code of a column may be -1: it has nulls, or others count as missing."""
        whole = types.is_integer(array.type) or types.is_string(array.type)
        return bool(array.null_count) or not whole or bool(self.edges) or self.unseen == -1

    def array(self, codes: CategoryCodes, null: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
        """The column of type `kind` that has these indices."""
        mask = null if null.any() else None
        kind = self.result_type(kind)
        if types.is_integer(kind) and not self.values:
            return pa.array(codes + self.first if self.first else codes, mask=mask).cast(kind)
        if types.is_dictionary(kind):
            indices = pa.array(codes, mask=mask).cast(kind.index_type)
            return pa.DictionaryArray.from_arrays(indices, self.typed(kind.value_type))
        return self.typed(kind).take(pa.array(codes, mask=mask))

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of `array`: a dictionary grows its index where the domain needs it, and null takes the domain's.

        Bins are shown by their names.
        """
        if self.edges:
            return pa.string()
        if types.is_null(kind):
            return pa.array(self.values).type if self.values else pa.int64() if self.count else kind
        if types.is_dictionary(kind) and self.count > 2 ** (kind.index_type.bit_width - 1):
            return pa.dictionary(pa.int32(), kind.value_type)
        return kind

    def typed(self, kind: pa.DataType) -> pa.Array:
        """The values of the domain in a type."""
        if self.count > _FEW_VALUES:
            return self._typed(kind)
        if kind not in self._known:
            self._known[kind] = self._typed(kind)
        return self._known[kind]

    @cached_property
    def _known(self) -> dict[pa.DataType, pa.Array]:
        return {}

    def _typed(self, kind: pa.DataType) -> pa.Array:
        values: Sequence[Any] = self.values or range(self.first, self.first + self.count)
        try:
            return pa.array(values, kind) if types.is_integer(kind) else pa.array(values or [], None).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            raise SourceError(
                f"a domain must have values of its column's type, got {list(values[:3])} ... for {kind}; write "
                "them in that type"
            ) from None

    def _lookup(self, values: pa.Array) -> CategoryCodes:
        """The index of each of some values; -2 where it is not in the domain, -1 where null."""
        found = pc.index_in(values, value_set=self.typed(values.type)).fill_null(-2)
        codes: CategoryCodes = found.to_numpy(zero_copy_only=False).astype(np.int64)
        if values.null_count:
            codes[values.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes

    def _bins(self, array: pa.Array) -> CategoryCodes:
        """The bin of each number; a missing one, or one that is no number, is in none."""
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
        codes: CategoryCodes = np.searchsorted(self.edges, np.where(missing, 0.0, values), side="right").astype(
            np.int64
        )
        codes[missing] = -1
        return codes

    def _offset(self, array: pa.Array) -> CategoryCodes:
        null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        values = array.fill_null(self.first) if array.null_count else array
        codes: CategoryCodes = values.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) - self.first
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < self.count:
            codes[(codes < 0) | (codes >= self.count)] = -2
        if null is not None:
            codes[null] = -1
        return codes


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type can be put into bins."""
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def is_category(kind: pa.DataType) -> bool:
    """Whether values of this type can be categories: text, integers, booleans, decimals, dates and times."""
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind) or types.is_null(kind)
    return bool(text or types.is_integer(kind) or types.is_decimal(kind) or types.is_temporal(kind))


def refuse_free_text(name: str, values: Collection[Any], rows: int, option: str) -> None:
    """Refuse texts that are too many to be categories: a copy would show each of them word for word."""
    texts = sum(isinstance(value, str) for value in values)
    if texts > most_categories(rows):
        raise SourceError(
            f"column {name!r} has {texts:,} texts in {rows:,} rows, too many to be categories, and a copy would "
            f"publish each of them word for word; use the role drop, or recode it, or accept it by `{option}`"
        )


def most_categories(rows: int) -> int:
    """The largest number of texts in a column that are taken for categories."""
    return max(LISTED, rows // 20)


def observed(array: pa.Array) -> list[Any]:
    """The distinct values of a column, sorted, as JSON can hold them."""
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_null(array.type):
        return []
    values = pc.drop_null(pc.unique(array))
    plain = types.is_integer(values.type) or types.is_boolean(values.type)
    texts = types.is_string(values.type) or types.is_large_string(values.type)
    if not (plain or texts):
        values = values.cast(pa.string())
    found = values.to_pylist()
    return sorted(found)
