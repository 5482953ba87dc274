"""Distributed attacks on partitioned copies: sufficient statistics and errors are summed over files by any engine.

An attack is fitted to sufficient statistics of all records: the moments of the pooled copy, and the counts of each
category. It is then applied to each file by the worker that reads it, and only sums of its errors are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.attacks import (
    Estimate,
    Evidence,
    FittedAttack,
    Knowledge,
    Pool,
    Records,
    column_means,
    pool,
    prior_from_counts,
)
from sfumato.audit.alignment import match_records, require_aligned, require_identifiers
from sfumato.audit.attack import CopySet, make_attack
from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.errors import AttackError
from sfumato.kernels import Floats
from sfumato.kernels.covariances import PairwiseSums
from sfumato.release.evidence import original_records
from sfumato.release.manifest import Manifest
from sfumato.release.partitioned import copied_name
from sfumato.tables.partitioned import Part
from sfumato.tables.source import Source

_MAX_CATEGORIES = 1 << 22
"""The largest domain whose categories are counted for a prior."""


@dataclass(frozen=True)
class AttackSummary:
    """The success of an attack over all records of all files."""

    attack: str
    rows: int
    rmse: dict[str, float]
    """The root mean square error, by numeric column."""
    error: dict[str, float]
    """The residual error as a share of the column's variance: 1 is no better than the mean of the column."""
    success: dict[str, float]
    """The accuracy of the likeliest category, by attribute."""
    reconstruction: dict[str, float]
    """The mean posterior probability of the true category, by attribute (xiao2009, eq. 25)."""

    def summary(self) -> dict[str, Any]:
        """The result as JSON."""
        return asdict(self)


def attack_folder(
    name: str,
    copies: Sequence[Any],
    truth: Any,
    *,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> AttackSummary:
    """Attack partitioned copies, whose files have the names of those of the original, and score the attack.

    Args:
        name: the name of an attack that can be applied record by record, such as `llse`, `bayes` and `collusion`.
        copies: the folders of the copies, each with its manifest.
        truth: the folder of the original, or the Parquet file that was shared out by its row groups.
        engine: the engine that does the work; by default this machine.
        progress: called with the number of records just processed.
        options: the parameters of the attack.

    """
    made, where = make_attack(name, options), engine or Local()
    if made.needs_all_records or made.needs_known_records:
        raise AttackError(
            f"an attack on partitioned copies must be applicable record by record, and {name!r} must see all records "
            "together; attack a single file, or choose another attack"
        )
    manifests = tuple(Manifest.of(copy) for copy in copies)
    files = _files(
        [m.source(copy) for m, copy in zip(manifests, copies, strict=True)], Source.of(truth).by_row_groups()
    )
    training = _copy_set(manifests, files[0].copies).training_evidence(all_rows=False)
    reader = _StatisticsReader.of(manifests, training)
    statistics = where.fold(reader, _SufficientStatistics.merged, files)
    fitted = made.check_and_fit(replace(training, knowledge=reader.knowledge(statistics, training)))
    total = _ErrorSums()
    for found in where.map(_FileAttack(manifests, fitted), files):
        total = total.merged(found)
        if progress:
            progress(found.rows)
    return total.summary(name)


@dataclass(frozen=True)
class _File:
    """The file of one name in all copies, and in the original."""

    copies: tuple[Part, ...]
    truth: Part


def _files(copies: Sequence[Source], truth: Source) -> list[_File]:
    """The files of all copies, matched by name with those of the original."""
    parts = [{part.name: part for part in source.parts} for source in copies]
    names = [copied_name(part.name) for part in truth.parts]
    if not names or any(set(found) != set(names) for found in parts):
        raise AttackError(
            "copies must be folders whose files have the names of those of the original, and one is not; name the "
            "folder or the Parquet file that they were made from"
        )
    return [_File(tuple(found[name] for found in parts), part) for name, part in zip(names, truth.parts, strict=True)]


def _copy_set(manifests: tuple[Manifest, ...], parts: tuple[Part, ...]) -> CopySet:
    return CopySet(tuple(m.source(part) for m, part in zip(manifests, parts, strict=True)), manifests)


@dataclass(frozen=True)
class _SufficientStatistics:
    """The sufficient statistics of some records, which can be added up."""

    sums: PairwiseSums
    counts: dict[tuple[str, ...], Floats]

    def merged(self, other: _SufficientStatistics) -> _SufficientStatistics:
        counts = {name: counts + other.counts[name] for name, counts in self.counts.items()}
        return _SufficientStatistics(self.sums + other.sums, counts)


@dataclass(frozen=True)
class _StatisticsReader:
    """Reads the sufficient statistics of one file of all copies."""

    manifests: tuple[Manifest, ...]
    pooled: Pool | None
    origin: Floats
    """A value near the mean of each pooled column, from which sums are taken for numerical accuracy."""
    sizes: dict[tuple[str, ...], int]
    """The number of categories of each attribute that is counted."""

    @classmethod
    def of(cls, manifests: tuple[Manifest, ...], training: Evidence) -> _StatisticsReader:
        pooled = pool(training.numbers) if training.numbers else None
        origin = column_means(pooled.apply(training.numbers)) if pooled else np.empty(0)
        attributes = training.attributes().items()
        sizes = {name: parts[0].size for name, parts in attributes if parts[0].size <= _MAX_CATEGORIES}
        return cls(manifests, pooled, origin, sizes)

    def __call__(self, file: _File) -> _SufficientStatistics:
        sums = PairwiseSums.of(np.empty((0, len(self.origin))))
        counts = {name: np.zeros(size) for name, size in self.sizes.items()}
        for batch in _copy_set(self.manifests, file.copies).batches():
            if self.pooled:
                sums = sums + PairwiseSums.of(self.pooled.apply(batch.numbers) - self.origin)
            for name, parts in batch.attributes().items():
                if name in counts:
                    codes = parts[0].codes
                    counts[name] += np.bincount(codes[codes >= 0], minlength=len(counts[name]))
        return _SufficientStatistics(sums, counts)

    def knowledge(self, statistics: _SufficientStatistics, training: Evidence) -> Knowledge:
        """The background knowledge of an attacker who has read all records."""
        moments = None
        if self.pooled:
            covariance = statistics.sums.covariance() - self.pooled.covariance  # huang2005, eq. 14
            moments = (self.pooled.columns, statistics.sums.means() + self.origin, covariance)
        attributes = training.attributes()
        prior = {name: prior_from_counts(counts, attributes[name][0]) for name, counts in statistics.counts.items()}
        return Knowledge(statistics=moments, prior=prior)


@dataclass(frozen=True)
class _ErrorSums:
    """Sums of errors over some records, which can be added up."""

    rows: int = 0
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    """The count, and the sums of squared errors, of values and of their squares."""
    categories: Mapping[str, Floats] = field(default_factory=dict)
    """The count, the number of correct categories, and the sum of posterior probabilities."""

    def merged(self, other: _ErrorSums) -> _ErrorSums:
        numbers, categories = (
            {name: one.get(name, 0.0) + sums for name, sums in two.items()}
            for one, two in ((self.numbers, other.numbers), (self.categories, other.categories))
        )
        return _ErrorSums(self.rows + other.rows, {**self.numbers, **numbers}, {**self.categories, **categories})

    def summary(self, attack: str) -> AttackSummary:
        numbers = {name: sums / sums[0] for name, sums in self.numbers.items() if sums[0]}
        categories = {name: sums / sums[0] for name, sums in self.categories.items() if sums[0]}
        variance = {name: means[3] - means[2] ** 2 for name, means in numbers.items()}
        return AttackSummary(
            attack,
            self.rows,
            {name: float(np.sqrt(means[1])) for name, means in numbers.items()},
            {name: float(means[1] / (variance[name] or 1.0)) for name, means in numbers.items()},
            {name: float(means[1]) for name, means in categories.items()},
            {name: float(means[2]) for name, means in categories.items()},
        )


@dataclass(frozen=True)
class _FileAttack:
    """Applies a fitted attack to one file of all copies, and compares the estimates with the original."""

    manifests: tuple[Manifest, ...]
    fitted: FittedAttack

    def __call__(self, file: _File) -> _ErrorSums:
        copies = _copy_set(self.manifests, file.copies)
        truth, done, total = self._truth(copies, file.truth), 0, _ErrorSums()
        for batch in copies.batches():
            real = original_records(truth.slice(done, batch.rows), copies.models)
            total = total.merged(_error_sums(self.fitted(batch), real))
            done += batch.rows
        return total

    def _truth(self, copies: CopySet, part: Part) -> pa.Table:
        """The original of one file, in the row order of the copies."""
        source = Source.of(part)
        table = pa.Table.from_batches(source.batches(), source.schema)
        if copies.ids:
            ids = require_identifiers(table.column_names, copies.ids)
            table = match_records([copies.identifiers(), table], ids)[1]
        if table.num_rows != copies.rows:
            raise AttackError(
                f"the truth must hold {copies.rows:,} records, as the copy of {part.name}, got {len(table):,}"
            )
        return require_aligned(table, in_secret_order=copies.in_secret_order)


def _error_sums(estimate: Estimate, real: Records) -> _ErrorSums:
    numbers = dict(_number_errors(estimate, real.numbers(estimate.columns)))
    categories = {}
    for posterior in estimate.posteriors:
        truth = real.codes[posterior.columns]
        there = truth >= 0
        correct = (posterior.mode() == truth)[there].sum()
        probability = np.nansum(posterior.probability(truth)[there])
        categories[" x ".join(posterior.columns)] = np.array([there.sum(), correct, probability], np.float64)
    return _ErrorSums(len(estimate), numbers, categories)


def _number_errors(estimate: Estimate, real: Floats) -> Iterator[tuple[str, Floats]]:
    for i, name in enumerate(estimate.columns):
        guess, truth = estimate.values[:, i], real[:, i]
        there = ~np.isnan(guess) & ~np.isnan(truth)
        guess, truth = guess[there], truth[there]
        yield name, np.array([len(truth), ((guess - truth) ** 2).sum(), truth.sum(), (truth**2).sum()])
