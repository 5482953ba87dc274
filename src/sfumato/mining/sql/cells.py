"""Cells of a copy, counted by DuckDB, and the estimates for the original that their weighted totals give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.inversion import inverted_counts
from sfumato.kernels.kernel_deconvolution import cdf_weights, density_weights, smoothing_constant
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import MAX_STANDARD_ERROR, Bins
from sfumato.mining.features.contingency import MAX_CELLS, PerturbedFactor
from sfumato.mining.sql.outputs import Output
from sfumato.mining.sql.parser import Query
from sfumato.mining.sql.syntax import Predicate, new_session, run

_MOVES = 9
"""The number of positions, within the resolution of a noisy column, at which an end of a range may lie."""


@dataclass(frozen=True)
class NoisyRange:
    """The range that a condition requires of a noisy numeric column."""

    column: str
    low: float
    high: float
    bins: Bins

    def weights(self, indices: Rows) -> tuple[Floats, Floats]:
        """The weight of values in some bins, and an estimate of the square of its mean; see `kernel_deconvolution`."""
        centres = self._centres(indices)
        weight, boundary = np.zeros(len(indices)), np.zeros(len(indices))
        for end, sign in ((self.high, 1), (self.low, -1)):
            if np.isfinite(end):
                weight += sign * cdf_weights(end - centres, self.bins.deviation, self.bins.cutoff)
                boundary += density_weights(end - centres, self.bins.deviation, self.bins.cutoff)
            elif sign > 0:
                weight += 1.0
        return weight, weight - smoothing_constant() / self.bins.cutoff * boundary

    def smooth_weights(self, indices: Rows) -> Floats:
        """Weights with a lower cut-off frequency: biased, but their sum is usually closer; for point estimates."""
        centres = self._centres(indices)
        weight = np.full(len(indices), 0.0 if np.isfinite(self.high) else 1.0)
        for end, sign in ((self.high, 1), (self.low, -1)):
            if np.isfinite(end):
                weight += sign * cdf_weights(end - centres, self.bins.deviation, self.bins.smooth_cutoff)
        return weight

    def shifted_weights(self, indices: Rows) -> Floats:
        """The weights with either end of the range moved by up to the resolution: both ends, moves, values.

        The weights of a range are those of its upper end, moved by any amount, less those of its lower one.
        """
        centres, moves = self._centres(indices), np.linspace(-1, 1, _MOVES) * self.bins.resolution
        out = np.zeros((2, _MOVES, len(indices)))
        for i, end in enumerate((self.high, self.low)):
            if np.isfinite(end):
                out[i] = [cdf_weights(end + move - centres, self.bins.deviation, self.bins.cutoff) for move in moves]
            else:
                out[i] = 1.0 - i
        return out

    def _centres(self, indices: Rows) -> Floats:
        centres: Floats = self.bins.origin + (indices.astype(np.float64) + 0.5) * self.bins.width
        return centres


@dataclass(frozen=True)
class Cells:
    """A copy counted in cells."""

    copy: Copy
    table: pa.Table
    keys: tuple[str, ...]
    """Unchanged columns by which cells are distinguished."""
    factors: list[PerturbedFactor]
    predicates: tuple[Predicate, ...]
    """Conditions that involve perturbed categories."""
    range: NoisyRange | None
    summed: tuple[str, ...]
    """Columns of aggregates: `#n0`, `#s0` and `#q0` are the count, sum and sum of squares of the first."""
    schema: pa.Schema

    def column(self, name: str) -> Floats:
        """One of the totals of all cells."""
        values: Floats = self.table.column(name).to_numpy().astype(np.float64)
        return values


@dataclass
class _Totals:
    """The weighted totals of a group."""

    rows: Floats
    """The estimated number of records, its variance, and the smooth estimate."""
    sums: Floats
    """For each summed column: its count, the variance of that, its sum, the variance of that, and their covariance."""
    shifted: Floats
    """The number of records, and the count and sum of each summed column, below the upper and below the lower end of a
    range, with each end moved."""

    def __iadd__(self, other: _Totals) -> _Totals:
        self.rows, self.sums = self.rows + other.rows, self.sums + other.sums
        self.shifted = self.shifted + other.shifted
        return self


Group = tuple[Any, ...]


def estimated_answer(cells: Cells, query: Query, width: float) -> pa.Table:
    """The estimated answer for the original, one row per group."""
    key_indices, keys = _keys(cells)
    codes = [_codes(cells, factor) for factor in cells.factors]
    shape = tuple(max(f.size, int(code.max(initial=0)) + 1) for f, code in zip(cells.factors, codes, strict=True))
    if math.prod(shape) * max(len(keys), 1) > MAX_CELLS:
        raise MiningError(f"a query may have {MAX_CELLS:,} cells, and this one has more; group by fewer columns")
    labels = _labels(cells, shape)
    order = np.argsort(key_indices, kind="stable")
    parts = np.split(order, np.searchsorted(key_indices[order], np.arange(1, len(keys)))) if keys else []
    totals: dict[Group, _Totals] = {}
    for key, part, fulfilled in zip(keys, parts, _fulfilled(cells, keys, labels, shape), strict=True):
        for group, members in _groups(query, key | labels, fulfilled):
            total = _total(cells, part, members, [code[part] for code in codes], labels)
            if group in totals:
                totals[group] += total
            else:
                totals[group] = total
    if not query.groups and not totals:
        totals[()] = _Totals(np.zeros(3), np.zeros((len(cells.summed), 5)), np.zeros((1 + 2 * len(cells.summed), 2, 1)))
    return _table(cells, query, totals, width)


def _codes(cells: Cells, factor: PerturbedFactor) -> Rows:
    """The category code of each cell; an unperturbed missing value has one more code, which is never replaced."""
    codes = factor.codes(cells.copy, cells.table)
    if len(factor.columns) > 1 and (codes < 0).any():
        raise MiningError(
            f"jointly perturbed columns must be missing together, and {' and '.join(factor.columns)} are not; use only "
            "one of them in the query"
        )
    return np.where(codes < 0, factor.size, codes)


def _keys(cells: Cells) -> tuple[Rows, list[dict[str, Any]]]:
    """The index of each cell's key among the distinct keys, and these."""
    columns = [cells.table.column(name).to_pylist() for name in cells.keys]
    if not columns:
        return np.zeros(cells.table.num_rows, np.int64), [{}]
    index_of: dict[Group, int] = {}
    indices = [index_of.setdefault(key, len(index_of)) for key in zip(*columns, strict=True)]
    return np.array(indices, np.int64), [dict(zip(cells.keys, key, strict=True)) for key in index_of]


def _labels(cells: Cells, shape: tuple[int, ...]) -> dict[str, list[Any]]:
    """The value of every perturbed column in each cell of the original's contingency table, cell after cell."""
    out: dict[str, list[Any]] = {}
    for i, factor in enumerate(cells.factors):
        labels = [*factor.labels, (None,)]
        for j, name in enumerate(factor.columns):
            out[name] = [labels[code][j] for code in np.indices(shape)[i].ravel()]
    return out


def _fulfilled(
    cells: Cells, keys: list[dict[str, Any]], labels: dict[str, list[Any]], shape: tuple[int, ...]
) -> list[Floats]:
    """For each key, 1 in the cells of the original that fulfil all conditions on categories, 0 elsewhere.

    One DuckDB query evaluates the conditions for all keys, or for one if no condition is on a key column.
    """
    if not cells.predicates:
        return [np.ones(shape)] * len(keys)
    mentioned = {name for predicate in cells.predicates for name in predicate.columns}
    by_key = mentioned & set(cells.keys)
    evaluated = keys if by_key else keys[:1]
    count = math.prod(shape)
    columns = {name: [value for key in evaluated for value in [key[name]] * count] for name in by_key}
    columns |= {name: values * len(evaluated) for name, values in labels.items()}
    condition = " AND ".join(f"({predicate.text})" for predicate in cells.predicates)
    fulfilled = _evaluated(cells, condition, columns).reshape(len(evaluated), *shape)
    if not by_key and not fulfilled.any():
        name = min(mentioned)
        values = ", ".join(map(str, dict.fromkeys(labels[name][:50])))
        raise MiningError(f"no category fulfils {condition}; {name} is one of {values}")
    return list(fulfilled) if by_key else [fulfilled[0]] * len(keys)


def _evaluated(cells: Cells, condition: str, columns: dict[str, list[Any]]) -> Floats:
    """1 for each row of some columns that fulfils a condition, 0 for the others, evaluated by DuckDB."""
    domain = {name: _typed(values, cells.schema.field(name).type) for name, values in columns.items()}
    rows = len(next(iter(columns.values())))
    session = new_session()
    session.register("domain", pa.table(domain | {"#": pa.array(np.arange(rows))}))
    result = run(session, f'SELECT coalesce({condition}, false) AS fulfilled FROM domain ORDER BY "#"')  # noqa: S608
    fulfilled: Floats = result.column("fulfilled").to_numpy().astype(np.float64)
    return fulfilled


def _typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as an array of a column's type; a manifest writes dates and decimals as text."""
    plain = _value_type(kind)
    is_text = any(isinstance(value, str) for value in values) and not pa.types.is_string(plain)
    return pa.array(values, pa.string()).cast(plain) if is_text else pa.array(values, plain)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _groups(query: Query, values: dict[str, Any], fulfilled: Floats) -> list[tuple[Group, Floats]]:
    """The groups of the original, each with an indicator of the cells that belong to it and fulfil the conditions."""
    size = fulfilled.size
    columns = [values[name] if isinstance(values[name], list) else [values[name]] * size for name in query.groups]
    cells_of: dict[Group, list[int]] = {}
    for cell, group in enumerate(zip(*columns, strict=True) if columns else [()] * size):
        cells_of.setdefault(group, []).append(cell)
    out = []
    for group, cells in cells_of.items():
        members = np.zeros(size)
        members[cells] = fulfilled.ravel()[cells]
        if members.any() or not query.groups:
            out.append((group, members.reshape(fulfilled.shape)))
    return out


def _inverted(members: Floats, factors: list[PerturbedFactor]) -> Floats:
    """The weights of the copy's cells: the indicator inverted along each factor; missing values were not perturbed."""
    for axis, factor in enumerate(factors):
        retentions = [1.0] * axis + [factor.retention] + [1.0] * (len(factors) - axis - 1)
        categories, missing = np.split(members, [factor.size], axis=axis)
        members = np.concatenate([inverted_counts(categories, retentions), missing], axis=axis)
    return members


def _total(cells: Cells, part: Rows, members: Floats, codes: list[Rows], labels: dict[str, list[Any]]) -> _Totals:
    """The weighted totals of some cells, and their variances."""

    def inverted(indicator: Floats) -> Floats:
        return _inverted(indicator, cells.factors)[tuple(codes)] if cells.factors else np.ones(len(part))

    in_range = mean_in_range = smooth = np.ones(len(part))
    shifts = np.stack([in_range, 0 * in_range])[:, None]
    if cells.range is not None:
        indices = cells.table.column("#range").to_numpy()[part]
        in_range, mean_in_range = cells.range.weights(indices)
        smooth, shifts = cells.range.smooth_weights(indices), cells.range.shifted_weights(indices)
    cell = inverted(members)
    weight, mean, shifted = cell * in_range, cell * mean_in_range, shifts * cell
    variance = weight**2 - mean
    rows = cells.column("#rows")[part]
    sums, moved = np.zeros((len(cells.summed), 5)), [shifted @ rows]
    for i, name in enumerate(cells.summed):
        n, s, q = (cells.column(f"#{total}{i}")[part] for total in "nsq")
        if name in labels and cells.copy.is_number(name):  # the mean weight of a category is its number
            values = np.array([math.nan if label is None else float(label) for label in labels[name]])
            there, numbers = ~np.isnan(values).reshape(members.shape), np.nan_to_num(values).reshape(members.shape)
            count, total, square = (inverted(members * there * numbers**power) for power in (0, 1, 2))
            own, value = count * in_range, total * in_range
            variances = own**2 - count * mean_in_range, value**2 - square * mean_in_range
            covariance = rows @ (own * value - total * mean_in_range)
            sums[i] = rows @ own, rows @ variances[0], rows @ value, rows @ variances[1], covariance
            moved += [shifts * count @ rows, shifts * total @ rows]
            continue
        noise = float(cells.copy.noise_covariance([name])[0, 0]) if cells.copy.is_numeric(name) else 0.0
        squares = q @ weight**2 - (q - n * noise) @ mean
        sums[i] = n @ weight, n @ variance, s @ weight, squares, s @ variance
        moved += [shifted @ n, shifted @ s]
    return _Totals(np.array([rows @ weight, rows @ variance, rows @ (cell * smooth)]), sums, np.array(moved))


def _table(cells: Cells, query: Query, totals: dict[Group, _Totals], width: float) -> pa.Table:
    """The result table: grouping columns, and aggregates with their intervals."""
    columns: dict[str, Any] = {}
    for output in query.outputs:
        if output.function:
            columns |= _aggregate(cells, output, list(totals.values()), width)
        else:
            index = query.groups.index(output.column)
            kind = _value_type(cells.schema.field(output.column).type)
            columns[output.name] = _typed([group[index] for group in totals], kind)
    return pa.table(columns)


def _aggregate(cells: Cells, output: Output, totals: list[_Totals], width: float) -> dict[str, pa.Array]:
    """An aggregate of every group, with the ends of its interval; a count lies between 0 and the number of rows."""
    estimates = [_estimate(output.function, cells.summed, output.column, total, width) for total in totals]
    values, errors = np.array([e[0] for e in estimates]), np.sqrt([max(e[1], 0.0) for e in estimates])
    ends = np.array([_extremes(output.function, cells.summed, output.column, total) for total in totals]).reshape(-1, 2)
    low, high = ends[:, 0] - width * errors, ends[:, 1] + width * errors
    values = np.where(np.isnan(low), np.nan, values)
    if output.function == "count":
        rows = max(float(cells.column("#rows").sum()), 1.0)
        _check_precision(errors, rows)
        low, high = np.clip(low, 0, rows), np.clip(high, 0, rows)
        smooth = values if output.column else np.array([total.rows[2] for total in totals])
        values = np.clip(smooth, low, high)
    parts = zip(("", "_low", "_high"), (values, low, high), strict=True)
    return {f"{output.name}{end}": pa.array(part, from_pandas=True) for end, part in parts}


def _check_precision(errors: Floats, rows: float) -> None:
    if len(errors) and errors.max() > MAX_STANDARD_ERROR * rows:
        raise MiningError(
            f"a count must be known to within ±{2 * MAX_STANDARD_ERROR:.0%} of the rows, and {int(rows):,} rows at "
            f"this trust level give ±{2 * errors.max() / rows:.0%}; simplify the query, or ask the owner for a more "
            "faithful copy"
        )


def _extremes(function: str, names: tuple[str, ...], column: str, total: _Totals) -> tuple[float, float]:
    """The smallest and largest value of an aggregate that the resolution of a noisy column in a range allows."""
    upper, lower = np.swapaxes(total.shifted, 0, 1)
    moved = (upper[:, :, None] - lower[:, None]).reshape(len(upper), -1)
    if not column:
        values = moved[0]
    else:
        counts, sums = moved[1 + 2 * names.index(column) :][:2]
        if function not in {"count", "sum"} and (counts <= 0).any():
            return math.nan, math.nan
        values = counts if function == "count" else sums if function == "sum" else sums / counts
    return float(values.min()), float(values.max())


def _estimate(function: str, names: tuple[str, ...], column: str, total: _Totals, width: float) -> tuple[float, float]:
    """An aggregate and its variance; the mean of a group that may be empty is unknown."""
    if not column:
        return float(total.rows[0]), float(total.rows[1])
    n, n_variance, s, s_variance, covariance = map(float, total.sums[names.index(column)])
    if function == "count":
        return n, n_variance
    if function == "sum":
        return s, s_variance
    if n <= width * math.sqrt(max(n_variance, 0.0)):
        return math.nan, math.nan
    mean = s / n
    return mean, (s_variance + mean**2 * n_variance - 2 * mean * covariance) / n**2
