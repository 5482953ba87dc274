"""Answers to SQL queries about the original, with confidence intervals: corrected, or from plausible originals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import MiningError
from sfumato.mining.copies.confidence import critical_value
from sfumato.mining.copies.copy import Copy
from sfumato.mining.sql.corrected_answers import correctable, corrected, noisy_columns
from sfumato.mining.sql.imputed_answers import imputed_answer, with_method
from sfumato.mining.sql.parser import Query
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise

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
        The answer; its schema's metadata name the `method` that gave it, which is "exact" for unchanged columns alone.

    """
    critical_value(confidence)  # refuses what is none
    if method not in METHODS:
        raise MiningError(f"the method must be one of {', '.join(METHODS)}, got {method!r}")
    best, further = Copy.of(copy), dict(tables or {})
    if method == "correction":
        return with_method(corrected(best, *correctable(best, query), confidence), method)

    def imputed() -> pa.Table:
        smooth = method == "imputation"
        return imputed_answer(best, query, further, confidence, random_state=random_state, smooth=smooth)

    joins = any(name.lower() in query.lower() for name in further)
    return imputed() if method == "imputation" or joins else _either(best, query, confidence, imputed)


def _either(copy: Copy, query: str, confidence: float, imputed: Callable[[], pa.Table]) -> pa.Table:
    """The corrected answer, or that of plausible originals where it cannot be corrected or says nothing."""
    try:
        parsed, parts = correctable(copy, query)
    except MiningError:
        if copy.preserved_columns and not of_type(copy.manifest.models, GaussianNoise):
            raise  # nothing can be imputed
        return imputed()
    answer = corrected(copy, parsed, parts, confidence)
    if _says_nothing(copy, parsed, answer):
        with suppress(MiningError):
            return imputed()
    return with_method(answer, "correction")


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
