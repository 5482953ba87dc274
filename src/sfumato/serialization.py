"""Conversion of results to values that strict JSON can represent."""

from __future__ import annotations

import math
from typing import Any


def json_safe(value: Any) -> Any:
    """The value with tuples as lists, and with `None` for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: json_safe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
