"""Questions in SQL, answered for the original.

DuckDB counts the copy in cells: by the groups and conditions that blur does not touch, by the values of perturbed
categories, and by fine bins of a number in a condition. Each cell then gets the weight `h(y)` whose mean, given the
original `x`, is 1 where the condition holds and 0 elsewhere. A count is `Σh`, and as the weights' means are their own
squares, `Σh² - Σh` estimates its variance; sums go the same way.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.interval import half_width
from sfumato.mining.copies.quantiles import Bins
from sfumato.mining.features.contingency import Replaced, axes_of
from sfumato.mining.sql.cells import Cells, Range, answered
from sfumato.mining.sql.parser import Output, Question, Term, duck, parse, told
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.models.uniform_replacement import UniformReplacement


def ask(copy: Any, question: str, *, confidence: float = 0.95) -> pa.Table:
    """The answer to a question in SQL about the original; every aggregate has its interval in `_low` and `_high`.

        ask("copy.parquet", "select region, count(*) from copy where ward = 'A' group by region")

    What cannot be corrected is refused.
    """
    width, best = half_width(confidence), Copy.of(copy)
    asked = parse(question, best.names)
    _check(best, asked)
    cells = _count(best, asked)
    answer = answered(cells, asked, width)
    if asked.arranged is None:
        return answer
    session = duck()
    session.register("answer", answer)
    return told(session, asked.arranged)


def _check(copy: Copy, asked: Question) -> None:
    """Refuse what no weight corrects."""
    folded = [name.lower() for name in copy.names]
    for name in asked.columns:
        copy.model(name)
        if folded.count(name.lower()) > 1:
            raise MiningError(f"SQL does not tell {name!r} from another column in other letters; leave one out")
        if isinstance(copy.model(name), Rotation):
            raise MiningError(f"{name!r} is turned and has no values of its own; only distances can be asked of it")
    for name in asked.groups:
        if isinstance(copy.model(name), GaussianNoise):
            raise MiningError(f"{name!r} carries noise, so its values are no groups; count one range of it at a time")
    ranged = {name for term in asked.terms for name in term.columns if isinstance(copy.model(name), GaussianNoise)}
    for term in asked.terms:
        _check_term(copy, term)
    if len(ranged) > 1:
        raise MiningError(f"one number with noise can be in conditions, and {' and '.join(sorted(ranged))} are")
    for output in asked.outputs:
        model = copy.model(output.column) if output.column else None
        if output.function == "count" and isinstance(model, UniformReplacement) and model.perturbs_null:
            raise MiningError(f"what is missing in {output.column!r} was perturbed too; count its values by GROUP BY")
        if output.function in {"sum", "avg"}:
            _check_sum(copy, output, ranged)


def _check_term(copy: Copy, term: Term) -> None:
    noisy = [name for name in term.columns if isinstance(copy.model(name), GaussianNoise)]
    if noisy and (len(term.columns) > 1 or term.range is None):
        raise MiningError(
            f"{noisy[0]!r} carries noise: a condition can say between which numbers it lies, joined to others by AND; "
            f"{term.text} cannot be corrected"
        )


def _check_sum(copy: Copy, output: Output, ranged: set[str]) -> None:
    if not copy.is_number(output.column):
        raise MiningError(f"{output.function}({output.column}) needs numbers, and {output.column!r} holds categories")
    for name in ranged:
        if copy.noise([output.column, name])[0, 1]:
            raise MiningError(
                f"{output.column!r} and {name!r} carry noise together, so {output.function} of one over a range of the "
                "other cannot be corrected; ask without the range"
            )


def _count(copy: Copy, asked: Question) -> Cells:
    """Cells of the copy, by DuckDB."""
    models = {name: copy.model(name) for name in asked.columns}
    kept = [term for term in asked.terms if all(isinstance(models[name], Unchanged) for name in term.columns)]
    ranges = [term for term in asked.terms if any(isinstance(models[name], GaussianNoise) for name in term.columns)]
    mixed = [term for term in asked.terms if term not in kept and term not in ranges]
    blurred = [name for name in asked.columns if isinstance(models[name], UniformReplacement)]
    blurred = [n for n in blurred if n in asked.groups or any(n in term.columns for term in mixed)]
    keys = [n for n in asked.columns if isinstance(models[n], Unchanged)]
    keys = [n for n in keys if n in asked.groups or any(n in term.columns for term in mixed)]
    sums = tuple(dict.fromkeys(output.column for output in asked.outputs if output.column and output.function))
    ranged = _range(copy, ranges)
    conditions, shown = [term.text for term in kept], [*map(_quoted, [*keys, *blurred])]
    if ranged is not None:
        conditions.append(f"{_quoted(ranged.column)} IS NOT NULL")
        place = f"({_number(copy, ranged.column)} - {ranged.bins.origin!r}) / {ranged.bins.width!r}"
        shown.append(f'CAST(floor({place}) AS BIGINT) AS "#range"')
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    question = f"SELECT {', '.join([*shown, *_totals(copy, sums)])} FROM copy{where} GROUP BY ALL"  # noqa: S608
    needed = list(asked.columns) or copy.names[:1]
    schema = pa.schema([copy.source.schema.field(name) for name in needed])
    session = duck()
    batches = (batch for table in copy.tables(needed) for batch in table.to_batches())
    session.register("copy", pa.RecordBatchReader.from_batches(schema, batches))
    axes = [axis for axis in axes_of(copy, blurred) if isinstance(axis, Replaced)]
    return Cells(copy, told(session, question), tuple(keys), axes, tuple(mixed), ranged, sums, schema)


def _totals(copy: Copy, sums: tuple[str, ...]) -> list[str]:
    """What is added up in a cell."""
    out = ['count(*) AS "#rows"']
    for i, name in enumerate(sums):
        x = _number(copy, name) if copy.is_number(name) else "0"
        out.append(f'count({_quoted(name)}) AS "#n{i}"')
        out += [f'coalesce(sum({x}), 0) AS "#s{i}"', f'coalesce(sum({x} * {x}), 0) AS "#q{i}"']
    return out


def _range(copy: Copy, terms: list[Term]) -> Range | None:
    if not terms:
        return None
    [name] = {name for term in terms for name in term.columns}
    low, high = -np.inf, np.inf
    for term in terms:
        one, other = term.range or (None, None)
        low = low if one is None else max(low, _end(copy, name, one))
        high = high if other is None else min(high, _end(copy, name, other))
    if low >= high:
        raise MiningError(f"the conditions on {name!r} leave no range: from {low:g} to {high:g}")
    model = copy.model(name)
    if not isinstance(model, GaussianNoise):
        raise MiningError(f"{name!r} carries no noise")
    deviation = float(np.sqrt(model.covariance[0][0]))
    spread = float(f"{deviation / np.sqrt(model.noise) / model.scale[0]:.1e}")
    return Range(name, low, high, Bins(deviation, spread, copy.rows, float(low if np.isfinite(low) else high)))


def _end(copy: Copy, name: str, said: float | str) -> float:
    """A number, or a moment in the column's own unit."""
    if isinstance(said, float):
        return said
    try:
        moment = pa.array([datetime.fromisoformat(said)]).cast(copy.source.schema.field(name).type)
    except (ValueError, pa.ArrowException):
        raise MiningError(f"{said!r} must be a number or a moment to be compared with {name!r}") from None
    return float(copy.values(pa.table({name: moment}), [name])[0, 0])


def _number(copy: Copy, name: str) -> str:
    """A column as a number: time in its type's own unit."""
    kind = copy.source.schema.field(name).type
    if pa.types.is_date(kind):
        return f"(CAST({_quoted(name)} AS DATE) - DATE '1970-01-01')::DOUBLE"
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        raise MiningError(f"{name!r} holds times of day, which questions cannot handle; use Moments")
    return f"{_quoted(name)}::DOUBLE"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
