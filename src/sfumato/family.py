"""Plug-in families: a package whose every public module defines one class; the file name is the public name.

`mechanisms/gaussian.py` is `gaussian` for the policy, the command line and the documentation. A family is a mapping
from names to classes. Names are listed without importing anything, so a costly dependency is paid for only when its
member is asked for. Installed packages add members through an entry point whose group is the package's name; hyphens
and underscores in names mean the same. Sub-packages and modules with a leading underscore are not members.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from sfumato.errors import UnknownMember, nearest


class FaultyPlugin(UserWarning):
    """An installed member that could not be loaded, and was left out."""


class Family(Mapping[str, Any]):
    """The members of one package, found by file name.

    The base class is given by name and looked up in the package itself, so that a package can define its own family.
    """

    def __init__(self, package: str, base: str) -> None:
        self.package, self.base = package, base

    def names(self) -> list[str]:
        """The names of all members, sorted; imports none of them."""
        return sorted({*self._own, *self._installed})

    def members(self) -> dict[str, Any]:
        """All members that can be loaded, by name; a faulty plug-in is named in a warning and left out."""
        found = {}
        for name in self:
            try:
                found[name] = self[name]
            except UnknownMember as error:
                warnings.warn(str(error), FaultyPlugin, stacklevel=2)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _public(name) in self.names()

    def __getitem__(self, name: str) -> Any:
        """The class that the member `name` defines; `UnknownMember` if there is none, or if it cannot be loaded."""
        if name not in self:
            raise UnknownMember(f"no {self.base.lower()} is called {name!r}; {nearest(name, self.names())}")
        public = _public(name)
        if public in self._installed:
            return self._plugin(self._installed[public])
        return self._member(importlib.import_module(f"{self.package}.{self._own[public]}"))

    @cached_property
    def _own(self) -> dict[str, str]:
        """The modules of the package itself, by public name."""
        modules = pkgutil.iter_modules(importlib.import_module(self.package).__path__)
        return {_public(m.name): m.name for m in modules if not m.ispkg and not m.name.startswith("_")}

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """The members of installed packages: looked for once, since it means reading the metadata of all of them."""
        return {_public(point.name): point for point in entry_points(group=self.package)}

    def _plugin(self, point: EntryPoint) -> Any:
        """The class of an installed member: its entry point names a module or the class itself."""
        try:
            loaded = point.load()
            return self._member(loaded) if inspect.ismodule(loaded) else self._checked(loaded)
        except Exception as error:  # whatever a third-party module raises when it is imported
            package = point.dist.name if point.dist else "an unknown package"
            raise UnknownMember(
                f"the {self.base.lower()} {point.name!r} of {package} ({point.value}) must be loadable, and is not: "
                f"{type(error).__name__}: {error}; fix or uninstall that package"
            ) from error

    def _member(self, module: ModuleType) -> Any:
        """The one class that a module defines."""
        defined = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
        found = [one for one in defined if issubclass(one, self._base)]
        if len(found) != 1:
            raise TypeError(f"{module.__name__} must define one subclass of {self.base}, and defines {len(found)}")
        return found[0]

    def _checked(self, loaded: Any) -> Any:
        if not (inspect.isclass(loaded) and issubclass(loaded, self._base)):
            raise TypeError(f"{loaded!r} must be a subclass of {self.base}")
        return loaded

    @property
    def _base(self) -> type:
        base: type = getattr(importlib.import_module(self.package), self.base)
        return base


def _public(name: str) -> str:
    return name.replace("_", "-")
