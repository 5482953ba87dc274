"""What must be known of a table in many files before copies are made of it, found out by an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from sfumato.engines import Engine, Secret
from sfumato.engines.local import Local
from sfumato.kernels import Words
from sfumato.release.scheme import TableScheme, Taking
from sfumato.tables.partitioned import Part
from sfumato.tables.partitioner import ensure_apart, ensure_distinct
from sfumato.tables.sampling import Sample
from sfumato.tables.source import Source
from sfumato.tables.view import EVERYTHING


def ensure_named(scheme: TableScheme, source: Source, engine: Engine, secret: Secret) -> None:
    """Refuse a folder of which two records have one name: the same id or, without ids, the same place."""
    if not scheme.ids:
        ensure_apart(source.parts, engine.map(Part.rows, source.parts))
    elif isinstance(engine, Local):
        ensure_distinct(lambda: scheme.identities(source, secret()))
    elif not _rise(engine.map(_Span(scheme, secret), source.parts)):
        ensure_distinct(lambda: engine.map(_Identities(scheme, secret), source.parts))


def taking(scheme: TableScheme, source: Source, engine: Engine) -> Taking | None:
    """A way to some rows of a folder, on a cluster."""
    if isinstance(engine, Local):
        return None
    whole = scheme.seen(EVERYTHING)

    def take(rows: int) -> tuple[Words, pa.Table]:
        found: Sample = engine.fold(_Sampling(whole, rows), lambda a, b: a.merged(b, rows), source.parts)
        return found.rows()

    return take


def _rise(spans: Iterable[tuple[bool, int, int]]) -> bool:
    """Whether ids rise in each file, and no two files' spans meet: then no two are equal."""
    found = list(spans)
    held = sorted((low, high) for rises, low, high in found if low <= high)
    return all(rises for rises, _, _ in found) and all(high < low for (_, high), (low, _) in pairwise(held))


@dataclass(frozen=True)
class _Identities:
    """The ids of a file."""

    scheme: TableScheme
    secret: Secret

    def __call__(self, part: Part) -> Words:
        found = list(self.scheme.identities(Source.of(part), self.secret()))
        return np.concatenate(found) if found else np.empty(0, np.uint64)


@dataclass(frozen=True)
class _Span:
    """Whether the ids of a file rise, and from where to where; the ends of nothing are crossed."""

    scheme: TableScheme
    secret: Secret

    def __call__(self, part: Part) -> tuple[bool, int, int]:
        first, last = 2**63, -(2**63) - 1
        for ids in self.scheme.identities(Source.of(part), self.secret()):
            signed = ids.view(np.int64)
            if not (signed[0] > last and (signed[1:] > signed[:-1]).all()):
                return False, 0, 0
            first, last = min(first, int(signed[0])), int(signed[-1])
        return True, first, last


@dataclass(frozen=True)
class _Sampling:
    """Some rows of a file."""

    scheme: TableScheme
    rows: int

    def __call__(self, part: Part) -> Sample:
        return Sample.of(self.scheme.numbered(Source.of(part)), self.rows)
