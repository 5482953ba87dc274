"""What JSON can hold."""

from __future__ import annotations

import math
from typing import Any


def plain(value: Any) -> Any:
    """The same for JSON, which knows no number that is none."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
