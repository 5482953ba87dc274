"""Plausible originals of a copy: drawn from a joint model of its columns, batch by batch, in flat memory.

The joint models are fitted to a sample of the records, and every record is drawn from them given what the copy shows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.joint_model import ROWS, JointModel
from sfumato.kernels.latent_class import Observed
from sfumato.kernels.mixed_records import LARGEST_DOMAIN, MixedRecords
from sfumato.kernels.threads import in_threads
from sfumato.mining.copies.copy import Copy
from sfumato.models import of_type
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import clip_bounds
from sfumato.tables import numeric
from sfumato.tables.columns import contiguous, numbers_of
from sfumato.tables.domain import Domain

R = TypeVar("R")
Original = pa.Table | ds.Dataset
"""A plausible original, in memory or in a temporary file."""

IN_MEMORY = 1_000_000
"""The most records of a plausible original in memory, where it need not be there."""

_SAMPLE = 200_000
"""The most records that joint models are fitted to samples of."""

_MANY = 5
"""The fewest numbers whose order tells something of their shares."""

_FEWEST = 200
"""The fewest records from which a joint distribution is estimated."""


@dataclass(frozen=True)
class _Reading:
    """How the columns of a copy are read."""

    numbers: tuple[str, ...]
    """The columns with noise."""
    attributes: tuple[UniformReplacement, ...]
    public: dict[str, pa.Array | None]
    """The columns that were released unchanged, and their categories, if they hold no numbers."""

    def arrays(self, copy: Copy, table: pa.Table) -> tuple[Floats, list[Rows], Floats]:
        """The noisy numbers, the categories and the public columns of a table."""
        values = copy.values(table, self.numbers) if self.numbers else np.empty((table.num_rows, 0))
        public = [_public_numbers(table, name, labels) for name, labels in self.public.items()]
        codes = [copy.codes(table, model) for model in self.attributes]
        return values, codes, np.column_stack(public) if public else np.empty((table.num_rows, 0))


@dataclass(frozen=True)
class PlausibleOriginals:
    """A copy, how its records are read, and a sample of them."""

    copy: Copy
    columns: tuple[str, ...]
    reading: _Reading
    records: MixedRecords
    sample: Observed
    known: Floats | None = None
    """What else is known of every record, as further columns of numbers."""
    given: JointModel | None = None
    """A joint model of records like these, if there is one."""

    @classmethod
    def of(cls, copy: Copy, columns: Sequence[str], known: Floats | None = None) -> PlausibleOriginals:
        """Read some columns of a copy; what else is known of its records may be given as further columns of numbers."""
        check_readable(copy, columns)
        rows = evenly_spaced(copy.rows, min(copy.rows, _SAMPLE))
        sample = rows_of(copy, columns, rows)
        numbers = tuple(name for name in columns if copy.noise_model(name))
        public = {name: _labels(copy, sample, name) for name in copy.public_columns if name in columns}
        reading = _Reading(numbers, tuple(_attributes(copy, columns)), public)
        values, codes, unchanged = reading.arrays(copy, sample)
        unchanged = unchanged if known is None else np.hstack([unchanged, known[rows]])
        models = [model for model in map(copy.noise_model, numbers) if model is not None]
        records = MixedRecords.of(
            values,
            copy.noise_covariance(numbers),
            np.array([model.step[0] for model in models]),
            [(model.retention, model.size) for model in reading.attributes],
            unchanged,
            [model.special_values(name) for model, name in zip(models, numbers, strict=True)],
            [_ordered_numbers(model) for model in reading.attributes],
        )
        return cls(copy, tuple(columns), reading, records, records.observed(values, codes, unchanged), known)

    def of_another(self, copy: Copy) -> PlausibleOriginals:
        """The same for another copy with the same columns and noise, whose joint distribution is about the same."""
        rows = evenly_spaced(copy.rows, min(copy.rows, _SAMPLE))
        shown = self.records.observed(*self.reading.arrays(copy, rows_of(copy, self.columns, rows)))
        return replace(self, copy=copy, sample=shown, given=self.start)

    @cached_property
    def start(self) -> JointModel:
        """The joint model of these records from which others begin."""
        if self.given is not None:
            return self.given
        return JointModel.converged(self.records, self.sample.take(evenly_spaced(len(self.sample), ROWS)))

    def each(self, m: int, random_state: int, work: Callable[[Any], R], *, in_memory: bool = True) -> list[R]:
        """What some work makes of each of m plausible originals.

        Half of them follow classes without bias, whose ranges vary much, and half the likeliest classes, whose
        relations are weaker: how far these are from each other is part of what is not known.

        Args:
            m: the number of plausible originals.
            random_state: the seed.
            work: what is done to each of them.
            in_memory: whether each is a table in memory, even if it is large; else a large one is in a file.

        """
        start = self.start

        def fit(number: int, some: Observed) -> JointModel:
            likely = number % 2
            return JointModel.fit(self.records, some) if likely else JointModel.converged(self.records, some, start)

        return self._each(m, random_state, fit, work, in_memory)

    def likely_tables(self, m: int, random_state: int) -> list[pa.Table]:
        """Plausible originals to learn from: by classes that are the likeliest for other records."""
        return self._each(m, random_state, lambda _, some: JointModel.fit(self.records, some), lambda table: table)

    def _each(
        self,
        m: int,
        random_state: int,
        fit: Callable[[int, Observed], JointModel],
        work: Callable[[Any], R],
        in_memory: bool = True,
    ) -> list[R]:
        """What some work makes of plausible originals, each from a joint model of its own."""
        seeds = np.random.SeedSequence(random_state).spawn(m)

        def one(number: int) -> R:
            rng = np.random.default_rng(seeds[number])
            rows = rng.integers(0, len(self.sample), min(len(self.sample), ROWS))
            drawn = self._drawn(fit(number, self.sample.take(rows)), rng)
            if in_memory or self.copy.rows <= IN_MEMORY:
                return work(pa.concat_tables(drawn))
            with tempfile.TemporaryDirectory(prefix="sfumato-") as folder:
                return work(_written(drawn, Path(folder) / "original.parquet"))

        return in_threads(one, range(m))

    def _drawn(self, model: JointModel, rng: np.random.Generator) -> Iterator[pa.Table]:
        """One plausible original, in batches."""
        first = 0
        for table in self.copy.tables(self.columns):
            values, codes, public = self.reading.arrays(self.copy, table)
            if self.known is not None:
                public = np.hstack([public, self.known[first : first + table.num_rows]])
            first += table.num_rows
            drawn = model.draw(self.records.observed(values, codes, public), rng)
            yield self._table(table, drawn)

    def _table(self, shown: pa.Table, drawn: Observed) -> pa.Table:
        """A batch of a plausible original, whose columns are like those of the copy."""
        arrays = {name: shown.column(name) for name in shown.column_names}
        for name, values in zip(self.reading.numbers, drawn.numbers.T, strict=False):
            arrays[name] = self._number(shown, name, values)
        for model, codes in zip(self.reading.attributes, drawn.codes, strict=False):
            arrays |= _categories(shown, model, codes)
        return pa.table(arrays)  # without the manifest: these are no copies

    def _number(self, shown: pa.Table, name: str, values: Floats) -> pa.Array:
        """A column of numbers: missing where the copy has none, within its clip, and whole where the copy is."""
        kind = shown.schema.field(name).type
        model = self.copy.noise_model(name)
        for special, _ in (model.special_values(name) if model is not None else None) or ():
            values = np.where(np.isclose(values, special, rtol=1e-9, atol=1e-9), special, values)
        if model is not None and model.clip[0] is not None:
            values = np.clip(values, *clip_bounds(model.clip[0], kind))
        missing = np.asarray(contiguous(shown.column(name)).is_null())
        return numeric.write(values if pa.types.is_floating(kind) else np.rint(values), missing, kind, name)


def _categories(shown: pa.Table, model: UniformReplacement, codes: Rows) -> dict[str, pa.Array]:
    """The columns of one attribute, from an index over the product of their domains; unknown ones stay."""
    unknown, left, found = codes < 0, np.maximum(codes, 0), {}
    for name, encoded in reversed(list(zip(model.columns, model.domains, strict=True))):
        domain, column = Domain.decode(encoded), contiguous(shown.column(name))
        left, own = np.divmod(left, domain.count + model.perturbs_null)
        null = own == domain.count
        drawn = domain.array(np.where(null, 0, own), null, column.type)
        found[name] = pc.if_else(pa.array(unknown), column, drawn)
    return found


def _written(drawn: Iterator[pa.Table], path: Path) -> ds.Dataset:
    """A plausible original in a file."""
    first = next(drawn)
    with pq.ParquetWriter(path, first.schema, compression="none", use_dictionary=False) as writer:
        writer.write_table(first)
        for table in drawn:
            writer.write_table(table)
    return ds.dataset(path)


def rows_of(copy: Copy, columns: Sequence[str], rows: Rows) -> pa.Table:
    """Some rows of a copy, by their ascending numbers."""
    found, first = [], 0
    for table in copy.tables(columns):
        last = first + table.num_rows
        own = rows[np.searchsorted(rows, first) : np.searchsorted(rows, last)]
        found.append(table if len(own) == table.num_rows else table.take(pa.array(own - first)))
        first = last
    return pa.concat_tables(found)


def _attributes(copy: Copy, names: Sequence[str]) -> list[UniformReplacement]:
    """The attributes among some columns, each with those of its columns that are among them."""
    models = of_type(copy.manifest.models, UniformReplacement)
    found = [model.narrowed([name for name in model.columns if name in names]) for model in models]
    return [model for model in found if model.columns and model.size]


def _ordered_numbers(model: UniformReplacement) -> Floats | None:
    """The categories of an attribute if they are more than a few numbers, in ascending order."""
    if len(model.columns) > 1 or model.perturbs_null or model.size < _MANY:
        return None
    domain = Domain.decode(model.domains[0])
    values = domain.values or range(domain.first, domain.first + domain.count)
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    numbers = np.array(values, np.float64)
    return numbers if np.all(np.diff(numbers) > 0) else None


def _labels(copy: Copy, sample: pa.Table, name: str) -> pa.Array | None:
    """The categories of a column that was released unchanged; none if it holds numbers."""
    return None if copy.is_numeric(name) else contiguous(sample.column(name)).unique().drop_null()


def _public_numbers(table: pa.Table, name: str, labels: pa.Array | None) -> Floats:
    """A column that was released unchanged as numbers, categories as codes; NaN where they are missing."""
    if labels is None:
        return numbers_of(table, [name])[:, 0]
    codes = pc.index_in(contiguous(table.column(name)), value_set=labels)
    return np.asarray(codes.cast(pa.float64()).fill_null(np.nan))


def check_readable(copy: Copy, names: Sequence[str]) -> None:
    """Refuse columns of a copy that cannot be imputed, and too few records."""
    for name in names:
        check_imputable(copy, name)
    if copy.rows < _FEWEST:
        raise MiningError(
            f"a joint distribution needs at least {_FEWEST} records, and the copy has {copy.rows}; use the estimators "
            "for single columns"
        )


def check_imputable(copy: Copy, name: str) -> None:
    """Refuse a column that cannot be imputed."""
    if copy.model(name).entity_column:
        raise MiningError(
            f"rows of one {copy.model(name).entity_column} share noise in {name!r}, and plausible originals are drawn "
            "as if each row had its own; ask for means, frequencies, correlations or regressions, which allow for it"
        )
    copy.noise_model(name)  # which refuses one that is shown within a range
    if copy.copula_model(name):
        raise MiningError(
            f"{name!r} has the margin and the rank correlations of the original and needs no imputation; use the copy "
            "as it stands"
        )
    if copy.rotation_model(name):
        raise MiningError(f"{name!r} is a coordinate of rotated records, which cannot be imputed; leave it out")
    model = copy.replacement_model(name)
    if model is not None and model.size > LARGEST_DOMAIN:
        raise MiningError(
            f"{name!r} has {model.size:,} categories, and at most {LARGEST_DOMAIN} can be imputed; leave it out of "
            "`columns`"
        )
