"""Imports, as tests: no circles between modules, and none hidden in strings or type-checking blocks of lower layers."""

from __future__ import annotations

import re
from pathlib import Path

import grimp
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "sfumato"


def cycles(edges: list[tuple[str, str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or not."""
    names = sorted({name for edge in edges for name in edge})
    index = {name: i for i, name in enumerate(names)}
    rows, columns = zip(*[(index[a], index[b]) for a, b in edges], strict=True)
    matrix = coo_array((np.ones(len(edges)), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(matrix.tocsr(), directed=True, connection="strong")
    groups = [[name for name, label in zip(names, labels, strict=True) if label == one] for one in np.unique(labels)]
    return [group for group in groups if len(group) > 1]


def test_there_are_no_import_circles() -> None:
    graph = grimp.build_graph("sfumato", exclude_type_checking_imports=False, cache_dir=None)
    # the root package names its public classes for type checkers, and a family's package is its members' interface
    edges = [
        (importer, imported)
        for importer in graph.modules
        if importer != "sfumato"
        for imported in graph.find_modules_directly_imported_by(importer)
        if imported != "sfumato"
    ]
    assert cycles(edges) == []


def test_a_planted_circle_is_found() -> None:
    assert cycles([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]) == [["a", "b", "c"]]


def test_no_import_is_a_string() -> None:
    """Only plug-in families, and lists of public names that arrive when they are used, import by name."""
    users = [p for p in PACKAGE.rglob("*.py") if re.search(r"import_module\(|__import__\(", p.read_text())]
    assert {p.relative_to(PACKAGE).as_posix() for p in users} <= {
        "__init__.py",
        "cli/main.py",
        "family.py",
        "mining/__init__.py",
        "experiments/_code_digests.py",
    }
