"""Attacks on copies in many files, by any engine: what is learnt and what is scored are sums, so files can be apart.

An attack learns from sufficient statistics of all records: the moments of what the copies pool to, and the counts of
each category. It is then applied to each file where that lies, and only sums of its errors come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import Estimate, Evidence, Guess, Knowledge, Pool, Records, means_of, pool, prior_from
from sfumato.audit.alignment import aligned, matched, needed
from sfumato.audit.attack import Opened, make
from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.covariances import Sums
from sfumato.release.evidence import records
from sfumato.release.manifest import Manifest
from sfumato.release.partitioned import copied_name
from sfumato.tables.partitioned import Part
from sfumato.tables.source import Source

_SPREAD = 1 << 22
"""A domain that is larger has no prior that is counted."""


@dataclass(frozen=True)
class Reached:
    """How far an attack came, over all records of all files."""

    attack: str
    rows: int
    rmse: dict[str, float]
    """The root mean square error, by column of numbers."""
    error: dict[str, float]
    """The mean square error as a share of the column's variance: 1 is no more than its mean tells."""
    success: dict[str, float]
    """How often the likeliest category is the true one, by attribute."""
    reconstruction: dict[str, float]
    """The mean probability given to the true category (xiao2009, eq. 25)."""

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def attack_folder(
    name: str,
    copies: Sequence[Any],
    truth: Any,
    *,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> Reached:
    """Attack copies in folders with their files in the same places as those of the original, and say how right it was.

    Args:
        name: of the attack, which must be one that is applied a record at a time, as `llse`, `bayes` and `collusion`.
        copies: folders, each with its manifest.
        truth: the folder that they were made from.
        engine: where the work is done.
        progress: told the number of records just done.
        options: the attack's own parameters.

    """
    made, where = make(name, options), engine or Local()
    if made.whole or made.needs_known:
        raise AttackError(f"the attack {name!r} must see records together, which copies in many files do not show it")
    manifests = tuple(Manifest.of(copy) for copy in copies)
    places = _places([m.source(copy) for m, copy in zip(manifests, copies, strict=True)], Source.of(truth))
    lesson = _opened(manifests, places[0].copies).lesson(whole=False)
    learning = _Learning.of(manifests, lesson)
    learnt = where.fold(learning, _Learnt.merged, places)
    guess = made.ready(replace(lesson, knowledge=learning.knowledge(learnt, lesson)))
    total = _Errors()
    for found in where.map(_Attacking(manifests, guess), places):
        total = total.merged(found)
        if progress:
            progress(found.rows)
    return total.reached(name)


@dataclass(frozen=True)
class _Place:
    """The same file of all copies, and of the original."""

    copies: tuple[Part, ...]
    truth: Part


def _places(copies: Sequence[Source], truth: Source) -> list[_Place]:
    files = [{part.name: part for part in source.parts} for source in copies]
    names = [copied_name(part.name) for part in truth.parts]
    if not names or any(set(found) != set(names) for found in files):
        raise AttackError(
            "copies must be folders with the files of the original, under the same names, and one is not; name the "
            "folder that they were made from"
        )
    return [_Place(tuple(found[name] for found in files), part) for name, part in zip(names, truth.parts, strict=True)]


def _opened(manifests: tuple[Manifest, ...], parts: tuple[Part, ...]) -> Opened:
    return Opened(tuple(m.source(part) for m, part in zip(manifests, parts, strict=True)), manifests)


@dataclass(frozen=True)
class _Learnt:
    """Sufficient statistics of some records."""

    sums: Sums
    counts: dict[tuple[str, ...], Floats]

    def merged(self, other: _Learnt) -> _Learnt:
        return _Learnt(
            self.sums + other.sums, {name: counts + other.counts[name] for name, counts in self.counts.items()}
        )


@dataclass(frozen=True)
class _Learning:
    """Reads the statistics of one file of all copies."""

    manifests: tuple[Manifest, ...]
    pooled: Pool | None
    origin: Floats
    """About the mean of each pooled column, from which sums are taken."""
    sizes: dict[tuple[str, ...], int]
    """Of the attributes that are counted."""

    @classmethod
    def of(cls, manifests: tuple[Manifest, ...], lesson: Evidence) -> _Learning:
        pooled = pool(lesson.numbers) if lesson.numbers else None
        origin = means_of(pooled.of(lesson.numbers)) if pooled else np.empty(0)
        sizes = {name: parts[0].size for name, parts in lesson.attributes().items() if parts[0].size <= _SPREAD}
        return cls(manifests, pooled, origin, sizes)

    def __call__(self, place: _Place) -> _Learnt:
        sums = Sums.of(np.empty((0, len(self.origin))))
        counts = {name: np.zeros(size) for name, size in self.sizes.items()}
        for seen in _opened(self.manifests, place.copies).batches():
            if self.pooled:
                sums = sums + Sums.of(self.pooled.of(seen.numbers) - self.origin)
            for name, parts in seen.attributes().items():
                if name in counts:
                    codes = parts[0].codes
                    counts[name] += np.bincount(codes[codes >= 0], minlength=len(counts[name]))
        return _Learnt(sums, counts)

    def knowledge(self, learnt: _Learnt, lesson: Evidence) -> Knowledge:
        """What an attacker knows who has counted all records."""
        statistics = None
        if self.pooled:
            covariance = learnt.sums.covariance() - self.pooled.covariance  # huang2005, eq. 14
            statistics = (self.pooled.columns, learnt.sums.means() + self.origin, covariance)
        attributes = lesson.attributes()
        prior = {name: prior_from(counts, attributes[name][0]) for name, counts in learnt.counts.items()}
        return Knowledge(statistics=statistics, prior=prior)


@dataclass(frozen=True)
class _Errors:
    """Sums over some records."""

    rows: int = 0
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    """The count, squared errors, values and their squares."""
    categories: Mapping[str, Floats] = field(default_factory=dict)
    """The count, right guesses and probabilities."""

    def merged(self, other: _Errors) -> _Errors:
        numbers, categories = (
            {name: one.get(name, 0.0) + sums for name, sums in two.items()}
            for one, two in ((self.numbers, other.numbers), (self.categories, other.categories))
        )
        return _Errors(self.rows + other.rows, {**self.numbers, **numbers}, {**self.categories, **categories})

    def reached(self, attack: str) -> Reached:
        numbers = {name: sums for name, sums in self.numbers.items() if sums[0]}
        mean = {name: sums[1] / sums[0] for name, sums in numbers.items()}
        variance = {name: sums[3] / sums[0] - (sums[2] / sums[0]) ** 2 for name, sums in numbers.items()}
        known = {name: sums for name, sums in self.categories.items() if sums[0]}
        return Reached(
            attack,
            self.rows,
            {name: float(np.sqrt(square)) for name, square in mean.items()},
            {name: float(square / (variance[name] or 1.0)) for name, square in mean.items()},
            {name: float(sums[1] / sums[0]) for name, sums in known.items()},
            {name: float(sums[2] / sums[0]) for name, sums in known.items()},
        )


@dataclass(frozen=True)
class _Attacking:
    """Attacks one file, and holds the guesses against the original."""

    manifests: tuple[Manifest, ...]
    guess: Guess

    def __call__(self, place: _Place) -> _Errors:
        case = _opened(self.manifests, place.copies)
        truth, done, total = self._truth(case, place.truth), 0, _Errors()
        for seen in case.batches():
            real = records(truth.slice(done, seen.rows), case.models)
            total = total.merged(_errors(self.guess(seen), real))
            done += seen.rows
        return total

    def _truth(self, case: Opened, part: Part) -> pa.Table:
        source = Source.of(part)
        table = pa.Table.from_batches(source.batches(), source.schema)
        if case.ids:
            table = matched([case.names(), table], needed(table.column_names, case.ids))[1]
        if table.num_rows != case.rows:
            raise AttackError(
                f"the truth must hold {case.rows:,} records, as the copy of {part.name}, got {len(table):,}"
            )
        return aligned(table, case.models)


def _errors(estimate: Estimate, real: Records) -> _Errors:
    numbers = dict(_number_errors(estimate, real.numbers(estimate.columns)))
    categories = {}
    for belief in estimate.beliefs:
        truth = real.codes[belief.columns]
        there = truth >= 0
        right, chance = (belief.guess() == truth)[there].sum(), np.nansum(belief.probability(truth)[there])
        categories[" x ".join(belief.columns)] = np.array([there.sum(), right, chance], np.float64)
    return _Errors(len(estimate), numbers, categories)


def _number_errors(estimate: Estimate, real: Floats) -> Iterator[tuple[str, Floats]]:
    for i, name in enumerate(estimate.columns):
        guess, truth = estimate.values[:, i], real[:, i]
        there = ~np.isnan(guess) & ~np.isnan(truth)
        guess, truth = guess[there], truth[there]
        yield name, np.array([len(truth), ((guess - truth) ** 2).sum(), truth.sum(), (truth**2).sum()])
