"""Functions that numba compiles when they are first called: to import numba takes longer than most commands."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any


class Compiled:
    """A function to be compiled, which other such functions may call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._function, self._options = function, options

    def __call__(self, *arguments: Any) -> Any:
        """Compile the function, if that was not done before, and call it."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba has it."""
        from numba import njit  # noqa: PLC0415

        _register()
        made = njit(**self._options)(self._function)
        if self._options.get("cache"):
            _stamp(made)
        return made


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, but for the time at which numba is imported."""
    return lambda function: Compiled(function, options)


def _stamp(dispatcher: Any) -> None:
    """Let the stored code of a function be used only while no file of the kernels has changed.

    numba looks at the file of the function alone, and would go on using what it inlined from another one, so that the
    same cells would get other noise than they get without compiled code.
    """
    from numba.core.caching import IndexDataCacheFile  # noqa: PLC0415

    stored = dispatcher._cache  # noqa: SLF001 - numba has no public way
    base = stored._impl.filename_base  # noqa: SLF001
    stamp = stored._impl.locator.get_source_stamp(), _sources()  # noqa: SLF001
    stored._cache_file = IndexDataCacheFile(stored._cache_path, base, stamp)  # noqa: SLF001


@cache
def _sources() -> str:
    """A digest of all files of the kernels."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _register() -> None:
    """Let numba know what a compiled function means that is called by another one."""
    from numba import types  # noqa: PLC0415
    from numba.extending import typeof_impl  # noqa: PLC0415

    @typeof_impl.register(Compiled)
    def _(function: Compiled, _: Any) -> Any:
        return types.Dispatcher(function.dispatcher)
