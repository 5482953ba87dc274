"""Functions that numba compiles once they have enough to do: until then, NumPy does the same with the same bits.

To import numba takes longer than most commands, and to compile a function takes up to some seconds where that was never
done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

_WORTH_LOADING = 1 << 20
"""The array elements that a process works on with NumPy before it loads compiled code."""

_worked = 0


def is_worth_it(elements: int, *, loaded: bool) -> bool:
    """Whether compiled code is to be used for so many elements: always if it is loaded."""
    global _worked  # noqa: PLW0603 - what a process has done so far; results do not depend on it
    _worked += 0 if loaded else elements
    return loaded or _worked >= _WORTH_LOADING


class Compiled:
    """A function to be compiled, which other such functions may call."""

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], arrays: Callable[..., Any] | None = None
    ) -> None:
        update_wrapper(self, function)
        self._function, self._options, self._arrays = function, options, arrays

    def __call__(self, *arguments: Any) -> Any:
        """Call the function compiled, or what does the same with NumPy as long as there is little to do."""
        if self._arrays is not None:
            elements = max(one.size for one in arguments if isinstance(one, np.ndarray))
            if not is_worth_it(elements, loaded="dispatcher" in vars(self)):
                return self._arrays(*arguments)
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


class Elementwise(Compiled):
    """A function of numbers in compiled code, and of arrays elsewhere, from the same lines unless `arrays` is given."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the function with NumPy."""
        return (self._arrays or self._function)(*arguments)


def njit(*, arrays: Callable[..., Any] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, but for the time at which numba is imported; `arrays` does the same with NumPy."""
    return lambda function: Compiled(function, options, arrays)


def elementwise(*, arrays: Callable[..., Any] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A function without branches and loops over elements, for numbers in compiled code and for arrays."""
    return lambda function: Elementwise(function, {"nogil": True, **options}, arrays)


@elementwise(arrays=np.where, inline="always")
def choose(condition: Any, first: Any, second: Any) -> Any:  # pragma: no cover - compiled
    """The first number where the condition holds, else the second."""
    return first if condition else second


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


@njit(nogil=True)
def copy_to(target: Any, source: Any) -> None:  # pragma: no cover - compiled
    """Copy some numbers. To compile an assignment of slices takes seconds, for the text of its errors."""
    for i in range(source.shape[0]):
        target[i] = source[i]
