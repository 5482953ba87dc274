"""Execution engines, one per file: this machine, or a cluster. An engine maps and folds a function over items in order.

On one machine the items are record batches. A cluster is given the files of a partitioned table: each is read and
written by one worker, and only small results come back. What is sent must be picklable; a key never is, so workers get
it from a key broker (`key_broker`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from sfumato.engines._key_broker import KeyToken, key_broker
from sfumato.family import Family
from sfumato.keys.key import Key

__all__ = ["ENGINES", "Engine", "In", "KeyToken", "Out", "Secret", "key_broker"]

ENGINES = Family("sfumato.engines", "Engine")

In = TypeVar("In")
Out = TypeVar("Out")

Secret = Callable[[], Key]
"""Returns the key, on whichever worker it is called."""


class Engine(abc.ABC):
    """Something that runs functions."""

    address_option: ClassVar[str] = ""
    """The option of the command line that gives its address."""
    is_distributed: ClassVar[bool] = True
    """Whether it runs on other machines, so that it is given whole files rather than batches."""
    threads: int = 1
    """The number of threads for one item."""

    @classmethod
    @abc.abstractmethod
    def at(cls, address: str | None, threads: int | None) -> Self:
        """The engine at an address, or one on this machine with this number of threads."""

    @abc.abstractmethod
    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        """The results in the order of the items; only a few are in memory at any time."""

    @abc.abstractmethod
    def shared_key(self, key: Key) -> AbstractContextManager[Secret]:
        """Gives the functions that this engine runs access to a key, until the work is done."""

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release the engine's resources."""

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
