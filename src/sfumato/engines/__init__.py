"""Engines: where the work is done. An engine folds and maps a function over record batches, in order, nothing more."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sfumato.family import Family

ENGINES = Family("sfumato.engines", "Engine")

In = TypeVar("In")
Out = TypeVar("Out")


class Engine(abc.ABC):
    """A place to run functions of record batches."""

    @abc.abstractmethod
    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
        """The results in the order of the items, of which only a few are held at any time."""

    def fold(self, function: Callable[[In], Out], merge: Callable[[Out, Out], Out], items: Iterable[In]) -> Out:
        """The results merged from left to right; there must be at least one item."""
        results = self.map(function, items)
        total = next(results)
        for result in results:
            total = merge(total, result)
        return total
