"""A copy, opened: what its manifest says of every column, and its rows as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.errors import ManifestError, MiningError, SourceError, nearest
from sfumato.kernels import Floats, Rows
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import codes_of, numbers_of
from sfumato.release.manifest import Manifest

if TYPE_CHECKING:
    from sfumato.engines import Engine
    from sfumato.tables.partitioned import Part
    from sfumato.tables.source import Source

Found = TypeVar("Found")


@dataclass(frozen=True)
class Copy:
    """One copy and its manifest."""

    manifest: Manifest
    source: Source
    engine: Engine | None = None
    """What reads a copy in many files, if it is not this process."""

    @classmethod
    def of(cls, copy: Any, manifest: Manifest | None = None) -> Copy:
        """A table or a file with its manifest; of several, the best: the others tell nothing more."""
        if isinstance(copy, Copy):
            return copy
        if isinstance(copy, list | tuple):
            return opened(copy)[0]
        known = Manifest.of(copy) if manifest is None else manifest
        source = known.source(copy)
        strange = [name for name in source.schema.names if name not in dict(known.columns)]
        if strange:
            raise ManifestError(f"the manifest must tell of every column, and knows no {strange[0]!r}; leave it out")
        if isinstance(copy, str | Path):
            lost = [name for name, _ in known.columns if name not in source.schema.names]
            if lost or source.rows not in {None, known.rows}:
                raise _unfit(known)
        return cls(known, source)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.source.schema.names)

    @property
    def rows(self) -> int:
        """How many records there are."""
        return self.manifest.rows if self.source.rows is None else self.source.rows

    def model(self, name: str) -> Model:
        """What is public about a column."""
        if name not in self.names:
            raise MiningError(f"the copy has no column {name!r}; {nearest(name, self.names)}")
        model = next(model for model in self.manifest.models if name in model.columns)
        return model.narrowed([name]) if isinstance(model, GaussianNoise) else model

    @property
    def noisy(self) -> list[str]:
        """The columns of numbers that carry noise."""
        return [name for name in self.names if isinstance(self.model(name), GaussianNoise)]

    @property
    def replaced(self) -> list[str]:
        """The columns of categories that were replaced at random."""
        return [name for name in self.names if isinstance(self.model(name), UniformReplacement)]

    @property
    def kept(self) -> list[str]:
        """The columns that are shown as they are, but for ids."""
        models = {name: self.model(name) for name in self.names}
        return [name for name, model in models.items() if isinstance(model, Unchanged) and not model.is_identifier]

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers, times included, and no categories."""
        kind = self.source.schema.field(name).type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        time = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
        return name not in self.replaced and bool(number or time)

    def noise(self, names: Sequence[str]) -> Floats:
        """The covariance of the noise of some columns of numbers; 0 where there is none."""
        out = np.zeros((len(names), len(names)))
        for model in self.manifest.models:
            if isinstance(model, GaussianNoise):
                for i, one in enumerate(names):
                    for j, other in enumerate(names):
                        if one in model.columns and other in model.columns:
                            a, b = sorted((model.columns.index(one), model.columns.index(other)))
                            out[i, j] = model.covariance[b][a]
        return out

    def numbers(self, asked: Sequence[str] | None, most: int | None = None) -> list[str]:
        """The columns of numbers that were asked for, else all; refused where they are none."""
        if isinstance(asked, str):
            raise MiningError(f"columns must be a list of names, got {asked!r}; write [{asked!r}]")
        names = [n for n in self.names if self.is_number(n) and n in (*self.noisy, *self.kept)]
        names = names if asked is None else list(asked)
        for name in names:
            if isinstance(self.model(name), Rotation):
                raise MiningError(
                    f"{name!r} is turned, so it has distances and no values of its own; use scikit-learn's clustering "
                    "and neighbours on such columns as they are"
                )
            if not self.is_number(name):
                raise MiningError(f"{name!r} must be a column of numbers, and it is none; ask for its frequencies")
        if not names or (most is not None and len(names) > most):
            limit = "at least one column" if most is None else f"one to {most} columns"
            raise MiningError(f"{limit} of numbers must be named, got {names}; name them")
        return names

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of some columns, some at a time."""
        count = 0
        for batch in self.source.batches(list(dict.fromkeys(columns))):
            count += batch.num_rows
            yield pa.Table.from_batches([batch])
        if self.source.place and count != self.manifest.rows:
            raise _unfit(self.manifest)

    def fold(
        self,
        columns: Sequence[str],
        measure: Callable[[Copy, Iterable[pa.Table]], Found],
        merge: Callable[[Found, Found], Found],
    ) -> Found:
        """What is measured of the rows, some at a time; of a copy in many files that of each, merged in their order.

        So the result is the same to the last bit by any engine.
        """
        measuring = _Measuring(self.manifest, tuple(dict.fromkeys(columns)), measure)
        parts = self.source.parts
        if not parts:
            return measure(self, self.tables(columns))
        results = self.engine.map(measuring, parts) if self.engine else map(measuring, parts)
        rows, total = next(iter(results))
        for count, found in results:
            rows, total = rows + count, merge(total, found)
        if rows != self.manifest.rows:
            raise _unfit(self.manifest)
        return total

    def values(self, table: pa.Table, names: Sequence[str]) -> Floats:
        """Columns of numbers, a record a row; NaN where missing."""
        try:
            return numbers_of(table, names)
        except pa.ArrowException:
            raise _unfit(self.manifest) from None

    def codes(self, table: pa.Table, model: UniformReplacement) -> Rows:
        """The categories of an attribute as numbers; -1 where one is missing and stays so."""
        try:
            return codes_of(table, model)
        except SourceError:
            raise _unfit(self.manifest) from None


@dataclass(frozen=True)
class _Measuring(Generic[Found]):
    """Measures one file of a copy, wherever it is called, and counts its rows."""

    manifest: Manifest
    columns: tuple[str, ...]
    measure: Callable[[Copy, Iterable[pa.Table]], Found]

    def __call__(self, part: Part) -> tuple[int, Found]:
        source, rows = self.manifest.source(part), 0

        def tables() -> Iterator[pa.Table]:
            nonlocal rows
            for batch in source.batches(list(self.columns)):
                rows += batch.num_rows
                yield pa.Table.from_batches([batch])

        found = self.measure(Copy(self.manifest, source), tables())
        return rows, found


def on(engine: Engine, copy: Any) -> Copy:
    """A copy in a folder, to be read by an engine: `Moments().fit(on(engine, "copy/"))`."""
    return replace(Copy.of(copy), engine=engine)


def opened(copies: Sequence[Any], columns: Sequence[str] | None = None) -> list[Copy]:
    """The copies of a coalition that show some columns, the best first, and only the best of each path.

    Those beside it must show as many records: of part of a table, they tell something else.
    """
    if not copies:
        raise MiningError("a copy must be given, and the list is empty; name at least one")
    found = sorted((Copy.of(copy) for copy in copies), key=lambda copy: (-copy.rows, -copy.manifest.fidelity))
    if len({copy.manifest.dataset for copy in found}) > 1:
        names = ", ".join(sorted({copy.manifest.dataset for copy in found}))
        raise MiningError(f"copies must be of one dataset, got {names}")
    showing = [copy for copy in found if set(columns or ()) <= set(copy.names)] or found
    non_dominated: dict[tuple[Any, ...], Copy] = {}
    for copy in showing:
        if copy.rows == showing[0].rows:
            non_dominated.setdefault(_path(copy), copy)
    return list(non_dominated.values())


def _path(copy: Copy) -> tuple[Any, ...]:
    """Names the path that a copy lies on; noise that is not collusion_resistant has one for every level."""
    blurred = [model for model in copy.manifest.models if not isinstance(model, Unchanged)]
    whole = (copy.manifest.scheme, copy.manifest.key)
    return whole if all(model.collusion_resistant for model in blurred) else (*whole, copy.manifest.fidelity)


def _unfit(manifest: Manifest) -> ManifestError:
    return ManifestError(
        f"the manifest must fit the copy, and it tells of {manifest.rows:,} rows of {len(manifest.columns)} columns, "
        "which are not there; ask for the copy again"
    )
