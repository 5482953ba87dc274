"""Reading ahead: a thread makes the next items while the caller uses the last ones."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")

_AHEAD = 16
"""Items that wait at most."""


def read_ahead(items: Iterable[T], most: int = _AHEAD) -> Generator[T, None, None]:
    """The same items, made in a thread of their own, which stops when the caller does; its error reaches the caller."""
    waiting: Queue[tuple[T] | BaseException | None] = Queue(most)
    stopped = Event()

    def make() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                waiting.put((item,))
                del item  # the next one may take as much memory
                if stopped.is_set():
                    return
        except BaseException as error:  # it is raised again where the items are used
            end = error
        waiting.put(end)

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while isinstance(found := waiting.get(), tuple):
            yield found[0]
        if found is not None:
            raise found
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for room
            while not waiting.empty():
                waiting.get()
            thread.join(0.01)
