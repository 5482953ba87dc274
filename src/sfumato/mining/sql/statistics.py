"""Functions of whole columns in SQL: deviations, variances, correlations and quantiles of the original."""

from __future__ import annotations

import math

from sfumato.errors import MiningError
from sfumato.kernels.intervals import Interval
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.preserved import preserved_moments, preserved_quantiles
from sfumato.mining.moments import Moments
from sfumato.mining.sql.outputs import Output
from sfumato.mining.sql.parser import Query
from sfumato.tables.numeric import is_temporal


def check_statistic(copy: Copy, query: Query, output: Output) -> None:
    """Refuse a function of a part of the table, or of what are no numbers."""
    if query.groups or query.predicates or output.filter:
        raise MiningError(
            f"{output.name} is estimated for the whole table only, without WHERE, FILTER and GROUP BY; leave them "
            "out, or ask for count(*) or avg"
        )
    for name in filter(None, (output.column, output.other)):
        if not copy.is_numeric(name):
            raise MiningError(f"{output.name} needs numbers, and {name!r} holds categories; count them with GROUP BY")
        if is_temporal(copy.source.schema.field(name).type):
            raise MiningError(f"{output.name} needs numbers, and {name!r} holds times; ask how many are before a date")
        if output.other and copy.copula_model(name):
            raise MiningError(
                f"{output.name} is not preserved where margins are; `sfumato mine` states rank correlations instead"
            )


def statistic(copy: Copy, output: Output, confidence: float) -> Interval:
    """The estimate with its interval."""
    if copy.copula_model(output.column):
        return _preserved(copy, output, confidence)
    names = list(dict.fromkeys(filter(None, (output.column, output.other))))
    moments = Moments(columns=names, confidence=confidence).fit(copy)
    if output.function == "quantile":
        [found] = moments.quantile(output.column, [output.share])
        return found
    i, j = 0, len(names) - 1
    if output.function == "corr":
        return Interval(float(moments.correlation_[i, j]), *map(float, moments.correlation_interval_[i, j]))
    variance = Interval(float(moments.covariance_[i, j]), *map(float, moments.covariance_interval_[i, j]))
    return _root(variance) if output.function == "stddev" else variance


def _preserved(copy: Copy, output: Output, confidence: float) -> Interval:
    """The same for a column whose margin is preserved."""
    if output.function == "quantile":
        quantiles = preserved_quantiles(copy, output.column, (output.share,), confidence)
        if quantiles:
            return quantiles[0]
    elif (moments := preserved_moments(copy, output.column, confidence)) is not None:
        deviation = moments[1]
        square = Interval(deviation.estimate**2, deviation.low**2, deviation.high**2)
        return deviation if output.function == "stddev" else square
    raise MiningError(f"{output.name} needs more records with a value of {output.column!r}; ask for another copy")


def _root(variance: Interval) -> Interval:
    low, estimate, high = (math.sqrt(max(end, 0.0)) for end in (variance.low, variance.estimate, variance.high))
    return Interval(estimate, low, high)
