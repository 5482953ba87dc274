"""Cells of a copy, and the answers that they give for the original."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.kernels import Floats, Rows
from sfumato.kernels.inversion import inverted
from sfumato.kernels.kernel_deconvolution import below, blunt, peak
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.quantiles import WORST, Bins
from sfumato.mining.features.contingency import CELLS, Replaced
from sfumato.mining.sql.parser import Question, Term, duck, told


@dataclass(frozen=True)
class Range:
    """Between which ends a number with noise shall lie."""

    column: str
    low: float
    high: float
    bins: Bins

    def weights(self, places: Rows) -> tuple[Floats, Floats]:
        """Of values in some bins: the weight, and what stands for the square of its mean; see `kernels.unblurring`."""
        middle = self.bins.origin + (places.astype(np.float64) + 0.5) * self.bins.width
        weight, around = np.zeros(len(places)), np.zeros(len(places))
        for end, sign in ((self.high, 1), (self.low, -1)):
            if np.isfinite(end):
                weight += sign * below(end - middle, self.bins.deviation, self.bins.cutoff)
                around += peak(end - middle, self.bins.deviation, self.bins.cutoff)
            elif sign > 0:
                weight += 1.0
        return weight, weight - blunt() / self.bins.cutoff * around

    def gentle(self, places: Rows) -> Floats:
        """Weights with a lower cut-off, whose sum is mostly nearer; how near is told by the others."""
        middle = self.bins.origin + (places.astype(np.float64) + 0.5) * self.bins.width
        weight = np.full(len(places), 0.0 if np.isfinite(self.high) else 1.0)
        for end, sign in ((self.high, 1), (self.low, -1)):
            if np.isfinite(end):
                weight += sign * below(end - middle, self.bins.deviation, self.bins.gentle_cutoff)
        return weight


@dataclass(frozen=True)
class Cells:
    """The copy, counted."""

    copy: Copy
    table: pa.Table
    keys: tuple[str, ...]
    """Columns shown as they are, by which cells differ."""
    axes: list[Replaced]
    terms: tuple[Term, ...]
    """Conditions that speak of perturbed categories."""
    range: Range | None
    sums: tuple[str, ...]
    """Columns that are summed: `#n0`, `#s0`, `#q0` are the number, sum and squares of the first."""
    schema: pa.Schema

    def column(self, name: str) -> Floats:
        """One of the totals."""
        values: Floats = self.table.column(name).to_numpy().astype(np.float64)
        return values


@dataclass
class _Totals:
    """Of one group: records, their variance and a nearer estimate; of each summed column its number, sum, and so on."""

    rows: Floats
    sums: Floats

    def __iadd__(self, other: _Totals) -> _Totals:
        self.rows, self.sums = self.rows + other.rows, self.sums + other.sums
        return self


Group = tuple[Any, ...]


def answered(cells: Cells, asked: Question, width: float) -> pa.Table:
    """A row for every group of the original."""
    places, keys = _keys(cells)
    codes = [_codes(cells, axis) for axis in cells.axes]
    shape = tuple(max(axis.size, int(code.max(initial=0)) + 1) for axis, code in zip(cells.axes, codes, strict=True))
    if math.prod(shape) * max(len(keys), 1) > CELLS:
        raise MiningError(f"a question may have {CELLS:,} cells, and this one has more; group by fewer columns")
    labels = _labels(cells, shape)
    order = np.argsort(places, kind="stable")
    parts = np.split(order, np.searchsorted(places[order], np.arange(1, len(keys)))) if keys else []
    totals: dict[Group, _Totals] = {}
    for key, mine, truth in zip(keys, parts, _truths(cells, keys, labels, shape), strict=True):
        for group, wanted in _groups(asked, key | labels, truth):
            found = _total(cells, mine, wanted, [code[mine] for code in codes])
            if group in totals:
                totals[group] += found
            else:
                totals[group] = found
    if not asked.groups and not totals:
        totals[()] = _Totals(np.zeros(3), np.zeros((len(cells.sums), 5)))
    return _table(cells, asked, totals, width)


def _codes(cells: Cells, axis: Replaced) -> Rows:
    """The value of each cell; what is missing, and stays so, is one more, which is never replaced."""
    codes = axis.codes(cells.copy, cells.table)
    if len(axis.columns) > 1 and (codes < 0).any():
        raise MiningError(f"records miss part of {' and '.join(axis.columns)}, replaced together; ask of one of them")
    return np.where(codes < 0, axis.size, codes)


def _keys(cells: Cells) -> tuple[Rows, list[dict[str, Any]]]:
    """Which of the distinct keys each cell has."""
    columns = [cells.table.column(name).to_pylist() for name in cells.keys]
    if not columns:
        return np.zeros(cells.table.num_rows, np.int64), [{}]
    numbers: dict[Group, int] = {}
    places = [numbers.setdefault(key, len(numbers)) for key in zip(*columns, strict=True)]
    return np.array(places, np.int64), [dict(zip(cells.keys, key, strict=True)) for key in numbers]


def _labels(cells: Cells, shape: tuple[int, ...]) -> dict[str, list[Any]]:
    """The value of every perturbed column in each cell of the original's table, one after the other."""
    out: dict[str, list[Any]] = {}
    for i, axis in enumerate(cells.axes):
        said = [*axis.labels, (None,)]
        for j, name in enumerate(axis.columns):
            out[name] = [said[code][j] for code in np.indices(shape)[i].ravel()]
    return out


def _truths(
    cells: Cells, keys: list[dict[str, Any]], labels: dict[str, list[Any]], shape: tuple[int, ...]
) -> list[Floats]:
    """For each key, 1 where all conditions on categories hold, 0 elsewhere; DuckDB says which, of all at once."""
    mentioned = {name for term in cells.terms for name in term.columns}
    if not cells.terms:
        return [np.ones(shape)] * len(keys)
    told_apart = mentioned & set(cells.keys)
    asked = keys if told_apart else keys[:1]
    count = math.prod(shape)
    columns = {name: [value for key in asked for value in [key[name]] * count] for name in told_apart}
    columns |= {name: values * len(asked) for name, values in labels.items()}
    domain = {name: _typed(values, cells.schema.field(name).type) for name, values in columns.items()}
    session = duck()
    session.register("domain", pa.table(domain | {"#": pa.array(np.arange(count * len(asked)))}))
    said = " AND ".join(f"({term.text})" for term in cells.terms)
    held = told(session, f'SELECT coalesce({said}, false) AS held FROM domain ORDER BY "#"')  # noqa: S608
    truth = held.column("held").to_numpy().astype(np.float64).reshape(len(asked), *shape)
    if not told_apart and not truth.any():
        name = min(mentioned)
        values = ", ".join(map(str, dict.fromkeys(labels[name][:50])))
        raise MiningError(f"no value fulfils {said}; {name} is one of {values}")
    return list(truth) if told_apart else [truth[0]] * len(keys)


def _typed(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column has them; a manifest tells dates and decimals as text."""
    plain = _plain(kind)
    text = any(isinstance(value, str) for value in values) and not pa.types.is_string(plain)
    return pa.array(values, pa.string()).cast(plain) if text else pa.array(values, plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _groups(asked: Question, values: dict[str, Any], truth: Floats) -> list[tuple[Group, Floats]]:
    """The groups of the original, and which of its cells belong to each and fulfil the conditions."""
    columns = [values[name] if isinstance(values[name], list) else [values[name]] * truth.size for name in asked.groups]
    members: dict[Group, list[int]] = {}
    for cell, group in enumerate(zip(*columns, strict=True) if columns else [()] * truth.size):
        members.setdefault(group, []).append(cell)
    out = []
    for group, places in members.items():
        chosen = np.zeros(truth.size)
        chosen[places] = truth.ravel()[places]
        if chosen.any() or not asked.groups:
            out.append((group, chosen.reshape(truth.shape)))
    return out


def _inverted(wanted: Floats, axes: list[Replaced]) -> Floats:
    """The weights of what is seen, along each axis; what is missing is seen as it is."""
    for place, axis in enumerate(axes):
        kept = [1.0] * place + [axis.retention] + [1.0] * (len(axes) - place - 1)
        values, gap = np.split(wanted, [axis.size], axis=place)
        wanted = np.concatenate([inverted(values, kept), gap], axis=place)
    return wanted


def _total(cells: Cells, mine: Rows, wanted: Floats, codes: list[Rows]) -> _Totals:
    """The weighted totals of some cells, and their variances."""
    weight = np.ones(len(mine))
    if cells.axes:
        weight = _inverted(wanted, cells.axes)[tuple(codes)]
    mean = near = weight
    if cells.range is not None:
        places = cells.table.column("#range").to_numpy()[mine]
        ranged, square = cells.range.weights(places)
        near = weight * cells.range.gentle(places)
        weight, mean = weight * ranged, weight * square
    noise = weight**2 - mean
    rows = cells.column("#rows")[mine]
    sums = np.zeros((len(cells.sums), 5))
    for i, name in enumerate(cells.sums):
        n, s, q = (cells.column(f"#{part}{i}")[mine] for part in "nsq")
        blur = float(cells.copy.noise([name])[0, 0]) if cells.copy.is_number(name) else 0.0
        squares = q @ weight**2 - (q - n * blur) @ mean
        sums[i] = n @ weight, n @ noise, s @ weight, squares, s @ noise
    return _Totals(np.array([rows @ weight, rows @ noise, rows @ near]), sums)


def _table(cells: Cells, asked: Question, totals: dict[Group, _Totals], width: float) -> pa.Table:
    whole = max(float(cells.column("#rows").sum()), 1.0)
    columns: dict[str, Any] = {}
    for output in asked.outputs:
        if not output.function:
            place = asked.groups.index(output.column)
            kind = _plain(cells.schema.field(output.column).type)
            columns[output.name] = _typed([group[place] for group in totals], kind)
            continue
        found = [_answer(output.function, cells.sums, output.column, part, width) for part in totals.values()]
        values, errors = np.array([f[0] for f in found]), np.sqrt([max(f[1], 0.0) for f in found])
        if output.function == "count":
            _check_known(errors, whole)
        low, high = values - width * errors, values + width * errors
        if output.function == "count":
            low, high = np.clip(low, 0, whole), np.clip(high, 0, whole)
            near = values if output.column else np.array([part.rows[2] for part in totals.values()])
            values = np.clip(near, low, high)
        parts = zip(("", "_low", "_high"), (values, low, high), strict=True)
        columns |= {f"{output.name}{end}": pa.array(part, from_pandas=True) for end, part in parts}
    return pa.table(columns)


def _check_known(errors: Floats, rows: float) -> None:
    if len(errors) and errors.max() > WORST * rows:
        raise MiningError(
            f"a count must be known better than to ±{2 * WORST:.0%} of the rows, and at this level of trust "
            f"{int(rows):,} rows give ±{2 * errors.max() / rows:.0%}; ask a simpler question, or for a better copy"
        )


def _answer(function: str, names: tuple[str, ...], column: str, part: _Totals, width: float) -> tuple[float, float]:
    """A value and its variance; a mean is not known of a group that may be empty."""
    if not column:
        return float(part.rows[0]), float(part.rows[1])
    n, n_variance, s, s_variance, both = map(float, part.sums[names.index(column)])
    if function == "count":
        return n, n_variance
    if function == "sum":
        return s, s_variance
    if n <= width * math.sqrt(max(n_variance, 0.0)):
        return math.nan, math.nan
    mean = s / n
    return mean, (s_variance + mean**2 * n_variance - 2 * mean * both) / n**2
