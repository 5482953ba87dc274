"""Whether a stored figure is still what its code would make: digests of that code."""

from __future__ import annotations

import ast
import hashlib
import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.experiments import Experiment

_HERE = Path(__file__).parent
_LOOKS = {"draw", "claims", "title", "about", "data", "size", "source"}
"""What a table does not depend on."""
_CORE = ("attacks", "audit", "kernels", "keys", "mechanisms", "mining", "release", "schema", "survey")
_LATER = {"_drawing", "_claims", "_tables", "_running", "_report", "_digests"}


def digests(made: Experiment) -> tuple[str, str]:
    """Of the code that makes a table, with all helpers it imports; and of that in which it is drawn and judged."""
    path = Path(str(importlib.import_module(type(made).__module__).__file__))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in _imported(path)]
    told = hashlib.sha256("".join(ast.dump(_bare(tree)) for tree in trees).encode() + _core())
    drawn = [path, *(_HERE / f"{name}.py" for name in ("_drawing", "_claims", "_tables", "_running"))]
    look = hashlib.sha256(b"".join(file.read_bytes() for file in drawn))
    return told.hexdigest()[:16], look.hexdigest()[:16]


@cache
def _core() -> bytes:
    """Of everything that figures are made with: a change there makes all of them anew."""
    files = [file for name in _CORE for file in sorted((_HERE.parent / name).rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _imported(path: Path) -> list[Path]:
    """A file and the helpers in this folder that it imports, directly or not."""
    found, waiting = [path], [path]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sfumato.experiments"):
                last = (node.module or "").rpartition(".")[2]
                names = [last] if last != "experiments" else [alias.name for alias in node.names]
                files = [_HERE / f"{name}.py" for name in names if name not in _LATER]
                new = [file for file in files if file.exists() and file not in found]
                found, waiting = found + new, waiting + new
    return [path, *sorted(set(found) - {path})]


def _bare(tree: ast.Module) -> ast.Module:
    """Without words, and without what is done to the table afterwards."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            own = isinstance(node, ast.ClassDef)
            node.body = [one for one in node.body if not (_is_word(one) or (own and _is_later(one)))] or [ast.Pass()]
    return tree


def _is_later(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _LOOKS
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in _LOOKS
    return False


def _is_word(node: ast.stmt) -> bool:
    """An import, or a docstring."""
    said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return said or isinstance(node, ast.Import | ast.ImportFrom)
