"""A family is a package whose every public module defines one final class; the file name is the public name.

`mechanisms/gaussian.py` is `gaussian` for the policy, the command line and the documentation. Members are listed
without being imported, so a costly dependency is paid for only when its member is asked for. Installed packages add
members through an entry point whose group is the package's name.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from sfumato.errors import UnknownMember, nearest


class Family:
    """The members of one package, found by file name.

    The base class is given by name and looked up in the package itself, so that a family can be named where its
    package must not be imported.
    """

    def __init__(self, package: str, base: str) -> None:
        self.package, self.base = package, base

    def names(self) -> list[str]:
        """The names of all members; imports none of them."""
        path = importlib.import_module(self.package).__path__
        ours = {module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")}
        return sorted(name.replace("_", "-") for name in ours | set(self._installed))

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """The members of installed packages: looked for once, since it means reading the metadata of all of them."""
        return {point.name: point for point in entry_points(group=self.package)}

    def __getitem__(self, name: str) -> Any:
        """The one class that the member `name` defines."""
        names = self.names()
        if name not in names:
            raise UnknownMember(f"no {self.base.lower()} is called {name!r}; {nearest(name, names)}")
        module = self._module(name.replace("-", "_"))
        base = getattr(importlib.import_module(self.package), self.base)
        [member] = [
            found
            for _, found in inspect.getmembers(module, inspect.isclass)
            if issubclass(found, base) and found.__module__ == module.__name__
        ]
        return member

    def _module(self, stem: str) -> ModuleType:
        if stem not in self._installed:
            return importlib.import_module(f"{self.package}.{stem}")
        module: ModuleType = self._installed[stem].load()
        return module
