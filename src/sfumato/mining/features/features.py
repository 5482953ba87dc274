"""The columns that a classifier or a regression learns from: numbers and categories, blurred and not, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from sfumato.errors import ManifestError, MiningError
from sfumato.kernels import Floats, Rows
from sfumato.mining.copies.copy import Copy
from sfumato.mining.features.contingency import Replaced, axes_of
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import numbers_of
from sfumato.release.manifest import Manifest


@dataclass(frozen=True)
class Feature:
    """One column: numbers, or categories as codes."""

    name: str
    deviation: float = 0.0
    """Of the noise."""
    labels: tuple[Any, ...] = ()
    """The categories; none for numbers."""
    retention: float = 1.0
    step: float = 0.0
    """What every number of a blurred copy is a multiple of."""
    ends: tuple[float, float] | None = None
    """Between which the original lies, where it was clipped."""
    together: tuple[str, ...] = ()
    """The columns of a joint group, which were replaced as one."""

    @property
    def size(self) -> int:
        """How many categories there are; 0 for numbers."""
        return len(self.labels)


@dataclass(frozen=True)
class Features:
    """Some columns, and the covariance of the noise of those that are numbers (0 elsewhere)."""

    columns: tuple[Feature, ...]
    noise: Floats
    named: bool
    """Whether columns are found by name; else records are arrays of numbers without noise."""

    def check_apart(self) -> None:
        """Refuse columns that were replaced together, for what takes them to be replaced each by itself."""
        groups = [column.together for column in self.columns if len(column.together) > 1]
        for group in groups:
            if groups.count(group) > 1:
                raise MiningError(
                    f"{' and '.join(group)} were replaced together, as one; leave all but one of them out"
                )

    @property
    def numbers(self) -> list[int]:
        """The places of the columns of numbers."""
        return [i for i, column in enumerate(self.columns) if not column.size]

    def read(self, miner: Any, X: Any) -> Floats:
        """Records to predict for, a row each: numbers, and categories as codes."""
        if not self.named:
            plain: Floats = validate_data(miner, X, reset=False, dtype=np.float64)
            return plain
        table = _table(X)
        lost = [c.name for c in self.columns if table is None or c.name not in table.column_names]
        if table is None or lost:
            raise MiningError(f"records must be a table with the columns learnt from, and {lost[0]!r} is not there")
        out = np.column_stack([_read(table, column) for column in self.columns])
        if np.isnan(out).any():
            raise MiningError("records to predict for must miss nothing, and some values are missing; fill them")
        return out


@dataclass(frozen=True)
class TrainingSet:
    """What a classifier learns from: features, their values, and the class of each record."""

    features: Features
    values: Floats
    classes: Any
    """The labels that there are."""
    labels: Rows
    """Which of them each record shows."""
    retention: float = 1.0
    """How likely a record shows its own class; else it shows any of them."""


@dataclass(frozen=True)
class Task:
    """What a regression learns from."""

    features: Features
    values: Floats
    target: Floats
    crossed: Floats
    """The covariance of the target's noise with that of each column."""
    target_noise: float


def lesson(miner: Any, X: Any, y: Any) -> TrainingSet:
    """What `fit(X, y)` is given: a copy and the name of its class column, or what scikit-learn takes."""
    X = _best(X)
    manifest = _manifest(X, miner.manifest)
    if manifest is None:
        values, labels = validate_data(miner, X, y, dtype=np.float64, ensure_min_samples=2)
        plain = tuple(Feature(str(i)) for i in range(values.shape[1]))
        return _labelled(Features(plain, np.zeros((len(plain),) * 2), False), values, labels, 1.0, None)
    opened = _opened(miner, X, y, manifest)
    axis = None if opened.target is None else axes_of(_whole(opened.copy), [opened.target])[0]
    blurred = axis if isinstance(axis, Replaced) else None
    retention = blurred.retention if blurred else 1.0
    return _labelled(opened.features, opened.values, opened.shown, retention, blurred)


def task(miner: Any, X: Any, y: Any) -> Task:
    """What the `fit(X, y)` of a regression is given."""
    X = _best(X)
    manifest = _manifest(X, miner.manifest)
    if manifest is None:
        values, target = validate_data(miner, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        plain = tuple(Feature(str(i)) for i in range(values.shape[1]))
        return Task(Features(plain, np.zeros((len(plain),) * 2), False), values, target, np.zeros(len(plain)), 0.0)
    opened = _opened(miner, X, y, manifest)
    target = _target(opened)
    names = [column.name for column in opened.features.columns]
    noise = np.zeros((len(names) + 1,) * 2)
    if opened.target is not None:
        whole = _whole(opened.copy)
        if isinstance(whole.model(opened.target), UniformReplacement):
            raise MiningError(f"{opened.target!r} holds categories; regress on numbers, or classify")
        noise = whole.noise([*names, opened.target])
    kept = ~np.isnan(opened.values).any(axis=1) & ~np.isnan(target)
    return Task(opened.features, opened.values[kept], target[kept], noise[:-1, -1], float(noise[-1, -1]))


def _target(opened: _Opened) -> Floats:
    try:
        return numbers_of(pa.table({"y": pa.array(opened.shown)}), ["y"])[:, 0]
    except (pa.ArrowException, TypeError):
        raise MiningError("a regression needs numbers to explain, and these are none; use a classifier") from None


@dataclass(frozen=True)
class _Opened:
    copy: Copy
    features: Features
    values: Floats
    shown: list[Any]
    target: str | None
    """The name of what is to be learnt, where it is a column of the copy."""


def _opened(miner: Any, X: Any, y: Any, manifest: Manifest) -> _Opened:
    copy = Copy.of(X, manifest)
    name = y if isinstance(y, str) else getattr(y, "name", None)
    target = name if isinstance(name, str) and name in dict(manifest.columns) else None
    table = pa.concat_tables(copy.tables(copy.names)) if copy.rows else pa.Table.from_batches([], copy.source.schema)
    if isinstance(y, str):
        copy.model(y)  # refuses what is no column
        shown = table.column(y).to_pylist()
    else:
        shown = list(y)
    if not table.num_rows:
        raise MiningError("at least two records must be there to learn from, and the copy has none")
    if len(shown) != table.num_rows:
        raise MiningError(f"every record must have its y, got {table.num_rows:,} records and {len(shown):,} of them")
    features, values = _columns(copy, table, [name for name in copy.names if name != target])
    miner.n_features_in_ = len(features.columns)
    miner.feature_names_in_ = np.array([column.name for column in features.columns], dtype=object)
    return _Opened(copy, features, values, shown, target)


def _labelled(features: Features, values: Floats, shown: Any, retention: float, axis: Replaced | None) -> TrainingSet:
    labels = np.asarray(shown)
    whole = np.array([label is not None and label == label for label in shown]) & ~np.isnan(values).any(axis=1)  # noqa: PLR0124
    if whole.sum() < 2:
        raise MiningError(f"at least two records must miss nothing, got {int(whole.sum())}; give more")
    values, labels = values[whole], labels[whole]
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if axis is not None:  # a class that only replacement brought up is a class all the same
        classes = np.array([label for (label,) in axis.labels])
        codes = np.array([list(classes).index(label) for label in labels])
    return TrainingSet(features, values, classes, codes, retention)


def _columns(copy: Copy, table: pa.Table, names: Sequence[str]) -> tuple[Features, Floats]:
    columns, values = [], []
    for name in names:
        model = copy.model(name)
        if isinstance(model, Unchanged) and model.is_identifier:
            continue
        if isinstance(model, Rotation):
            raise MiningError(f"{name!r} is turned; classify turned columns with scikit-learn as they are")
        if copy.is_number(name):
            values.append(copy.values(table, [name])[:, 0])
            columns.append(number(name, model))
            check_lattice(values[-1], columns[-1])
            continue
        axis = axes_of(copy, [name])[0]
        codes = axis.codes(copy, table)
        group = model.columns if isinstance(model, UniformReplacement) else ()
        columns.append(Feature(name, 0.0, tuple(label for (label,) in axis.labels), axis.retention, together=group))
        values.append(np.where(codes < 0, np.nan, codes))
    if not columns:
        raise MiningError("at least one column must be left to learn from, and there is none")
    noise = copy.noise([column.name for column in columns])
    return Features(tuple(columns), noise, True), np.column_stack(values)


def number(name: str, model: Any) -> Feature:
    """A column of numbers, as its model tells."""
    if not isinstance(model, GaussianNoise):
        return Feature(name)
    clip: Any = model.clip[0]  # of moments it is text
    ends = None if clip is None or isinstance(clip[0], str) else (float(clip[0]), float(clip[1]))
    return Feature(name, float(np.sqrt(model.covariance[0][0])), step=float(model.step[0]), ends=ends)


def check_lattice(values: Floats, column: Feature) -> None:
    """Refuse numbers that were scaled or moved: their noise is no longer what the manifest says."""
    off = values / (column.step or 1.0) if column.deviation else np.zeros(1)
    if np.nanmax(np.abs(off - np.rint(off)), initial=0) > 1e-6:
        raise ManifestError(
            f"{column.name!r} must be as it was released, in steps of {column.step:.3g}, and it was changed; fit on "
            "the copy itself, and scale afterwards"
        )


def _read(table: pa.Table, column: Feature) -> Floats:
    """A column of records to predict for; a category that was never seen is -1, which tells nothing."""
    if not column.size:
        try:
            return numbers_of(table, [column.name])[:, 0]
        except pa.ArrowException:
            raise MiningError(f"{column.name!r} must hold numbers, as where it was learnt from") from None
    places = {label: float(i) for i, label in enumerate(column.labels)}
    shown = table.column(column.name).to_pylist()
    return np.array([np.nan if value is None and None not in places else places.get(value, -1.0) for value in shown])


def _table(X: Any) -> pa.Table | None:
    if isinstance(X, pa.Table):
        return X
    return pa.table(X) if hasattr(X, "__arrow_c_stream__") else None


def _manifest(X: Any, said: Any) -> Manifest | None:
    """Given, or found in the copy; arrays and data frames may do without, and then nothing is blurred."""
    if said is not None:
        if not isinstance(said, Manifest):
            raise MiningError(f"`manifest` must be a Manifest, got {type(said).__name__}; read it by Manifest.of(copy)")
        return said
    if isinstance(X, Copy):
        return X.manifest
    return Manifest.of(X) if isinstance(X, pa.Table | str | Path) else None


def _best(X: Any) -> Any:
    """Of a coalition's copies, the best."""
    some = isinstance(X, list | tuple) and X and all(isinstance(one, pa.Table | str | Path) for one in X)
    return Copy.of(X) if some else X


def _whole(copy: Copy) -> Copy:
    """The copy with all columns of its manifest, of which only the models are asked."""
    empty = pa.table({name: pa.array([], pa.null()) for name, _ in copy.manifest.columns})
    return Copy(copy.manifest, copy.manifest.source(empty))
