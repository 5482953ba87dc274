"""Background jobs: work that takes longer than a request, run one at a time with progress and heartbeats."""

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
from sfumato.service.problems import TABLE_ERRORS, HTTPProblem, table_error_message
from sfumato.service.state import State

_PROGRESS_INTERVAL = 0.3
"""Seconds between two updates of a job's progress."""

_HEARTBEAT_INTERVAL = 10.0
"""Seconds between two heartbeats of the running jobs."""


class JobCancelled(Exception):
    """Somebody cancelled the job."""


class JobProgress:
    """Reports the progress of a running job."""

    def __init__(self, state: State, job: str) -> None:
        self._state, self._job = state, job
        self._rows, self._last = 0, 0.0

    def stage(self, text: str) -> None:
        """Enter the next stage of the job, unless it was cancelled."""
        self._check()
        self._state.update_job(self._job, stage=text)

    def advance(self, rows: int) -> None:
        """Add to the number of processed rows."""
        self._rows += rows
        if time.monotonic() - self._last > _PROGRESS_INTERVAL:
            self._last = time.monotonic()
            self._check()
            self._state.update_job(self._job, rows=self._rows)

    def _check(self) -> None:
        if self._state.is_cancelled(self._job):
            raise JobCancelled


def _release_memory() -> None:
    """Return a job's memory to the operating system, which the C library of a long-running process would keep."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


Work = Callable[[JobProgress], tuple[dict[str, Any], str]]
"""The function of a job: returns the result, with an optional `verdict`, and the report as HTML, or an empty string."""


class JobRunner:
    """Runs the jobs of one server worker, one after the other."""

    def __init__(self, state: State, max_queued: int) -> None:
        self._state, self._max_queued = state, max_queued
        self._pool = ThreadPoolExecutor(1, "jobs")
        self._active: set[str] = set()
        self._closing = threading.Event()
        threading.Thread(target=self._send_heartbeats, daemon=True, name="heartbeat").start()

    def start(self, kind: str, dataset: str, actor: str, work: Work) -> str:
        """Queue a job; returns its id."""
        if len(self._active) >= self._max_queued:
            raise HTTPProblem(
                429,
                f"At most {self._max_queued} jobs can be queued; wait until some are done.",
                Retry_After="30",
            )
        job = self._state.add_job(kind, dataset, actor)
        self._active.add(job)
        self._pool.submit(self._run, job, kind, work)
        return job

    def close(self) -> None:
        """Cancel all queued jobs, and start no more."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, job: str, kind: str, work: Work) -> None:
        try:
            self._state.update_job(job, state="running", stage="starting")
            progress = JobProgress(self._state, job)
            progress.stage("starting")
            result, report = work(progress)
            stage = result.get("verdict", "done")
            self._state.update_job(job, state="done", stage=stage, result=result, report=report)
        except JobCancelled:
            structlog.get_logger().info("job cancelled", job=job, kind=kind)
        except SfumatoError as error:
            self._state.update_job(job, state="failed", stage=str(error))
        except TABLE_ERRORS as error:
            self._state.update_job(job, state="failed", stage=table_error_message(error))
        except Exception as error:
            structlog.get_logger().error("job failed", job=job, kind=kind, exc_info=error)
            self._state.update_job(job, state="failed", stage="This job failed; the service's log has the reason.")
        finally:
            self._active.discard(job)
            _release_memory()

    def _send_heartbeats(self) -> None:
        """Update the time stamps of all active jobs, including those that report no progress for a while."""
        while not self._closing.wait(_HEARTBEAT_INTERVAL):
            for job in list(self._active):
                try:
                    self._state.update_job(job)
                except SfumatoError as error:
                    structlog.get_logger().error("heartbeat failed", reason=str(error))
