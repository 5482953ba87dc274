"""Mechanisms: ways to blur columns, one a file; the file name is the role that a policy gives a column.

A mechanism holds frozen parameters from the policy. It is fitted to a table in one or more passes of mergeable
summaries, which gives a scheme; a scheme blurs record batches, and is a pure function of its arguments. `uniform.py`
with `_replaced.py` is the shorter of the two to learn from.
"""

from __future__ import annotations

import abc
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import pyarrow as pa

from sfumato.errors import PolicyError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.models import Model
from sfumato.policy.document import MECHANISMS as MECHANISMS


class Summary(abc.ABC):
    """What a mechanism must know of a table. Merging is exact: associative and commutative to the last bit."""

    @abc.abstractmethod
    def merge(self, other: Self) -> Self:
        """The summary of both sets of rows."""


class Scheme(abc.ABC):
    """A fitted mechanism: immutable, and small enough to travel to workers."""

    columns: tuple[str, ...]
    """Of the copy."""
    shuffles: bool = False
    """Whether the rows of a copy must be in a secret order."""

    @abc.abstractmethod
    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        """The columns of a copy of a table with this schema."""

    @abc.abstractmethod
    def model(self, level: Level) -> Model:
        """All that is public about the copy at a level; it holds no secret."""

    @abc.abstractmethod
    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        """The columns of the copies at several levels; shared draws are made once.

        Args:
            rows: the record ids, one a row.
            key: the key of the dataset.

        """

    @abc.abstractmethod
    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        """A word a row, which changes whenever fresh randomness is drawn for that row."""

    @abc.abstractmethod
    def drift(self, later: Scheme) -> float:
        """By how much the data of a later fit vary more than this noise was shaped for, where it matters most.

        A ratio of variances; 1 where the noise has no shape.
        """

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """What was fitted, as JSON."""

    def perturb(self, batch: pa.RecordBatch, rows: Words, level: Level, key: Key) -> list[pa.Array]:
        """The columns of the copy at one level."""
        return self.perturb_levels(batch, rows, [level], key)[0]


class Mechanism(abc.ABC):
    """Frozen parameters, from the policy."""

    reference: ClassVar[str]
    """The paper and section that this implements."""
    options: ClassVar[frozenset[str]]
    """The keys that a column of this role may have in a policy, besides `role`."""
    settings: ClassVar[frozenset[str]] = frozenset()
    """The keys that a policy's table of this name may have: what is said of all its columns together."""
    safe: ClassVar[bool] = True
    """Whether recipients who pool copies learn no more than from the best one."""
    passes: ClassVar[int] = 1
    """How many passes over the table the fit needs."""

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are blurred together."""

    @classmethod
    @abc.abstractmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:
        """The mechanisms for all columns of this role and their options, grouped as they are blurred together."""

    @abc.abstractmethod
    def check(self, schema: pa.Schema) -> None:
        """Refuse a table whose column types this cannot blur."""

    @abc.abstractmethod
    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        """Summarise some rows, knowing the merged summary of the pass before."""

    @abc.abstractmethod
    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """The scheme for a table with this summary, with the ladder as a path tree."""

    @abc.abstractmethod
    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        """The scheme that had this state."""


def path_name(*content: Any) -> str:
    """A name for everything that a scheme's noise depends on besides the key; it must enter the keys.

    Noise of one shape must never be combined with noise of a slightly different shape made from the same draws: the
    difference of two such copies of a cell would give the draws away.
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def number(column: str, option: str, value: Any, *, above: float | None = None) -> float:
    """An option that must be a number."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    if not fits or (above is not None and not value > above):
        more = "" if above is None else f" above {above:g}"
        raise PolicyError(f"`{option}` of column {column!r} must be a finite number{more}, got {value!r}")
    return float(value)


def truth(column: str, option: str, value: Any) -> bool:
    """An option that must be true or false."""
    if not isinstance(value, bool):
        raise PolicyError(f"`{option}` of column {column!r} must be true or false, got {value!r}")
    return value
