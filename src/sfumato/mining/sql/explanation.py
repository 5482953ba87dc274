"""Answers to SQL queries in words: each cell with its interval, and how the answer was found."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from sfumato.mining.sql.imputed_answers import IMPUTATIONS
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.release.manifest import Manifest


def method_of(answer: pa.Table) -> str:
    """The method that gave an answer."""
    return str((answer.schema.metadata or {})[b"method"].decode())


def explanation(answer: pa.Table, manifest: Manifest, question: str) -> str:
    """How an answer was found, in a sentence."""
    method, as_it_stands = method_of(answer), _as_it_stands(manifest, question)
    if as_it_stands and method == "correction":
        return as_it_stands
    return {
        "correction": "Each estimate is corrected for the noise of the copy.",
        "exact": "The question is about unchanged columns alone, so that the answer is exact.",
        "imputation": f"Estimated from {IMPUTATIONS} plausible originals, drawn from a joint model of the columns; "
        "it may be wrong where columns are related in a finer way than the model can express.",
    }[method]


def cells(answer: pa.Table) -> tuple[list[str], list[list[str]]]:
    """The columns of an answer, and its rows as texts, each estimate with its confidence interval in brackets."""
    names = answer.column_names
    ends = {f"{name}{end}" for name in names for end in ("_low", "_high")}
    columns = [name for name in names if name not in ends]
    return columns, [[_cell(row, name) for name in columns] for row in answer.to_pylist()]


def _as_it_stands(manifest: Manifest, question: str) -> str:
    """What to know of an answer about margin-preserving columns, which is that of the copy; else nothing."""
    kinds, named, ends = dict(manifest.columns), False, []
    for model in of_type(manifest.models, GaussianCopula):
        for name, margin in zip(model.columns, model.margins, strict=True):
            if not re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE):  # as in SQL
                continue
            named = True
            if kinds[name].startswith(("int", "uint", "float", "double", "decimal")):
                low, high = (margin[end][i] * margin["step"] for end, i in (("low", 0), ("high", -1)))
                ends.append(f"{name} is between {low:,.6g} and {high:,.6g} in the copy")
    if not named:
        return ""
    moved = "values beyond are moved there, so that sums, averages and deviations of the original may be outside"
    return "The answer is that of the copy as it stands." + (f" {'; '.join(ends)}: {moved}." if ends else "")


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if f"{name}_low" not in row:
        return "" if value is None else str(value)
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return "unknown"
    form = ",.0f" if high - low >= 20 else ",.6g"
    return f"{value:{form}}" if low == high else f"{value:{form}} ({low:{form}} to {high:{form}})"
