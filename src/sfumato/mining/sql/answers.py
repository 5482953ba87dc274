"""Answers to SQL queries about the original, with confidence intervals: corrected, or from plausible originals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.imputation import FEWEST
from sfumato.mining.sql.corrected_answers import corrected, corrigible, noisy_columns
from sfumato.mining.sql.imputed_answers import imputed_answer
from sfumato.mining.sql.parser import Query

METHODS = ("auto", "correction", "imputation")


def ask(
    copy: Any,
    query: str,
    *,
    tables: Mapping[str, pa.Table] | None = None,
    confidence: float = 0.95,
    method: str = "auto",
    random_state: int = 0,
) -> pa.Table:
    """The estimated answer to an SQL query about the original; every aggregate has its interval in `_low` and `_high`.

        ask("copy.parquet", "select region, count(*) from copy where ward = 'A' group by region")

    Queries about single records are refused.

    Args:
        copy: a copy, as a table or a path, or several, of which the most faithful is used.
        query: one SELECT.
        tables: other tables that the query joins, by their names.
        confidence: the confidence level of the intervals.
        method: "correction" of the noise, which assumes nothing of the original and answers some queries only;
            "imputation", which asks plausible originals and assumes that no finer relations exist than those of the
            joint model, and that no other values are shared by many records than those which the owner states; or
            "auto", which corrects where that says something, and imputes where special values are stated.
        random_state: the seed of imputations.

    Returns:
        The answer; its schema's metadata name the `method` that gave it.

    """
    critical_value(confidence)  # refuses what is none
    if method not in METHODS:
        raise MiningError(f"the method must be one of {', '.join(METHODS)}, got {method!r}")
    best, further = Copy.of(copy), dict(tables or {})
    answer = None
    if method != "imputation" and not further:
        answer = _corrected(best, query, confidence, last=method == "correction")
    if answer is not None:
        return _named(answer, "correction")
    smooth = method == "imputation"
    imputed = imputed_answer(best, query, further, confidence, random_state=random_state, smooth=smooth)
    return _named(imputed, "imputation")


def _corrected(copy: Copy, query: str, confidence: float, *, last: bool) -> pa.Table | None:
    """The corrected answer; none where imputation says more, unless there is no other way to answer."""
    last = last or any(map(copy.copula_model, copy.column_names))
    try:
        parsed, parts = corrigible(copy, query)
    except MiningError:
        if last:
            raise
        return None
    answer = corrected(copy, parsed, parts, confidence)
    if last or not _says_nothing(copy, parsed, answer):
        return answer
    stated = [name for name in parsed.columns if copy.noise_model(name) is None or _is_stated(copy, name)]
    return None if len(stated) == len(parsed.columns) and copy.rows >= FEWEST else answer


def _is_stated(copy: Copy, name: str) -> bool:
    model = copy.noise_model(name)
    return model is not None and model.special_values(name) is not None


def _named(answer: pa.Table, method: str) -> pa.Table:
    return answer.replace_schema_metadata({"method": method})


def _says_nothing(copy: Copy, query: Query, answer: pa.Table) -> bool:
    """Whether some number over a range is known no better than that it may be half as large, or half as large again."""
    conditions = [*query.predicates, *(one for output in query.outputs for one in output.filter)]
    if not any(noisy_columns(copy, one) for one in conditions):
        return False
    for name in answer.column_names:
        if f"{name}_low" in answer.column_names:
            estimate, low, high = (answer.column(f"{name}{end}").to_numpy() for end in ("", "_low", "_high"))
            if not np.all(high - low <= np.abs(estimate)):  # also where one is unknown
                return True
    return False
