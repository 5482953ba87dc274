"""Perturbation mechanisms, one per file; the file name is the role that a policy gives a column.

A mechanism holds frozen parameters from the policy. It is fitted to a table in one or more passes of mergeable
summaries, which gives a scheme; a scheme perturbs record batches, and is a pure function of its arguments. `uniform.py`
with `_uniform_scheme.py` is the shortest to learn from.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import pyarrow as pa

from sfumato.errors import PolicyError
from sfumato.family import Family
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.models import Model
from sfumato.tables.numeric import MAX_MAGNITUDE

MECHANISMS = Family("sfumato.mechanisms", "Mechanism")

_NAMED = 5
"""The most columns that an error names."""


@dataclass(frozen=True)
class Example:
    """A use of a mechanism, on which the conformance suite (`sfumato.testing`) runs it."""

    content: str
    """`numbers` or `categories`: what its columns hold."""
    columns: int = 1
    """The number of columns."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of each column in a policy."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of all columns together."""
    keeps_nulls: bool = True
    """Whether a missing value is missing in a copy too."""
    given: Mapping[str, float] = field(default_factory=dict)
    """Further columns: the first one with normal noise of this standard deviation, as it was released earlier."""


SingleRecord = Callable[[int, Sequence[Any]], list[Any]]
"""A function from the id and the values of a record to the values of its copy."""


class Summary(abc.ABC):
    """What a mechanism must know of a table. Merging is exact: associative and commutative to the last bit."""

    @abc.abstractmethod
    def merge(self, other: Self) -> Self:
        """The summary of both sets of rows."""


class Scheme(abc.ABC):
    """A fitted mechanism: immutable, and small enough to travel to workers."""

    columns: tuple[str, ...]
    """The columns of the copy."""
    shuffles: bool = False
    """Whether the rows of a copy must be in a secret order."""
    is_shaped: bool = False
    """Whether its noise has the shape of the data, so that a change in one column redraws the noise of all."""

    @abc.abstractmethod
    def fields(self, schema: pa.Schema) -> list[pa.Field]:
        """The columns of a copy of a table with this schema."""

    @abc.abstractmethod
    def model(self, level: Level) -> Model:
        """All that is public about the copy at a level; it contains no secret."""

    @abc.abstractmethod
    def perturb_levels(
        self, batch: pa.RecordBatch, rows: Words, levels: Sequence[Level], key: Key
    ) -> list[list[pa.Array]]:
        """The columns of the copies at several levels; shared draws are made once.

        Args:
            batch: rows of the original.
            rows: the record ids, one per row.
            levels: the levels of the copies.
            key: the key of the dataset.

        """

    @abc.abstractmethod
    def draws(self, batch: pa.RecordBatch, rows: Words, key: Key) -> Words:
        """One word per row, which changes whenever fresh randomness is drawn for that row."""

    @abc.abstractmethod
    def drift(self, later: Scheme) -> float:
        """The largest ratio of the variance of a later fit to the variance that this noise was shaped for.

        It is the largest generalised eigenvalue of the two covariances; 1 where the noise has no shape.
        """

    @abc.abstractmethod
    def state(self) -> dict[str, Any]:
        """What was fitted, as JSON."""

    def single_record(self, schema: pa.Schema, level: Level, key: Key) -> SingleRecord | None:  # noqa: ARG002
        """What perturbs one record at a time, bit for bit as `perturb` does.

        It raises `_single_records.Unusual` for a record that it leaves to `perturb`; nothing where all are.
        """
        return None

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
    """The keys that a policy's table of this name may have: settings of all its columns together."""
    safe: ClassVar[bool] = True
    """Whether recipients who combine copies learn no more than from the best one."""
    adds_noise: ClassVar[bool] = False
    """Whether it adds normal noise to numbers and times, or to the scores of values."""
    is_linear_map: ClassVar[bool] = False
    """Whether it replaces its columns by linear combinations of them."""
    measures: ClassVar[frozenset[str]] = frozenset()
    """The measures of risk that a target on a column of this role may use."""
    examples: ClassVar[tuple[Example, ...]]
    """Uses of the mechanism that the conformance suite runs."""
    passes: ClassVar[int] = 1
    """How many passes over the table the fit needs."""

    @classmethod
    def role_name(cls) -> str:
        """The role that a policy gives columns of this mechanism: its file's name."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @property
    def role(self) -> str:
        """The role of its columns."""
        return self.role_name()

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are perturbed jointly."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of the table that it looks at: those that it perturbs and, if there are any, the entities."""
        return self.columns

    def for_entities(self, column: str) -> Mechanism:
        """The same for a table with several records of each entity, which a column names."""
        few = ", ".join(repr(name) for name in self.columns[:_NAMED])
        shown = few + (f" and {len(self.columns) - _NAMED} more" if len(self.columns) > _NAMED else "")
        raise PolicyError(
            f"records of one entity need noise that does not average out, and the role {self.role} has none: give "
            f"{shown} the role gaussian (numbers) or uniform (categories), or drop them; `sfumato suggest --role "
            f"{column}=entity` drafts such a policy. Or give {column!r} another role than entity, which protects "
            "records and not entities"
        )

    @classmethod
    @abc.abstractmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:
        """The mechanisms for all columns of this role and their options, grouped as they are perturbed jointly."""

    @abc.abstractmethod
    def check(self, schema: pa.Schema) -> None:
        """Refuse a table whose column types this cannot perturb."""

    @abc.abstractmethod
    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        """Summarise some rows, knowing the merged summary of the pass before."""

    @abc.abstractmethod
    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """The scheme for a table with this summary, with the ladder as a path tree."""

    @property
    def must_withstand(self) -> int | None:
        """The number of known records that copies must withstand, if they are to be tested against known records."""
        return None

    @property
    def accepted_risk(self) -> str | None:
        """The reason that the policy gives for accepting the risk of known records."""
        return None

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
    fits = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_MAGNITUDE
    if not fits or (above is not None and not value > above):
        more = "" if above is None else f" above {above:g}"
        raise PolicyError(
            f"`{option}` of column {column!r} must be a number{more}, of magnitude at most {MAX_MAGNITUDE:g}, got "
            f"{value!r}"
        )
    return float(value)


def truth(column: str, option: str, value: Any) -> bool:
    """An option that must be true or false."""
    if not isinstance(value, bool):
        raise PolicyError(f"`{option}` of column {column!r} must be true or false, got {value!r}")
    return value
