"""Edits of a policy's text: the role of a column, or the levels, while all else stays as somebody wrote it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import tomli_w

from sfumato.errors import PolicyError
from sfumato.policy.tables import parsed

_SECTION = re.compile(r"\s*\[")
_STATEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([A-Za-z0-9_-]+))\s*=')


def with_columns(text: str, statements: Mapping[str, str]) -> str:
    """The text of a policy with other statements about some columns, each with its comment.

    Args:
        text: the text.
        statements: by the name of the column, a comment and a line such as `age = "copula"`, as a draft has them.

    """
    lines = text.split("\n")
    for name, statement in statements.items():
        at = _line_of(lines, "columns", name)
        if at is None:
            raise PolicyError(f"column {name!r} must be stated in one line under [columns]; change it in the text")
        first = at - 1 if at and lines[at - 1].startswith("# ") and _is_about(lines[at - 1], name) else at
        lines[first : at + 1] = statement.strip("\n").split("\n")
    return _checked(text, "\n".join(lines), "columns", set(statements))


def with_levels(text: str, levels: Mapping[str, float]) -> str:
    """The text of a policy with other levels."""
    lines = text.split("\n")
    start = next((i + 1 for i, line in enumerate(lines) if re.fullmatch(r"\s*\[levels\]\s*(#.*)?", line)), None)
    if start is None:
        raise PolicyError("the levels must be stated under [levels]; change them in the text")
    end = next((i for i in range(start, len(lines)) if _SECTION.match(lines[i])), len(lines))
    stated = [i for i in range(start, end) if _STATEMENT.match(lines[i])]
    kept = [lines[i] for i in range(start, end) if i not in stated]
    lines[start:end] = [f"{key_text(name)} = {float(level):g}" for name, level in levels.items()] + kept
    return _checked(text, "\n".join(lines), "levels", None)


def _line_of(lines: list[str], section: str, name: str) -> int | None:
    """The line that states a column, if it is one line of a section."""
    inside = False
    for i, line in enumerate(lines):
        if _SECTION.match(line):
            inside = bool(re.fullmatch(rf"\s*\[{section}\]\s*(#.*)?", line))
        elif inside and (found := _STATEMENT.match(line)) and _name(found[0]) == name:
            return i
    return None


def _name(start: str) -> str:
    """The key of a statement that starts so."""
    return next(iter(tomllib.loads(f"{start} 0")))


def _is_about(comment: str, name: str) -> bool:
    return comment[2:].startswith((f"{name}:", f"{key_text(name)}:"))


def key_text(name: str) -> str:
    """A key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else value_text(name)


def value_text(value: Any) -> str:
    """A value of TOML on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {value_text(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


def _checked(before: str, after: str, section: str, names: set[str] | None) -> str:
    """The new text, if nothing but a section, or some keys of it, has another meaning."""

    def rest(text: str) -> dict[str, Any]:
        content = dict(parsed(text))
        own = content.pop(section, {})
        kept = {} if names is None else {name: value for name, value in own.items() if name not in names}
        return {**content, section: kept}

    if rest(before) != rest(after):
        raise PolicyError(f"the {section} are not stated line by line; change them in the text")
    return after
