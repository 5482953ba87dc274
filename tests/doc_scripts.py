"""The scripts that write pages of the documentation, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def doc_script(name: str) -> ModuleType:
    """The script `docs/NAME.py`, without running it."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
