"""Digests of an experiment's source code: whether a stored result is still what the code would compute.

A result has two digests. The first covers the code that computes its table; when it changes, the experiment is run
again. The second covers the code that plots and judges the table; when only that changes, the stored table is plotted
and judged again.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sfumato.experiments import Experiment

_PACKAGE = Path(__file__).parent
_PRESENTATION_MEMBERS = {
    "draw",
    "claims",
    "title",
    "description",
    "data",
    "citation",
    "figsize",
    "data_source",
    "measures_time",
    "quick_is_enough",
    "makes_claims",
}
"""Members of an experiment that its table does not depend on."""
_PRESENTATION_MODULES = ("_plotting", "_claims", "_tables", "_runner")
"""Modules that plot and judge a table."""
_NOT_COMPUTING = {*_PRESENTATION_MODULES, "_report", "_code_digests"}
"""Modules of this package that a table does not depend on."""
_LIBRARY = (
    "attacks",
    "audit",
    "kernels",
    "keys",
    "mechanisms",
    "mining",
    "models",
    "policy",
    "release",
    "survey",
    "tables",
)
"""Packages that experiments compute with."""


def digests(experiment: Experiment) -> tuple[str, str]:
    """The digest of the code that computes the table, and that of the code that plots and judges it."""
    path = Path(inspect.getfile(type(experiment)))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in _computing_files(path)]
    computing = hashlib.sha256("".join(ast.dump(_computing_code(tree)) for tree in trees).encode() + _library())
    presenting = [path, *(_PACKAGE / f"{name}.py" for name in _PRESENTATION_MODULES)]
    presentation = hashlib.sha256(b"".join(file.read_bytes() for file in presenting))
    return computing.hexdigest()[:16], presentation.hexdigest()[:16]


@cache
def _library() -> bytes:
    """The digest of the library packages: a change there makes every stored table out of date."""
    files = [file for name in _LIBRARY for file in sorted((_PACKAGE.parent / name).rglob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _computing_files(path: Path) -> list[Path]:
    """An experiment's file and the modules of this package that it imports, directly or indirectly."""
    found, waiting = {path}, [path]
    while waiting:
        new = set(_imported(waiting.pop())) - found
        found |= new
        waiting += new
    return [path, *sorted(found - {path})]


def _imported(path: Path) -> Iterator[Path]:
    """The computing modules of this package that one file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for name in _module_names(node):
                file = _PACKAGE / f"{name}.py"
                if name not in _NOT_COMPUTING and file.exists():
                    yield file


def _module_names(node: ast.ImportFrom) -> list[str]:
    """The modules of this package that a `from` import may refer to."""
    package, _, module = (node.module or "").rpartition(".")
    if node.module == __package__:
        return [alias.name for alias in node.names]
    return [module] if package == __package__ else []


def _computing_code(tree: ast.Module) -> ast.Module:
    """The code without imports and docstrings, and without the members that plot or judge a table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            in_class = isinstance(node, ast.ClassDef)
            node.body = [
                statement
                for statement in node.body
                if not (_is_import_or_docstring(statement) or (in_class and _is_presentation(statement)))
            ] or [ast.Pass()]
    return tree


def _is_presentation(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _PRESENTATION_MEMBERS
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in _PRESENTATION_MEMBERS
    return False


def _is_import_or_docstring(node: ast.stmt) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, ast.Import | ast.ImportFrom)
