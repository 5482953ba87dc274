"""Lazy values: data that is read at its first use, because many attacks never use some of the copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

T = TypeVar("T")
S = TypeVar("S")


@final
class Lazy(Generic[T]):
    """A value that is computed at the first `get` and cached.

    It is an ordinary object that can be stored in a field: copying the field, as `dataclasses.replace` does, shares the
    cache and reads nothing.
    """

    def __init__(self, read: Callable[[], T]) -> None:
        self._read: Callable[[], T] | None = read

    def get(self) -> T:
        """The value, which is computed if it was not before."""
        read = self._read
        if read is not None:
            self._value = read()
            self._read = None  # it may refer to a large table that is needed no more
        return self._value

    def map(self, function: Callable[[T], S]) -> Lazy[S]:
        """A function of this value, which is computed no earlier than somebody needs it."""
        return Lazy(lambda: function(self.get()))


def value_of(data: T | Lazy[T]) -> T:
    """The value of data that may be lazy."""
    return data.get() if isinstance(data, Lazy) else data


def lazy(data: T | Lazy[T]) -> Lazy[T]:
    """Data that may be lazy, as a lazy value."""
    return data if isinstance(data, Lazy) else Lazy(lambda: data)
