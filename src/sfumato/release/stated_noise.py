"""Stated noise: a manifest for a table that Sfumato did not make, so that attacks, mining and audits work on it too.

income=gaussian:sd=3000            normal noise with this standard deviation
gaussian:sd=0.5                    the same for all numbers that are not named
ward=uniform:retention=0.8         a category retained with this probability, else any of those that occur

A rotation is stated apart, as y1,y2=age,income: these columns are the others under a secret map.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import ManifestError, nearest
from sfumato.kernels import Floats
from sfumato.models import Model
from sfumato.models.gaussian_noise import STATED, GaussianNoise
from sfumato.models.projection import Projection
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import IDENTIFIER, PUBLIC, Unchanged
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release import statements
from sfumato.release.layout import SOFTWARE
from sfumato.release.manifest import Manifest, digested
from sfumato.tables import numeric
from sfumato.tables.columns import numbers_of
from sfumato.tables.domain import Domain
from sfumato.tables.source import Source
from sfumato.tables.view import EVERYTHING

_FORM = re.compile(r"(?:(?P<column>.+)=)?(?P<kind>gaussian|uniform):(?P<name>sd|retention)=(?P<value>[-+.\deE]+)")
_NAMES = {"gaussian": "sd", "uniform": "retention"}
_FINEST = 1e-6
"""The lattice of a stated column, in standard deviations of its noise: fine enough to be none."""
_WARNING = "The noise of this table was stated by somebody; Sfumato did not make it, and promises nothing about it."


@dataclass(frozen=True)
class StatedNoise:
    """The noise of one column, or of all numbers that are not named."""

    column: str | None
    kind: str
    value: float

    @classmethod
    def parse(cls, text: str) -> StatedNoise:
        """Noise in a text like `income=gaussian:sd=3` or `ward=uniform:retention=0.8`."""
        found = _FORM.fullmatch(text.strip())
        if found is None or _NAMES[found["kind"]] != found["name"]:
            raise ManifestError(
                f"noise must read like income=gaussian:sd=3 or ward=uniform:retention=0.8, got {text!r}"
            )
        value = float(found["value"])
        if not 0 < value < (math.inf if found["kind"] == "gaussian" else 1):
            raise ManifestError(f"a standard deviation is above 0, and a retention between 0 and 1, got {text!r}")
        if found["kind"] == "uniform" and found["column"] is None:
            raise ManifestError(f"a retention is about one column: say which, as in ward={text}")
        return cls(found["column"], found["kind"], value)


@dataclass(frozen=True)
class StatedRotation:
    """Columns that are others under a secret orthogonal map or, if they are fewer, under a projection."""

    columns: tuple[str, ...]
    sources: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> StatedRotation:
        """A rotation in a text like `y1,y2=age,income`."""
        sides = [tuple(name.strip() for name in side.split(",") if name.strip()) for side in text.split("=")]
        if len(sides) != 2 or not 0 < len(sides[0]) <= len(sides[1]):
            raise ManifestError(
                f"a rotation must name its columns and at least as many of the original, as y1,y2=age,income, "
                f"got {text!r}"
            )
        return cls(*sides)

    def model(self) -> Rotation:
        """The map, about which no more is known: it may have moved the records, and kept their order."""
        count = len(self.sources)
        kind = Rotation if len(self.columns) == count else Projection
        return kind(
            columns=self.columns,
            sources=self.sources,
            centre=(0.0,) * count,
            unit=(1.0,) * count,
            clip=(None,) * count,
            step=_FINEST,
            translated=True,
            shuffled=False,
            noise=0.0,
            covariance=(),
            collusion_resistant=False,
        )


def read_covariance(path: Path) -> tuple[list[str], Floats]:
    """The covariance in a CSV file whose header names the columns."""
    table = pa.Table.from_batches(Source.of(path).batches(), Source.of(path).schema)
    try:
        return table.column_names, numbers_of(table, table.column_names)
    except (pa.ArrowException, ValueError, TypeError):
        raise ManifestError(f"{path} must hold a header with the names of columns, and numbers") from None


def stated_manifest(
    table: Any,
    noises: Sequence[StatedNoise],
    *,
    covariance: tuple[Sequence[str], Floats] | None = None,
    rotation: StatedRotation | None = None,
    ids: Sequence[str] = (),
    dataset: str = "table",
) -> Manifest:
    """The manifest of a table whose noise is stated; columns without noise are taken as unchanged.

    Args:
        table: the perturbed table, or the path of its file.
        noises: the noise of columns.
        covariance: the names of columns, and the covariance of their normal noise, in place of standard deviations.
        rotation: columns that are others under a secret map.
        ids: the columns that identify records.
        dataset: a name for the dataset.

    """
    source = Source.of(table)
    named = {one.column: one for one in noises}
    rotated = rotation.columns if rotation else ()
    stated = [*(name for name in named if name), *(covariance[0] if covariance else ()), *ids, *rotated]
    for name in stated:
        if name not in source.schema.names:
            raise ManifestError(f"the table has no column {name!r}; {nearest(name, source.schema.names)}")
    whole = pa.Table.from_batches(source.batches(), source.schema).replace_schema_metadata(None)
    others = whole.drop_columns(list(rotated))
    models = _models(others, named, _normal_noise(others, named, covariance, ids), ids)
    models += [rotation.model()] if rotation else []
    fidelity = max((_fidelity(model) for model in models if model.is_perturbed), default=1.0)
    draft = Manifest(
        dataset=dataset,
        policy="",
        scheme="",
        key="stated",
        level=None,
        requested_fidelity=fidelity,
        fidelity=fidelity,
        columns=tuple((field.name, str(field.type)) for field in whole.schema),
        schema=base64.b64encode(whole.schema.serialize()).decode(),
        models=tuple(models),
        promises=(),
        warnings=(_WARNING,),
        limits=statements.limits(models, EVERYTHING, in_order=True),
        software=SOFTWARE,
    )
    filled = draft.filled(*digested(Source.of(whole)))
    return replace(filled, scheme=filled.digest)  # the noise of another table is independent of this one's


def _normal_noise(
    table: pa.Table,
    named: Mapping[str | None, StatedNoise],
    covariance: tuple[Sequence[str], Floats] | None,
    ids: Sequence[str],
) -> tuple[list[str], Floats]:
    """The columns with normal noise, and its covariance."""
    if covariance is not None:
        return _checked(list(covariance[0]), np.asarray(covariance[1], np.float64))
    found = {field.name: named.get(field.name) or _for_all(field, named, ids) for field in table.schema}
    names = [name for name, one in found.items() if one is not None and one.kind == "gaussian"]
    for name in names:
        if not numeric.is_number(table.schema.field(name).type):
            kind = table.schema.field(name).type
            raise ManifestError(f"normal noise needs a column of numbers, and {name!r} is {kind}")
    deviations = np.array([one.value for one in found.values() if one is not None and one.kind == "gaussian"])
    return names, np.diag(deviations**2)


def _for_all(field: pa.Field, named: Mapping[str | None, StatedNoise], ids: Sequence[str]) -> StatedNoise | None:
    """The noise that is stated for all other numbers, if this is one."""
    return named.get(None) if numeric.is_number(field.type) and field.name not in ids else None


def _checked(names: list[str], matrix: Floats) -> tuple[list[str], Floats]:
    """A covariance, refused if it is none."""
    square = matrix.shape == (len(names), len(names)) and np.allclose(matrix, matrix.T)
    if not square or np.linalg.eigvalsh(matrix).min() < -1e-9 * np.abs(matrix).max() or not np.diag(matrix).all():
        raise ManifestError("a covariance must be a symmetric positive matrix with one row and column per name")
    return names, matrix


def _models(
    table: pa.Table, named: Mapping[str | None, StatedNoise], noise: tuple[list[str], Floats], ids: Sequence[str]
) -> list[Model]:
    """One model for all normal noise, one for each category, and one for what is unchanged."""
    names, covariance = noise
    models: list[Model] = [_gaussian(table, names, covariance)] if names else []
    categories = [one for name, one in named.items() if name and one.kind == "uniform"]
    for one in categories:
        values = pc.unique(table.column(str(one.column)).drop_null()).to_pylist()
        domain = Domain.listed(sorted(values, key=str))
        models.append(UniformReplacement((str(one.column),), (domain.encode(),), one.value, False, False))
    perturbed = {name for model in models for name in model.columns}
    public = tuple(name for name in table.column_names if name not in perturbed and name not in ids)
    models += [Unchanged(tuple(ids), IDENTIFIER)] if ids else []
    models += [Unchanged(public, PUBLIC)] if public else []
    return models


def _gaussian(table: pa.Table, names: Sequence[str], covariance: Floats) -> GaussianNoise:
    """Normal noise; its size is compared with what the columns vary without it."""
    deviations = np.sqrt(np.diag(covariance))
    shown = np.nanvar(numbers_of(table, list(names)), axis=0)
    original = np.maximum(shown - deviations**2, 1e-3 * shown + 1e-12)
    count = len(names)
    return GaussianNoise(
        tuple(names),
        tuple(tuple(float(covariance[i, j]) for j in range(i + 1)) for i in range(count)),
        float(np.median(deviations**2 / original)),
        (1.0,) * count,
        tuple((deviations * _FINEST).tolist()),
        (None,) * count,
        (0.0,) * count,
        collusion_resistant=False,
        shape=STATED,
    )


def _fidelity(model: Model) -> float:
    """The fidelity of a model: the share of variance, or of categories, that is left."""
    if isinstance(model, GaussianNoise):
        return 1 / (1 + model.noise)
    return model.retention if isinstance(model, UniformReplacement) else 1.0
