"""Checks of partitioned tables by an engine: unique record ids, and a sample of rows, before copies are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sfumato.engines import Engine, Secret
from sfumato.kernels import Words
from sfumato.release.gate import Sampler, check_ids, sampler
from sfumato.release.layout import TableLayout
from sfumato.release.perturbation import all_ids, numbered_rows
from sfumato.tables.partitioned import Part
from sfumato.tables.sampling import Sample
from sfumato.tables.source import Source
from sfumato.tables.unique_ids import ensure_disjoint, ensure_distinct
from sfumato.tables.view import EVERYTHING


def check_partition_ids(layout: TableLayout, source: Source, engine: Engine, secret: Secret) -> None:
    """Refuse a partitioned table in which two records have the same id or, without ids, the same row number."""
    if not layout.ids:
        ensure_disjoint(source.parts, engine.map(Part.rows, source.parts))
    elif not engine.is_distributed:
        check_ids(layout, source, secret())
    elif not _are_disjoint(engine.map(_IdRange(layout, secret), source.parts)):
        ensure_distinct(lambda: engine.map(_Ids(layout, secret), source.parts))


def partition_sampler(layout: TableLayout, source: Source, engine: Engine) -> Sampler:
    """Takes some rows of a partitioned table; on a cluster, each worker samples its files."""
    if not engine.is_distributed:
        return sampler(layout, source)
    whole = layout.with_view(EVERYTHING)

    def take(rows: int) -> tuple[Words, pa.Table]:
        found: Sample = engine.fold(_SampleFile(whole, rows), lambda a, b: a.merged(b, rows), source.parts)
        return found.rows()

    return take


def _are_disjoint(ranges: Iterable[tuple[bool, int, int]]) -> bool:
    """Whether ids increase in each file, and the ranges of files do not overlap: then no two ids are equal."""
    found = list(ranges)
    filled = sorted((low, high) for _, low, high in found if low <= high)
    return all(increases for increases, _, _ in found) and all(a[1] < b[0] for a, b in pairwise(filled))


@dataclass(frozen=True)
class _Ids:
    """The record ids of a file."""

    layout: TableLayout
    secret: Secret

    def __call__(self, part: Part) -> Words:
        found = list(all_ids(self.layout, Source.of(part), self.secret()))
        return np.concatenate(found) if found else np.empty(0, np.uint64)


@dataclass(frozen=True)
class _IdRange:
    """Whether the record ids of a file increase, and their range; the ends of an empty range are crossed."""

    layout: TableLayout
    secret: Secret

    def __call__(self, part: Part) -> tuple[bool, int, int]:
        first, last = 2**63, -(2**63) - 1
        for ids in all_ids(self.layout, Source.of(part), self.secret()):
            signed = ids.view(np.int64)
            if not (signed[0] > last and (signed[1:] > signed[:-1]).all()):
                return False, 0, 0
            first, last = min(first, int(signed[0])), int(signed[-1])
        return True, first, last


@dataclass(frozen=True)
class _SampleFile:
    """A sample of the rows of a file."""

    layout: TableLayout
    rows: int

    def __call__(self, part: Part) -> Sample:
        return Sample.of(numbered_rows(self.layout, Source.of(part)), self.rows)
