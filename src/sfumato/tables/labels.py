"""Labels: what a column and its codes mean, as SPSS, Stata and SAS files state it, in the metadata of fields."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

Code = int | float | str

_LABEL, _LABELS = b"label", b"labels"


def with_labels(field: pa.Field, label: str | None, labels: Mapping[Code, str]) -> pa.Field:
    """The field with the label of its column, and of its codes."""
    stated = {_LABEL: label.encode()} if label else {}
    if labels:
        stated[_LABELS] = json.dumps([[code, text] for code, text in labels.items()], ensure_ascii=False).encode()
    return field.with_metadata(stated) if stated else field


def label_of(field: pa.Field) -> str:
    """The label of a column, if it has one."""
    return str((field.metadata or {}).get(_LABEL, b"").decode())


def labels_of(field: pa.Field) -> dict[Code, str]:
    """The labels of a column's codes."""
    return {code: str(text) for code, text in json.loads((field.metadata or {}).get(_LABELS, b"[]"))}


def labelled_like(field: pa.Field, original: pa.Field, *, codes: bool) -> pa.Field:
    """A field of a copy with the labels of the original; those of codes only where the copy has codes."""
    return with_labels(field, label_of(original), labels_of(original) if codes else {})
