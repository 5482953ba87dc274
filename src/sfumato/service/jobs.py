"""Jobs: work that takes longer than a request should, done in the background one after the other."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import structlog

from sfumato.errors import SfumatoError
from sfumato.service.problems import ODD, Refused, odd
from sfumato.service.state import State

_OFTEN = 0.3
"""Seconds between two reports of progress."""

_HEARTBEAT = 10.0


class Running:
    """A job's way to say how far it is."""

    def __init__(self, state: State, name: str) -> None:
        self._state, self._name = state, name
        self._rows, self._last = 0, 0.0

    def stage(self, text: str) -> None:
        """Begin a stage."""
        self._state.beat(self._name, stage=text)

    def advance(self, rows: int) -> None:
        """Some rows more are done."""
        self._rows += rows
        if time.monotonic() - self._last > _OFTEN:
            self._last = time.monotonic()
            self._state.beat(self._name, rows=self._rows)


def _give_back() -> None:
    """Give the memory of a job back: a service lives for months, and the C library would keep it."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


Work = Callable[[Running], tuple[dict[str, Any], str]]
"""Returns the result, with a `verdict` if there is one, and a page if there is one."""


class Jobs:
    """One worker's jobs."""

    def __init__(self, state: State, waiting: int) -> None:
        self._state, self._most = state, waiting
        self._pool = ThreadPoolExecutor(1, "jobs")
        self._alive: set[str] = set()
        self._closing = threading.Event()
        threading.Thread(target=self._live, daemon=True, name="heartbeat").start()

    def start(self, kind: str, dataset: str, actor: str, work: Work) -> str:
        """Put a job in the queue; returns its id."""
        if len(self._alive) >= self._most:
            raise Refused(429, "Too many jobs are waiting already; wait until some are done.", Retry_After="30")
        name = self._state.add(kind, dataset, actor)
        self._alive.add(name)
        self._pool.submit(self._run, name, kind, work)
        return name

    def close(self) -> None:
        """Begin no more jobs."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, name: str, kind: str, work: Work) -> None:
        try:
            self._state.beat(name, state="running", stage="starting")
            result, report = work(Running(self._state, name))
            self._state.beat(name, state="done", stage=result.get("verdict", "done"), result=result, report=report)
        except SfumatoError as error:
            self._state.beat(name, state="failed", stage=str(error))
        except ODD as error:
            self._state.beat(name, state="failed", stage=odd(error))
        except Exception as error:
            structlog.get_logger().error("job failed", job=name, kind=kind, exc_info=error)
            self._state.beat(name, state="failed", stage="The service's log says why this job failed.")
        finally:
            self._alive.discard(name)
            _give_back()

    def _live(self) -> None:
        """Say that jobs are alive, even while they say nothing themselves."""
        while not self._closing.wait(_HEARTBEAT):
            for name in list(self._alive):
                try:
                    self._state.beat(name)
                except SfumatoError as error:
                    structlog.get_logger().error("heartbeat", reason=str(error))
