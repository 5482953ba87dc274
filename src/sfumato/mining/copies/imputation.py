"""Multiple imputation: plausible originals of a copy, on which any software can work, and Rubin's rules for the rest.

The truth and each imputation are draws from one distribution, that of the original given the copy: what differs between
imputations is what the copy leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import t as student

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.evenly_spaced import evenly_spaced
from sfumato.kernels.joint_model import ROWS, JointModel
from sfumato.kernels.latent_class import Observed
from sfumato.kernels.mixed_records import LARGEST_DOMAIN, MixedRecords
from sfumato.kernels.threads import in_threads
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.uniform_replacement import UniformReplacement
from sfumato.release.evidence import clip_bounds
from sfumato.tables import numeric
from sfumato.tables.columns import contiguous, numbers_of
from sfumato.tables.domain import Domain

R = TypeVar("R")

_FEWEST = 200
"""The fewest records from which a joint distribution is estimated."""


def impute(copy: Any, m: int = 20, *, columns: Sequence[str] | None = None, random_state: int = 0) -> list[pa.Table]:
    """Plausible originals of a copy: tables that may have been perturbed into it, each with all its records.

    A joint distribution of the columns is fitted behind the published noise, for each imputation to other records
    (bootstrap), and every record is drawn from it given what the copy shows. Fit any model to each of the tables, and
    `combine` what it estimates. Relations that the joint distribution does not have are weaker in the tables than in
    the original, the more so the lower the level.

    Args:
        copy: a copy, as a table or a path, or several, of which the most faithful is used.
        m: the number of tables.
        columns: the columns to be imputed together; all, unless they are given.
        random_state: the seed.

    """
    if m < 2:
        raise MiningError(f"at least two imputations are needed to see how much they differ, got {m}; 20 are usual")
    opened = Copy.of(copy)
    names = _imputable(opened, columns)
    return Imputation.of(opened, readable(opened, names)).each(m, random_state, lambda table: table)


def readable(copy: Copy, names: Sequence[str]) -> pa.Table:
    """Some columns of a copy in memory; refused where they cannot be imputed, or are too few records."""
    for name in names:
        check_imputable(copy, name)
    if copy.rows < _FEWEST:
        raise MiningError(
            f"a joint distribution needs at least {_FEWEST} records, and the copy has {copy.rows}; use the estimators "
            "for single columns"
        )
    return pa.concat_tables(copy.tables(names))


@dataclass(frozen=True)
class Combined:
    """What several imputations say together, with its interval."""

    estimate: Floats
    low: Floats
    high: Floats
    missing_information: Floats
    """The share of the uncertainty that is due to the noise of the copy."""


def combine(estimates: Any, variances: Any = None, confidence: float = 0.95) -> Combined:
    """Combine what the same analysis estimates in each imputation, by Rubin's rules.

    Args:
        estimates: a number or an array for each imputation.
        variances: the sampling variance of each, where the estimand is that of a population from which the table was
            sampled; none where it is that of the table itself, as everywhere else in this package.
        confidence: the confidence level.

    """
    critical_value(confidence)  # which refuses one that is none
    values = np.asarray(estimates, np.float64)
    count = len(values)
    if count < 2:
        raise MiningError(f"at least two imputations are combined, got {count}")
    within = np.zeros(values.shape[1:]) if variances is None else np.asarray(variances, np.float64).mean(axis=0)
    between = (1 + 1 / count) * values.var(axis=0, ddof=1)
    total = np.maximum(within + between, 1e-300)
    freedom = (count - 1) * (total / np.maximum(between, 1e-300)) ** 2  # Rubin 1987, eq. 3.1.6
    reach = student.ppf(0.5 + confidence / 2, np.minimum(freedom, 1e9)) * np.sqrt(total)
    estimate = values.mean(axis=0)
    return Combined(estimate, estimate - reach, estimate + reach, between / total)


@dataclass(frozen=True)
class Imputation:
    """A copy in memory, and how its records are read and written."""

    copy: Copy
    table: pa.Table
    numbers: tuple[str, ...]
    """The columns with noise."""
    attributes: tuple[UniformReplacement, ...]
    records: MixedRecords
    shown: Observed

    @classmethod
    def of(cls, copy: Copy, table: pa.Table, known: Floats | None = None) -> Imputation:
        """Read a table; what else is known of its records may be given as further columns of numbers."""
        names = [name for name in table.column_names if copy.noise_model(name)]
        attributes = _attributes(copy, table.column_names)
        values = copy.values(table, names) if names else np.empty((table.num_rows, 0))
        steps = [model.step[0] for model in map(copy.noise_model, names) if model is not None]
        codes = [copy.codes(table, model) for model in attributes]
        public = _public(copy, table) if known is None else np.hstack([_public(copy, table), known])
        noise = copy.noise_covariance(names)
        sizes = [(model.retention, model.size) for model in attributes]
        special = [model.special_values(name) for name in names if (model := copy.noise_model(name)) is not None]
        records = MixedRecords.of(values, noise, np.array(steps), sizes, public, special)
        return cls(copy, table, tuple(names), tuple(attributes), records, records.observed(values, codes, public))

    def each(self, m: int, random_state: int, work: Callable[[pa.Table], R]) -> list[R]:
        """What some work makes of each of m plausible originals.

        Half of them follow classes without bias, whose ranges vary much, and half the likeliest classes, whose
        relations are weaker: how far these are from each other is part of what is not known.
        """
        first = JointModel.converged(self.records, self.shown.take(evenly_spaced(len(self.shown), ROWS)))

        def fit(number: int, some: Observed) -> JointModel:
            likely = number % 2
            return JointModel.fit(self.records, some) if likely else JointModel.converged(self.records, some, first)

        return self._each(m, random_state, fit, work)

    def likely_tables(self, m: int, random_state: int) -> list[pa.Table]:
        """Plausible originals to learn from: by classes that are the likeliest for other records."""
        return self._each(m, random_state, lambda _, some: JointModel.fit(self.records, some), lambda table: table)

    def _each(
        self, m: int, random_state: int, fit: Callable[[int, Observed], JointModel], work: Callable[[pa.Table], R]
    ) -> list[R]:
        """What some work makes of plausible originals, each from a joint model of its own."""
        seeds = np.random.SeedSequence(random_state).spawn(m)
        return in_threads(lambda i: work(self._table(i, fit, np.random.default_rng(seeds[i]))), range(m))

    def _table(self, number: int, fit: Callable[[int, Observed], JointModel], rng: np.random.Generator) -> pa.Table:
        rows = rng.integers(0, len(self.shown), min(len(self.shown), ROWS))
        drawn = fit(number, self.shown.take(rows)).draw(self.shown, rng)
        arrays = {name: self.table.column(name) for name in self.table.column_names}
        for name, values in zip(self.numbers, drawn.numbers.T, strict=False):
            arrays[name] = self._number(name, values)
        for model, codes in zip(self.attributes, drawn.codes, strict=False):
            arrays |= self._categories(model, codes)
        return pa.table(arrays)  # without the manifest: these are no copies

    def _number(self, name: str, values: Floats) -> pa.Array:
        """A column of numbers: missing where the copy has none, within its clip, and whole where the copy is."""
        kind = self.table.schema.field(name).type
        model = self.copy.noise_model(name)
        for special, _ in (model.special_values(name) if model is not None else None) or ():
            values = np.where(np.isclose(values, special, rtol=1e-9, atol=1e-9), special, values)
        if model is not None and model.clip[0] is not None:
            values = np.clip(values, *clip_bounds(model.clip[0], kind))
        missing = np.asarray(contiguous(self.table.column(name)).is_null())
        return numeric.write(values if pa.types.is_floating(kind) else np.rint(values), missing, kind, name)

    def _categories(self, model: UniformReplacement, codes: Rows) -> dict[str, pa.Array]:
        """The columns of one attribute, from an index over the product of their domains; unknown ones stay."""
        unknown, left, found = codes < 0, np.maximum(codes, 0), {}
        for name, encoded in reversed(list(zip(model.columns, model.domains, strict=True))):
            domain, shown = Domain.decode(encoded), contiguous(self.table.column(name))
            left, own = np.divmod(left, domain.count + model.perturbs_null)
            null = own == domain.count
            drawn = domain.array(np.where(null, 0, own), null, shown.type)
            found[name] = pc.if_else(pa.array(unknown), shown, drawn)
        return found


def _attributes(copy: Copy, names: Sequence[str]) -> list[UniformReplacement]:
    """The attributes among some columns, each with those of its columns that are among them."""
    models = of_type(copy.manifest.models, UniformReplacement)
    found = [model.narrowed([name for name in model.columns if name in names]) for model in models]
    return [model for model in found if model.columns and model.size]


def _public(copy: Copy, table: pa.Table) -> Floats:
    """The columns that were released unchanged as numbers, categories as codes."""
    columns = []
    for name in copy.public_columns:
        if name not in table.column_names:
            continue
        if copy.is_numeric(name):
            columns.append(numbers_of(table, [name])[:, 0])
        else:
            indices = contiguous(table.column(name)).dictionary_encode().indices
            columns.append(np.asarray(indices.cast(pa.float64()).fill_null(np.nan)))
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _imputable(copy: Copy, columns: Sequence[str] | None) -> list[str]:
    """The columns of an imputation; refuses those that cannot be imputed."""
    names = copy.column_names if columns is None else list(columns)
    if not of_type([copy.model(name) for name in names], GaussianNoise) and not any(map(copy.replacement_model, names)):
        raise MiningError(
            "none of these columns is perturbed, so that there is nothing to impute; use them as they stand"
        )
    return names


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
