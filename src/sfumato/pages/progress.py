"""Progress of long work in one line: in a notebook it is updated where the cell is, elsewhere on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_INTERVAL = 0.2
"""The least seconds between two updates: a stage may advance thousands of times."""


class Shown:
    """The two callbacks that long operations take: `stage`, the name of a step, and `advance`, by some units."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show, self._began, self._last = show, time.monotonic(), 0.0
        self._name, self._units = "working", 0

    def stage(self, name: str) -> None:
        """Begin a step."""
        self._name, self._units = name, 0
        self._update()

    def advance(self, units: int) -> None:
        """Some more rows, or other units, were done."""
        self._units += units
        if time.monotonic() - self._last > _INTERVAL:
            self._update()

    def _update(self) -> None:
        self._last = time.monotonic()
        count = f", {self._units:,} done" if self._units else ""
        self._show(f"{self._name}{count} ({self._last - self._began:.0f} s)")


@contextmanager
def progress() -> Iterator[Shown]:
    """Show how far long work is.

    with sf.progress() as shown:
        vault.add(policy, table, progress=shown.advance)
        vault.audit("clinic", stage=shown.stage)
    """
    show, end = _in_notebook() or _on_terminal()
    try:
        yield Shown(show)
    finally:
        end()


def _in_notebook() -> tuple[Callable[[str], None], Callable[[], None]] | None:
    """A line under the cell; `None` outside of notebooks."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import Pretty, display  # noqa: PLC0415 - it is there in notebooks alone

    handle: Any = display(Pretty(""), display_id=True)
    return (lambda text: handle.update(Pretty(text))), (lambda: handle.update(Pretty("")))


def _on_terminal() -> tuple[Callable[[str], None], Callable[[], None]]:
    """A line on standard error that overwrites itself; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        return (lambda _: None), (lambda: None)

    def show(text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    return show, lambda: show("")
