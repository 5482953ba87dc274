"""Copies opened for analysis: the public model of every column, and the rows as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.errors import ManifestError, MiningError, SourceError, nearest
from sfumato.kernels import Floats, Rows
from sfumato.models import Model, model_of, of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.pseudonym import Pseudonym
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.manifest import Manifest
from sfumato.tables.columns import codes_of, numbers_of, restored
from sfumato.tables.partitioned import Part
from sfumato.tables.read_ahead import read_ahead
from sfumato.tables.source import Source

Result = TypeVar("Result")
In = TypeVar("In")
Out = TypeVar("Out")


class Mapper(Protocol):
    """Maps a function over the files of a copy, on this machine or on a cluster: any engine of `sfumato.engines`."""

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        """The results in the order of the items."""


@dataclass(frozen=True)
class Copy:
    """A perturbed copy with its manifest."""

    manifest: Manifest
    source: Source
    engine: Mapper | None = None
    """The engine that reads a copy of many files; this process, if there is none."""

    @classmethod
    def of(cls, copy: Any, manifest: Manifest | None = None) -> Copy:
        """Open a table or a file with its manifest; of several copies, the most faithful one."""
        if isinstance(copy, Copy):
            return copy
        if isinstance(copy, list | tuple):
            return non_dominated_copies(copy)[0]
        known = Manifest.of(copy) if manifest is None else manifest
        source = known.source(copy)
        unknown = [name for name in source.schema.names if name not in dict(known.columns)]
        if unknown:
            raise ManifestError(
                f"every column of a copy must be described in its manifest, and {unknown[0]!r} is not; drop that column"
            )
        if isinstance(copy, str | Path):
            missing = [name for name, _ in known.columns if name not in source.schema.names]
            if missing or source.rows not in {None, known.rows}:
                raise _mismatch(known)
        return cls(known, source)

    @property
    def column_names(self) -> list[str]:
        """The names of all columns."""
        return list(self.source.schema.names)

    @property
    def rows(self) -> int:
        """The number of records."""
        return self.manifest.rows if self.source.rows is None else self.source.rows

    def model(self, name: str) -> Model:
        """The public model of a column, which may describe other columns too."""
        if name not in self.column_names:
            raise MiningError(f"the copy has no column {name!r}; {nearest(name, self.column_names)}")
        return model_of(self.manifest.models, name)

    def noise_model(self, name: str) -> GaussianNoise | None:
        """The Gaussian noise model of one column by itself; none if the column carries no such noise.

        A column that is shown within a range is refused: its noise cannot be corrected for.
        """
        model = next((model.narrowed([name]) for model in of_type([self.model(name)], GaussianNoise)), None)
        if model is not None and model.range:
            raise MiningError(
                f"{name!r} is shown within a range, so that its noise is not normal and cannot be corrected for; use "
                "it as it stands, or ask for a copy without `range`"
            )
        return model

    def replacement_model(self, name: str) -> UniformReplacement | None:
        """The uniform replacement model of a column and those perturbed jointly with it; none if there is none."""
        return next(iter(of_type([self.model(name)], UniformReplacement)), None)

    def rotation_model(self, name: str) -> Rotation | None:
        """The rotation or projection that a column is a coordinate of; none if it is no such coordinate."""
        return next(iter(of_type([self.model(name)], Rotation)), None)

    def copula_model(self, name: str) -> GaussianCopula | None:
        """The copula of a column whose margin is preserved; none if it is perturbed in another way."""
        return next(iter(of_type([self.model(name)], GaussianCopula)), None)

    @property
    def preserved_columns(self) -> list[str]:
        """The columns whose margins are preserved, so that they can be used as they stand."""
        return [name for name in self.column_names if self.copula_model(name)]

    def unchanged_model(self, name: str) -> Unchanged | None:
        """The model of a column that was released unchanged, or as pseudonyms; none if it was perturbed."""
        model = self.model(name)
        if isinstance(model, Pseudonym):
            return Unchanged(model.columns, model.role)
        return model if isinstance(model, Unchanged) else None

    def is_identifier(self, name: str) -> bool:
        """Whether a column holds identifiers of records or entities, or pseudonyms of them."""
        return self.model(name).identifies

    @property
    def noisy_columns(self) -> list[str]:
        """The numeric columns with Gaussian noise that can be corrected for."""
        models = ((name, of_type([self.model(name)], GaussianNoise)) for name in self.column_names)
        return [name for name, found in models if found and name not in found[0].coarsened_columns]

    @property
    def replaced_columns(self) -> list[str]:
        """The categorical columns that were perturbed by uniform replacement."""
        return [name for name in self.column_names if self.replacement_model(name)]

    @property
    def public_columns(self) -> list[str]:
        """The columns that were released unchanged, without record identifiers."""
        return [name for name in self.column_names if self.unchanged_model(name) and not self.is_identifier(name)]

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers, dates or times rather than categories."""
        kind = self.source.schema.field(name).type
        time = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
        return bool(self.is_number(name) or time) and self.replacement_model(name) is None

    def is_number(self, name: str) -> bool:
        """Whether the values of a column are numbers, be it as categories."""
        kind = self.source.schema.field(name).type
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))

    def clip_bounds(self, name: str) -> tuple[float, float] | None:
        """The bounds that a numeric column was clipped to before noise was added, if they are known as numbers.

        The bounds of a column of dates or times are text in the manifest, and not used.
        """
        model = self.noise_model(name)
        clip: Any = model.clip[0] if model else None
        return None if clip is None or isinstance(clip[0], str) else (float(clip[0]), float(clip[1]))

    def design_effect(self, names: Sequence[str]) -> float:
        """By how much more means of some columns may vary than if each row had noise of its own."""
        models = [model for model in self.manifest.models if set(model.columns) & set(names)]
        return max((model.design_effect for model in models), default=1.0)

    def noise_covariance(self, names: Sequence[str]) -> Floats:
        """The covariance matrix of the noise of some numeric columns; zero for columns without noise."""
        out = np.zeros((len(names), len(names)))
        for model in of_type(self.manifest.models, GaussianNoise):
            for i, one in enumerate(names):
                for j, other in enumerate(names):
                    if one in model.columns and other in model.columns:
                        a, b = sorted((model.columns.index(one), model.columns.index(other)))
                        out[i, j] = model.covariance[b][a]
        return out

    def numeric_columns(self, requested: Sequence[str] | None, at_most: int | None = None) -> list[str]:
        """The requested numeric columns, else all of them; refuses columns that are not numeric."""
        if isinstance(requested, str):
            raise MiningError(f"columns must be a list of names, got {requested!r}; write [{requested!r}]")
        names = self._all_numeric_columns() if requested is None else list(requested)
        for name in names:
            self._check_numeric(name)
        if not names or (at_most is not None and len(names) > at_most):
            limit = "at least one numeric column" if at_most is None else f"one to {at_most} numeric columns"
            raise MiningError(f"{limit} must be given, got {names}; list them in `columns`")
        return names

    def _all_numeric_columns(self) -> list[str]:
        analysable = {*self.noisy_columns, *self.public_columns}
        return [name for name in self.column_names if name in analysable and self.is_numeric(name)]

    def _check_numeric(self, name: str) -> None:
        if self.rotation_model(name):
            raise MiningError(
                f"{name!r} is a coordinate of rotated records, which preserve distances but no column's values; use "
                "scikit-learn's clustering and nearest neighbours on the rotated columns directly"
            )
        if self.copula_model(name):
            raise MiningError(
                f"{name!r} has the margin and the rank correlations of the original and needs no correction; use "
                "pandas, scikit-learn or any other software on the copy as it stands"
            )
        if not self.is_numeric(name):
            raise MiningError(f"{name!r} must be numeric, and it holds categories; use Frequencies for it")

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns of all rows, as a stream of tables; checks at the end that no row is missing."""
        count = 0
        batches = self.source.batches(list(dict.fromkeys(columns)))
        for batch in read_ahead(batches) if self.source.uri else batches:
            count += batch.num_rows
            yield pa.Table.from_batches([batch])
        if self.source.uri and count != self.manifest.rows:
            raise _mismatch(self.manifest)

    def fold(
        self,
        columns: Sequence[str],
        measure: Callable[[Copy, Iterable[pa.Table]], Result],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """A measurement of all rows, taken from a stream of tables.

        A copy of many files is measured file by file and the results are merged in the order of the files, so that
        every engine gives the same result to the last bit.
        """
        parts = self.source.parts
        if not parts:
            return measure(self, self.tables(columns))
        measure_part = _PartMeasurement(self.manifest, tuple(dict.fromkeys(columns)), measure)
        results = self.engine.map(measure_part, parts) if self.engine else map(measure_part, parts)
        rows, total = next(iter(results))
        for count, result in results:
            rows, total = rows + count, merge(total, result)
        if rows != self.manifest.rows:
            raise _mismatch(self.manifest)
        return total

    def values(self, table: pa.Table, names: Sequence[str]) -> Floats:
        """The values of numeric columns, one row per record; NaN where missing. Noise is additive in them."""
        try:
            values = numbers_of(table, names)
        except pa.ArrowException:
            raise _mismatch(self.manifest) from None
        for i, name in enumerate(names):
            model = self.noise_model(name)
            if model is not None:
                values[:, [i]] = restored(values[:, [i]], model)
        return values

    def codes(self, table: pa.Table, model: UniformReplacement) -> Rows:
        """The categories of an attribute as integer codes; -1 for a missing value that was not perturbed."""
        try:
            return codes_of(table, model)
        except SourceError:
            raise _mismatch(self.manifest) from None


@dataclass(frozen=True)
class _PartMeasurement(Generic[Result]):
    """Measures one file of a copy and counts its rows; picklable, so that an engine can send it to a worker."""

    manifest: Manifest
    columns: tuple[str, ...]
    measure: Callable[[Copy, Iterable[pa.Table]], Result]

    def __call__(self, part: Part) -> tuple[int, Result]:
        source, rows = self.manifest.source(part), 0

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for batch in source.batches(list(self.columns)):
                rows += batch.num_rows
                yield pa.Table.from_batches([batch])

        result = self.measure(Copy(self.manifest, source), tables())
        return rows, result


def with_engine(engine: Mapper, copy: Any) -> Copy:
    """A copy of many files that an engine reads: `Moments().fit(with_engine(engine, "copy/"))`."""
    return replace(Copy.of(copy), engine=engine)


def non_dominated_copies(copies: Sequence[Any], columns: Sequence[str] | None = None) -> list[Copy]:
    """The copies of a coalition that add information about some columns, the most faithful first.

    A copy adds none if a more faithful one lies on the same paths (li2012, Theorem 4). Copies with fewer records than
    the best are left out, since they describe only a part of the table.
    """
    if not copies:
        raise MiningError("at least one copy must be given, and the list is empty; give one")
    ordered = sorted((Copy.of(copy) for copy in copies), key=lambda copy: (-copy.rows, -copy.manifest.fidelity))
    datasets = sorted({copy.manifest.dataset for copy in ordered})
    if len(datasets) > 1:
        raise MiningError(f"the copies must be of one dataset, got {', '.join(datasets)}; analyse each by itself")
    usable = [copy for copy in ordered if set(columns or ()) <= set(copy.column_names)] or ordered
    chosen: list[Copy] = []
    for copy in usable:
        if copy.rows == usable[0].rows and not _is_dominated(copy, chosen, columns):
            chosen.append(copy)
    return chosen


def _is_dominated(copy: Copy, better: Sequence[Copy], columns: Sequence[str] | None) -> bool:
    """Whether a more faithful copy lies on all paths of this one, so that this one adds no information to it."""
    paths = _paths(copy, columns)
    return any(paths <= _paths(other, columns) for other in better)


def _paths(copy: Copy, columns: Sequence[str] | None) -> set[str]:
    """The identities of the paths that the perturbed columns of a copy lie on."""
    models = [model for model in copy.manifest.models if model.is_perturbed]
    wanted = models if columns is None else [model for model in models if set(model.columns) & set(columns)]
    return {copy.manifest.path_identity(model) for model in wanted}


def _mismatch(manifest: Manifest) -> ManifestError:
    return ManifestError(
        f"the copy must match its manifest, which describes {manifest.rows:,} rows of {len(manifest.columns)} columns, "
        "and it does not; ask for the copy again"
    )
