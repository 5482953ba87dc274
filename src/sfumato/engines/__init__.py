"""Engines: where the work is done, one a file. An engine maps and folds a function over items, in order, nothing more.

On one machine the items are record batches. A cluster is given the files of a folder: each is read, worked on and
written where there is room, and only small results come back. What is sent must be picklable; a key never is, so it is
shared_key (see `_desk`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from sfumato.family import Family
from sfumato.keys.key import Key

ENGINES = Family("sfumato.engines", "Engine")

In = TypeVar("In")
Out = TypeVar("Out")

Secret = Callable[[], Key]
"""A way to the key, which works wherever the work is done."""


class Engine(abc.ABC):
    """A place to run functions."""

    address_option: ClassVar[str] = ""
    """The option of the command line that says where it is."""

    @classmethod
    @abc.abstractmethod
    def at(cls, address: str | None, threads: int | None) -> Self:
        """The engine at an address, or one on this machine with so many cores."""

    @abc.abstractmethod
    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        """The results in the order of the items, of which only a few are held at any time."""

    @abc.abstractmethod
    def shared_key(self, key: Key) -> AbstractContextManager[Secret]:
        """A way to a key, for functions that this engine runs, until the work is done."""

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what the engine holds."""

    def fold(self, function: Callable[[In], Out], merge: Callable[[Out, Out], Out], items: Iterable[In]) -> Out:
        """The results merged from left to right; there must be at least one item."""
        results = self.map(function, items)
        total = next(results)
        for result in results:
            total = merge(total, result)
        return total

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
