"""Margin-preserving copies: noise in the normal scores of a Gaussian copula, at any number of levels on one path.

A copy has the values, margins and rank correlations of the original at every level, between the original and synthetic
data. This file fits margins and correlations; `_copula_scheme.py` draws the scores and their noise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.errors import PolicyError, SourceError
from sfumato.kernels import Rows
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.keys.stream import Stream
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary, number
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.mechanisms._copula_summary import Burt, Categories, Draws, Numbers, Occurrences
from sfumato.mechanisms._margin_fit import Detail, category_groups, category_margin, number_margin, ordered_groups
from sfumato.mechanisms._score_correlations import correlations, first_axis
from sfumato.mechanisms._score_sampler import ScoreSampler
from sfumato.tables.domain import OBSERVED, Domain, is_category, refuse_free_text
from sfumato.tables.margin import Margin, is_number

_MOST_GROUPS = 32
"""The most groups of a column's values that are counted together with those of other columns."""

_ENOUGH, _MOST_REPETITIONS = 1 << 18, 32
"""How many different draws show the distribution of scores, and the most draws for one row."""

_LEAST_BINS, _LEAST_COUNT = 2, 32
"""The least numbers of bins, and of records in each of them, that a policy may ask for."""


@dataclass(frozen=True)
class Column:
    """What the policy states about one column."""

    name: str
    detail: Detail = field(default_factory=Detail)
    order: tuple[Any, ...] = ()
    """The order of categories; without one, it is found by correspondence analysis."""
    accepted: bool = False
    """Whether the policy says that all categories that occur may be published."""
    group: str = ""
    """Columns of one group are perturbed jointly, so that their correlations are preserved."""
    unseen: Any = None
    """What a category that the first table lacks counts as: another one, or missing; without one it is refused."""

    @classmethod
    def of(cls, name: str, options: Mapping[str, Any]) -> Column:
        """The column with the options of a policy."""
        bottom, top = (None if side not in options else number(name, side, options[side]) for side in ("bottom", "top"))
        if bottom is not None and top is not None and not bottom < top:
            raise PolicyError(f"`bottom` of column {name!r} must be less than its `top`, got {bottom:g} and {top:g}")
        order, group = options.get("order", []), options.get("group", "")
        accepted, order = order == OBSERVED, [] if order == OBSERVED else order
        if not isinstance(order, list) or len(set(map(repr, order))) != len(order):
            raise PolicyError(f"`order` of column {name!r} must list its categories once each, got {order!r}")
        if not isinstance(group, str):
            raise PolicyError(f"`group` of column {name!r} must be the name of its group, got {group!r}")
        bins = _whole(name, "bins", options.get("bins", Detail.bins), _LEAST_BINS)
        least = _whole(name, "min_count", options.get("min_count", Detail.min_count), _LEAST_COUNT)
        return cls(name, Detail(bins, least, bottom, top), tuple(order), accepted, group, options.get("unseen"))


def _whole(name: str, option: str, stated: Any, least: int) -> int:
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < least:
        raise PolicyError(f"`{option}` of column {name!r} must be a whole number of at least {least}, got {stated!r}")
    return stated


@dataclass(frozen=True)
class Copula(Mechanism):
    """The `copula` columns of one group, perturbed jointly so that a copy has their rank correlations."""

    reference = "Muralidhar and Sarathy 2006; for ties Hoff 2007, section 3; on the path of li2012, section 5"
    options = frozenset({"bins", "min_count", "bottom", "top", "order", "group", "unseen"})
    examples = (
        Example("numbers", keeps_nulls=False),
        Example("categories", 2, {"group": "both"}, keeps_nulls=False),
    )
    measures = frozenset({"error"})
    adds_noise = True
    passes = 3
    specs: tuple[Column, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs)

    @classmethod
    def of(cls, columns: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> Sequence[Mechanism]:  # noqa: ARG003
        groups: dict[str, list[Column]] = {}
        for name, options in columns.items():
            spec = Column.of(name, options)
            groups.setdefault(spec.group, []).append(spec)
        return [cls(tuple(specs)) for specs in groups.values()]

    def check(self, schema: pa.Schema) -> None:
        for spec in self.specs:
            kind = schema.field(spec.name).type
            kind = kind.value_type if types.is_dictionary(kind) else kind
            if not is_number(kind) and not is_category(kind):
                raise SourceError(
                    f"the role copula needs numbers, times or categories, and column {spec.name!r} holds {kind}; cast "
                    "it, or give it the role drop"
                )
            if spec.order and is_number(kind):
                raise PolicyError(f"`order` is for categories, and column {spec.name!r} holds {kind}; leave it out")

    def summarise(self, batch: pa.RecordBatch, earlier: Summary | None = None) -> Summary:
        if isinstance(earlier, Burt):
            return _draw(self, earlier, batch)
        if not isinstance(earlier, Occurrences):
            return Occurrences.of(batch, self.columns)
        plan, codes, absent = _plan(self, earlier), [], []
        for name, margin, starts in zip(self.columns, plan.margins, plan.starts, strict=True):
            cells = margin.cells(batch.column(name), name)
            codes.append(np.where(cells.missing, -1, np.searchsorted(starts, cells.integers, side="right") - 1))
            if margin.missing is not None:  # the lower score is that of a missing value
                absent.append((~cells.missing).astype(np.int64))
        return Burt.of(earlier, [*codes, *absent], plan.sizes)

    def fit(self, summary: Summary, tree: PathTree) -> Scheme:
        """Fix the margins, the order of categories, and the correlations of scores, rounded for good."""
        if not isinstance(summary, Draws):
            raise TypeError("the copula mechanism is fitted to its third summary")
        sampler = _sampler(self, summary.second)
        state = {
            "margins": [_ruled(*both).encode() for both in zip(self.specs, sampler.margins, strict=True)],
            "correlation": [[float(entry) for entry in line[: i + 1]] for i, line in enumerate(sampler.correlation)],
            "maps": [sampler.mapped(i, counts) for i, counts in enumerate(summary.counts)],
        }
        return self.restore(json.loads(json.dumps(state)), tree)

    def restore(self, state: dict[str, Any], tree: PathTree) -> Scheme:
        return CopulaScheme(self.columns, state, tree)


def _ruled(spec: Column, margin: Margin) -> Margin:
    """A margin with the rule for categories that it lacks."""
    if spec.unseen is None:
        return margin
    if not margin.values:
        raise PolicyError(f"`unseen` is for categories, and column {spec.name!r} has numbers; leave it out")
    rule = Domain.listed(margin.values).with_unseen(spec.name, spec.unseen)
    return replace(margin, unseen=rule.unseen)


@dataclass(frozen=True)
class _Plan:
    """How values are counted together: margins whose categories are not in their order yet, and groups of values."""

    margins: tuple[Margin, ...]
    starts: tuple[Rows, ...]
    """The first integer of each group of a column."""

    @property
    def sizes(self) -> list[int]:
        """The number of groups of each score: those of values, then those of missing values."""
        return [*map(len, self.starts), *(2 for margin in self.margins if margin.missing is not None)]


@lru_cache(maxsize=4)  # one summary is asked for as often as the table has batches
def _plan(mechanism: Copula, first: Occurrences) -> _Plan:
    margins = []
    for spec, column in zip(mechanism.specs, first.columns, strict=True):
        if isinstance(column, Numbers):
            margins.append(number_margin(column, spec.detail))
        else:
            _check_order(spec, column)
            if not (spec.accepted or spec.order):
                rows = column.present + column.missing
                refuse_free_text(spec.name, column.counts, rows, f'order = "{OBSERVED}"')
            groups = (
                ordered_groups(column, spec.detail, spec.order) if spec.order else category_groups(column, spec.detail)
            )
            margins.append(category_margin(column, spec.detail, groups))
    return _Plan(tuple(margins), tuple(m.groups(len(m.share) if m.values else _MOST_GROUPS)[0] for m in margins))


@lru_cache(maxsize=4)
def _sampler(mechanism: Copula, second: Burt) -> ScoreSampler:
    """The order of categories and the correlations of scores, from how often values meet."""
    plan, counts = _plan(mechanism, second.first), second.counts
    parts = [slice(first, last) for first, last in pairwise(np.cumsum([0, *plan.sizes]).tolist())]
    margins, where = list(plan.margins), np.arange(len(counts))
    for i, (spec, column) in enumerate(zip(mechanism.specs, second.first.columns, strict=True)):
        if isinstance(column, Categories) and not spec.order:
            order = first_axis(counts, parts[i])
            groups = category_groups(column, spec.detail)
            margins[i] = category_margin(column, spec.detail, [*(groups[k] for k in order), *groups[len(order) :]])
            where[parts[i]] = where[parts[i]][order]
    rows = max(column.present + column.missing for column in second.first.columns)
    return ScoreSampler(tuple(margins), correlations(counts[where][:, where], parts, rows))


def _draw(mechanism: Copula, second: Burt, batch: pa.RecordBatch) -> Draws:
    """Draw scores for some rows as a copy would, with bits that anybody could draw.

    Equal rows get equal draws, whichever batch they are in; where there are few different rows, each is drawn often.
    """
    sampler, repetitions = _sampler(mechanism, second), _repetitions(second.first)
    columns = zip(sampler.margins, mechanism.columns, strict=True)
    cells, often = (
        [margin.cells(batch.column(name), name) for margin, name in columns],
        np.ones(batch.num_rows, np.int64),
    )
    if repetitions == _MOST_REPETITIONS:
        words = np.column_stack([np.where(one.missing, -1 << 62, one.integers) for one in cells])
        _, first, often = np.unique(words, axis=0, return_index=True, return_counts=True)
        cells = [one.take(first) for one in cells]
    stream, counts = Stream(Key.from_bytes(bytes(32))), [np.zeros(1, np.int64) for _ in range(sampler.size)]
    for repetition in range(repetitions):
        rows = np.full(len(often), repetition, np.uint64)
        drawn = sampler.draw(cells, sampler.addresses(cells, rows, stream), stream)
        counts = [
            before + sampler.count(i, one, often) for i, (before, one) in enumerate(zip(counts, drawn, strict=True))
        ]
    return Draws(second, tuple(counts))


def _repetitions(first: Occurrences) -> int:
    """How often each row is drawn, so that there are enough different draws."""
    different = math.prod(max(len(column.counts), 1) for column in first.columns)
    rows = max(column.present + column.missing for column in first.columns)
    wanted = max(_ENOUGH // max(min(different, rows), 1), 1)
    return _MOST_REPETITIONS if wanted >= _MOST_REPETITIONS else max(min(wanted, _ENOUGH // max(rows, 1)), 1)


def _check_order(spec: Column, column: Categories) -> None:
    unknown = [value for value in column.counts if spec.order and value not in spec.order]
    if unknown:
        raise SourceError(
            f"`order` of column {spec.name!r} must list all its categories, and lacks {unknown[0]!r}; add it"
        )
