"""Features and training sets of classifiers and regressions: columns with the perturbation of their values."""

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
from sfumato.kernels import Floats, Mask, Rows
from sfumato.mining.copies.copy import Copy
from sfumato.mining.features.contingency import Factor, factors_of
from sfumato.release.manifest import METADATA, Manifest
from sfumato.tables.columns import numbers_of

ORIGINAL = "original"
"""The value of the parameter `manifest` for records that were never perturbed."""


@dataclass(frozen=True)
class Feature:
    """One column: numbers, or categories as codes."""

    name: str
    deviation: float = 0.0
    """The standard deviation of the noise."""
    labels: tuple[Any, ...] = ()
    """The categories; none for a numeric column."""
    retention: float = 1.0
    """The probability that a category was retained."""
    step: float = 0.0
    """The step of which every noisy value is a multiple."""
    bounds: tuple[float, float] | None = None
    """The bounds that the original was clipped to, if it was."""
    joint_group: tuple[str, ...] = ()
    """The columns that were perturbed jointly as one attribute."""

    @property
    def size(self) -> int:
        """The number of categories; 0 for a numeric column."""
        return len(self.labels)

    @property
    def is_perturbed(self) -> bool:
        """Whether the values carry noise or were replaced at random."""
        return bool(self.deviation) or self.retention < 1


@dataclass(frozen=True)
class Features:
    """The columns that a model learns from, and the covariance of their noise (zero for categories)."""

    columns: tuple[Feature, ...]
    noise: Floats
    named: bool
    """Whether columns are found by name; else records are arrays of numbers without noise."""

    def check_separate(self) -> None:
        """Refuse columns of one joint group, for models that assume columns perturbed independently."""
        groups = [column.joint_group for column in self.columns if len(column.joint_group) > 1]
        for group in groups:
            if groups.count(group) > 1:
                raise MiningError(
                    f"columns must be perturbed independently, and {' and '.join(group)} were perturbed jointly; leave "
                    "out all but one of them"
                )

    @property
    def numeric(self) -> list[int]:
        """The indices of the numeric columns."""
        return [i for i, column in enumerate(self.columns) if not column.size]

    def read(self, miner: Any, X: Any) -> Floats:
        """Records to predict for, one row each: numbers, and categories as codes."""
        if not self.named:
            plain: Floats = validate_data(miner, X, reset=False, dtype=np.float64)
            return plain
        table = _table(X)
        missing = [c.name for c in self.columns if table is None or c.name not in table.column_names]
        if table is None or missing:
            raise MiningError(
                f"records must be a table with the columns that the model was fitted to, and {missing[0]!r} is missing"
            )
        out = np.column_stack([_read(table, column) for column in self.columns])
        if np.isnan(out).any():
            raise MiningError("records to predict for must be complete, and some values are missing; impute them")
        return out


@dataclass(frozen=True)
class TrainingSet:
    """The training set of a classifier: features, their values, and the class of each record."""

    features: Features
    values: Floats
    classes: Any
    """The distinct class labels."""
    labels: Rows
    """The index of each record's class."""
    retention: float = 1.0
    """The probability that a record has its own class in the copy; else it has any class at random."""


@dataclass(frozen=True)
class RegressionSet:
    """The training set of a regression: features, their values, and the target of each record."""

    features: Features
    values: Floats
    target: Floats
    noise_with_target: Floats
    """The covariance of each column's noise with the target's noise."""
    target_noise: float
    design_effect: float = 1.0
    """By how much more estimates vary than if each row had noise of its own, at most."""


def check_prediction_target(on: str) -> None:
    """Refuse a value of the parameter `on` that is neither the original nor the copy."""
    if on not in {"original", "copy"}:
        raise MiningError(f"`on` must be 'original' or 'copy', got {on!r}; choose one of them")


def check_complete(rows: int) -> None:
    """Refuse a training set with fewer than two complete records."""
    if rows < 2:
        raise MiningError(f"at least two records without missing values are needed, got {rows}; give more")


def training_set(miner: Any, X: Any, y: Any) -> TrainingSet:
    """The training set of `fit(X, y)`: a copy and the name of its class column, or scikit-learn's arguments."""
    data = open_records(miner, X, y)
    if data is None:
        values, labels = validate_data(miner, X, y, dtype=np.float64, ensure_min_samples=2)
        return _classified(_unperturbed(values), values, labels, None)
    return classified(data)


def classified(data: Records) -> TrainingSet:
    """The training set of the complete records of a copy, and their classes."""
    return _classified(data.features, data.values, data.target_values, _class_factor(data))


def regression_set(miner: Any, X: Any, y: Any) -> RegressionSet:
    """The training set of a regression's `fit(X, y)`: a copy and its target's name, or scikit-learn's arguments."""
    data = open_records(miner, X, y)
    if data is None:
        values, target = validate_data(miner, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        return RegressionSet(_unperturbed(values), values, target, np.zeros(values.shape[1]), 0.0)
    return regressed(data)


def regressed(data: Records) -> RegressionSet:
    """The training set of the complete records of a copy, and their targets."""
    target = _numeric_target(data)
    names = [column.name for column in data.features.columns]
    noise = np.zeros((len(names) + 1,) * 2)
    if data.target is not None:
        copy = _all_columns(data.copy)
        if copy.replacement_model(data.target):
            raise MiningError(f"the target must be numeric, and {data.target!r} holds categories; use a classifier")
        noise = copy.noise_covariance([*names, data.target])
    complete = ~np.isnan(data.values).any(axis=1) & ~np.isnan(target)
    shared = data.copy.design_effect([*names, data.target or ""]) if data.copy is not None else 1.0
    own = float(noise[-1, -1])
    return RegressionSet(data.features, data.values[complete], target[complete], noise[:-1, -1], own, shared)


def _unperturbed(values: Floats) -> Features:
    """The features of a plain array, which carries no noise."""
    count = values.shape[1]
    return Features(tuple(Feature(str(i)) for i in range(count)), np.zeros((count, count)), False)


@dataclass(frozen=True)
class Records:
    """The records of a copy in memory, with the values of the target."""

    copy: Copy
    table: pa.Table
    features: Features
    values: Floats
    target_values: list[Any]
    target: str | None
    """The name of the target, if it is a column of the copy."""

    @property
    def complete(self) -> Mask:
        """Which records have a target, and all features."""
        there = np.array([value is not None and value == value for value in self.target_values])  # noqa: PLR0124 - NaN
        complete: Mask = there & ~np.isnan(self.values).any(axis=1)
        return complete


def open_records(miner: Any, X: Any, y: Any) -> Records | None:
    """The records of `fit(X, y)` in memory; none where they were never perturbed."""
    X = _most_faithful(X)
    manifest = _manifest(X, miner.manifest)
    return None if manifest is None else _read_records(miner, X, y, manifest)


def _read_records(miner: Any, X: Any, y: Any, manifest: Manifest) -> Records:
    copy = Copy.of(X, manifest)
    name = y if isinstance(y, str) else getattr(y, "name", None)
    target = name if isinstance(name, str) and name in dict(manifest.columns) else None
    empty = pa.Table.from_batches([], copy.source.schema)
    table = pa.concat_tables(copy.tables(copy.column_names)) if copy.rows else empty
    if isinstance(y, str):
        copy.model(y)  # refuses a name that is no column
        target_values = table.column(y).to_pylist()
    else:
        target_values = list(y)
    if not table.num_rows:
        raise MiningError("at least two records are needed to learn from, and the copy has none; ask for another copy")
    if len(target_values) != table.num_rows:
        raise MiningError(
            f"y must have one value for every record, got {table.num_rows:,} records and {len(target_values):,} values"
        )
    features, values = _read_features(copy, table, learnable_columns(copy, target))
    miner.n_features_in_ = len(features.columns)
    miner.feature_names_in_ = np.array([column.name for column in features.columns], dtype=object)
    return Records(copy, table, features, values, target_values, target)


def _class_factor(data: Records) -> Factor | None:
    """The factor of the class column, if it is a column of the copy; refuses a numeric column with noise."""
    if data.target is None:
        return None
    copy = _all_columns(data.copy)
    if copy.noise_model(data.target):
        raise MiningError(
            f"the classes must be categories, and {data.target!r} is numeric with noise; use LinearRegression for it"
        )
    return factors_of(copy, [data.target])[0]


def _numeric_target(data: Records) -> Floats:
    try:
        return numbers_of(pa.table({"y": pa.array(data.target_values)}), ["y"])[:, 0]
    except (pa.ArrowException, TypeError):
        raise MiningError("the target of a regression must be numeric, and this one is not; use a classifier") from None


def _classified(features: Features, values: Floats, target_values: Any, factor: Factor | None) -> TrainingSet:
    """The training set of the complete records; `factor` is that of the class column of a copy."""
    labels = np.asarray(target_values)
    has_class = np.array([label is not None and label == label for label in target_values])  # noqa: PLR0124 - NaN
    complete = has_class & ~np.isnan(values).any(axis=1)
    check_complete(int(complete.sum()))
    values, labels = values[complete], labels[complete]
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    retention = 1.0
    if factor is not None and factor.is_perturbed:  # any class of the domain may be an original class
        retention = factor.retention
        classes = np.array([label for (label,) in factor.labels])
        codes = np.array([list(classes).index(label) for label in labels])
    return TrainingSet(features, values, classes, codes, retention)


def learnable_columns(copy: Copy, target: str | None) -> list[str]:
    """The columns that a model can learn from: all but the target and record identifiers; refuses rotated ones."""
    names = [name for name in copy.column_names if name != target and not copy.is_identifier(name)]
    for name in names:
        if copy.rotation_model(name):
            raise MiningError(
                f"{name!r} is a coordinate of rotated records, which need no correction for noise; use scikit-learn's "
                "classifiers on the rotated columns directly"
            )
    if not names:
        raise MiningError("at least one column to learn from is needed, and the copy has none besides the target")
    return names


def _read_features(copy: Copy, table: pa.Table, names: Sequence[str]) -> tuple[Features, Floats]:
    """The features of some columns of a copy, and their values."""
    columns, values = [], []
    for name in names:
        if copy.is_numeric(name):
            columns.append(numeric_feature(copy, name))
            values.append(copy.values(table, [name])[:, 0])
            check_lattice(values[-1], columns[-1])
        else:
            factor = factors_of(copy, [name])[0]
            codes = factor.codes(copy, table)
            columns.append(categorical_feature(copy, name, factor))
            values.append(np.where(codes < 0, np.nan, codes))
    noise = copy.noise_covariance([column.name for column in columns])
    return Features(tuple(columns), noise, True), np.column_stack(values)


def numeric_feature(copy: Copy, name: str) -> Feature:
    """The feature of a numeric column, with its noise."""
    model = copy.noise_model(name)
    if model is None:
        return Feature(name)
    return Feature(name, model.deviation(name), step=float(model.step[0]), bounds=copy.clip_bounds(name))


def categorical_feature(copy: Copy, name: str, factor: Factor) -> Feature:
    """The feature of a categorical column, whose factor knows its categories."""
    model = copy.replacement_model(name)
    labels = tuple(label for (label,) in factor.labels)
    return Feature(name, 0.0, labels, factor.retention, joint_group=model.columns if model else ())


def check_lattice(values: Floats, column: Feature) -> None:
    """Refuse noisy values that were scaled or shifted, since their noise is not the one in the manifest."""
    steps = values / (column.step or 1.0) if column.deviation else np.zeros(1)
    if np.nanmax(np.abs(steps - np.rint(steps)), initial=0) > 1e-6:
        raise ManifestError(
            f"{column.name!r} must be as it was released, in steps of {column.step:.3g}, and it was changed; fit on "
            "the copy itself, and scale afterwards"
        )


def _read(table: pa.Table, column: Feature) -> Floats:
    """A column of records to predict for; a category that no training record had is -1."""
    if not column.size:
        try:
            return numbers_of(table, [column.name])[:, 0]
        except pa.ArrowException:
            raise MiningError(
                f"{column.name!r} must be numeric, as in the copy, and it is not; convert the column"
            ) from None
    code_of = {label: float(i) for i, label in enumerate(column.labels)}
    values = table.column(column.name).to_pylist()
    return np.array([np.nan if value is None and None not in code_of else code_of.get(value, -1.0) for value in values])


def _table(X: Any) -> pa.Table | None:
    if isinstance(X, pa.Table):
        return X
    return pa.table(X) if hasattr(X, "__arrow_c_stream__") else None


def _manifest(X: Any, given: Any) -> Manifest | None:
    """The given manifest, or that of the copy; none for records that are stated to be original."""
    if isinstance(given, Manifest):
        return given
    if given == ORIGINAL:
        return None
    if given is not None:
        raise MiningError(
            f"`manifest` must be a Manifest or {ORIGINAL!r}, got {given!r}; read that of a copy with Manifest.of(copy)"
        )
    if isinstance(X, Copy):
        return X.manifest
    if isinstance(X, pa.Table | str | Path) or METADATA.decode() in (getattr(X, "attrs", None) or ()):
        return Manifest.of(X)
    raise ManifestError(
        f"records must come with the manifest of their copy, and a {type(X).__name__} carries none; fit on the file or "
        "the pyarrow table of the copy, or on sfumato.to_pandas(copy), or pass manifest=Manifest.of(copy); if the "
        f"records were never perturbed, pass manifest={ORIGINAL!r}"
    )


def _most_faithful(X: Any) -> Any:
    """The most faithful of the copies of a coalition; anything else as it is."""
    is_coalition = isinstance(X, list | tuple) and X and all(isinstance(one, pa.Table | str | Path) for one in X)
    return Copy.of(X) if is_coalition else X


def _all_columns(copy: Copy) -> Copy:
    """An empty copy with all columns of the manifest, for the models of columns that the copy at hand lacks."""
    empty = pa.table({name: pa.array([], pa.null()) for name, _ in copy.manifest.columns})
    return Copy(copy.manifest, copy.manifest.source(empty))
