"""Values that strict JSON can represent, type checks of values that were read from JSON, and reading of TOML."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import tomllib
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_QUOTED = re.compile(r"""\"(?:[^"\\\n]|\\.)*+\"?|'[^'\n]*+'?""")
_LONG_KEY = re.compile(r"(?<![\w \t.-])[ \t]*+(?:[\w-]*+[ \t]*+\.[ \t]*+){100}")


def json_safe(value: Any) -> Any:
    """The value with tuples as lists, and with `None` for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: json_safe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load_toml(text: str) -> dict[str, Any]:
    """The content of a TOML document; `ValueError` or `RecursionError` if it is none.

    The time to parse a key grows with the square of its parts, so that a few kilobytes could take minutes.
    """
    if _LONG_KEY.search(_QUOTED.sub("", text)):
        raise ValueError("a key must have at most 100 parts that are separated by dots")
    return tomllib.loads(text)


def check_types(record: Any) -> None:
    """Raise `TypeError` if a field of a dataclass has not the type that it declares; numbers must be finite."""
    for name, kind in _field_types(type(record)):  # type: ignore[arg-type]
        if not _has_type(getattr(record, name), kind):
            raise TypeError(f"{name} must be {kind}")


@cache
def _field_types(record: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(record)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(record))


def _has_type(value: Any, kind: Any) -> bool:
    parts = get_args(kind)
    if kind is Any:
        return True
    if get_origin(kind) in (Union, UnionType):
        return any(_has_type(value, part) for part in parts)
    if get_origin(kind) is tuple:
        kinds = [parts[0]] * len(value) if parts[1:] == (...,) and isinstance(value, tuple) else parts
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(_has_type, value, kinds))
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return not isinstance(get_origin(kind) or kind, type) or isinstance(value, get_origin(kind) or kind)
