"""When compiled code is used, and the expanded keys that it needs.

Compiled loops and arrays give the same bytes. Compiled ones are several times as fast, and cost a fraction of a second
to load, or some seconds to compile where that was never done; so they are for large tables, and for every table once
they are there.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.kernels import Words, compiled
from sfumato.keys.key import Key
from sfumato.keys.stream import lane_key

Labels = tuple[str, ...]
"""What the key of a stream of random bits is derived by."""


def is_worth_it(cells: int, module: str) -> bool:
    """Whether so many cells are perturbed by the compiled code of a module in `kernels`."""
    if not compiled.is_worth_it(cells, loaded=f"sfumato.kernels.{module}" in sys.modules):
        return False
    from sfumato.kernels.aes import is_available  # noqa: PLC0415 - numba takes a third of a second to import

    return is_available()


class _Memory:
    """The memory of a read-only array, for code that is known to leave it alone."""

    def __init__(self, array: Any) -> None:
        self._owner = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def readable(array: Any) -> Any:
    """The array as compiled code reads it: for one that is read-only, everything would be compiled a second time."""
    array = np.require(array, requirements=["C"])
    return array if array.flags.writeable else np.asarray(_Memory(array))


@lru_cache(maxsize=64)
def expanded(secret: Key, streams: tuple[Labels, ...], lanes: tuple[str, ...]) -> Words:
    """The expanded keys of some lanes of some streams, one after the other."""
    from sfumato.kernels.aes import SCHEDULE, expand  # noqa: PLC0415

    keys = [lane_key(secret.derive(*labels) if labels else secret, lane) for labels in streams for lane in lanes]
    out = np.empty((len(keys), SCHEDULE), np.uint64)
    for key, schedule in zip(keys, out, strict=True):
        expand(np.frombuffer(key.expose(), np.uint32), schedule)
    flat: Words = out.reshape(-1)
    flat.flags.writeable = False
    return flat
