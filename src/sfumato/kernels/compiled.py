"""Functions that numba compiles when they are first called: to import numba takes longer than most commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
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
        return njit(**self._options)(self._function)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, but for the time at which numba is imported."""
    return lambda function: Compiled(function, options)


@cache
def _register() -> None:
    """Let numba know what a compiled function means that is called by another one."""
    from numba import types  # noqa: PLC0415
    from numba.extending import typeof_impl  # noqa: PLC0415

    @typeof_impl.register(Compiled)
    def _(function: Compiled, _: Any) -> Any:
        return types.Dispatcher(function.dispatcher)
