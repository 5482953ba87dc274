"""Background jobs: work that takes longer than a request, run one at a time with progress and heartbeats.

Each job has a process of its own, with a lower scheduling priority: pages are answered while it computes, its memory
is given back when it ends, and if it is killed the service goes on. These processes are forked from one that does
nothing else, since a process with threads must not be forked.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import structlog

from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Origin
from sfumato.service.problems import TABLE_ERRORS, HTTPProblem, table_error_message
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.vault import Vault

_PROGRESS_INTERVAL = 0.3
"""Seconds between two updates of a job's progress."""

_HEARTBEAT_INTERVAL = 10.0
"""Seconds between two heartbeats of the running jobs."""


_NICENESS = 4
"""Increment of the nice value of jobs: requests get the processor first, and jobs what is left, in some measure."""

_DIED = "The process of this job ended, perhaps for want of memory; try it with fewer rows, or on the command line."


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


@dataclass(frozen=True)
class Job:
    """What a job works with."""

    vault: Vault
    """The vault, in which the one who started the job is the actor."""
    settings: Settings
    progress: JobProgress


Result = tuple[dict[str, Any], str]
"""The result of a job, with an optional `verdict`, and the report as HTML, or an empty string."""

Work = Callable[..., Result]
"""The function of a job, of a module, since another process calls it: it gets the job and some arguments."""


@dataclass(frozen=True)
class Task:
    """A job as it is sent to the process that runs it."""

    job: str
    kind: str
    actor: str
    origin: Origin
    work: Work
    arguments: tuple[Any, ...]


class Runs(Protocol):
    """What runs tasks."""

    def run(self, task: Task) -> bool:
        """Run a task; whether it came to an end."""

    def kill(self, job: str) -> None:
        """Stop the task of a job, whose `run` returns false, if it still runs."""

    def close(self) -> None:
        """Stop what runs, and run no more."""


class JobProcess:
    """The process of which those of all jobs are children, as its server worker sees it."""

    def __init__(self, open_vault: Callable[[], Vault], settings: Settings) -> None:
        forking = multiprocessing.get_context("fork")
        self._connection, child_end = forking.Pipe()
        forking.Process(target=_supervise, args=(child_end, self._connection, open_vault, settings)).start()
        child_end.close()
        self._sending, self._closing = threading.Lock(), False

    def run(self, task: Task) -> bool:
        """Run a task; whether its process came to its end."""
        try:
            with self._sending:
                self._connection.send(task)
            return bool(self._connection.recv())
        except (EOFError, OSError):
            if not self._closing:
                os._exit(70)  # no job can run any more: the whole server worker is replaced
            return False

    def kill(self, job: str) -> None:
        """End the process of a job, if it still runs."""
        with self._sending, contextlib.suppress(OSError):
            self._connection.send(job)

    def close(self) -> None:
        """Let the process end, and the one of the running job."""
        self._closing = True
        self._connection.close()


class JobRunner:
    """Runs the jobs of one server worker, one after the other."""

    def __init__(self, state: State, max_queued: int, process: Runs) -> None:
        self._state, self._max_queued, self._process = state, max_queued, process
        self._pool = ThreadPoolExecutor(1, "jobs")
        self._active: set[str] = set()
        self._running = ""
        self._closing = threading.Event()
        threading.Thread(target=self._send_heartbeats, daemon=True, name="heartbeat").start()

    def start(self, kind: str, dataset: str, by: Vault, work: Work, *arguments: Any) -> str:
        """Queue a job that somebody starts, as whom the vault acts; returns its id."""
        if len(self._active) >= self._max_queued:
            raise HTTPProblem(
                429,
                f"At most {self._max_queued} jobs can be queued; wait until some are done.",
                Retry_After="30",
            )
        ledger = by.ledger
        job = self._state.add_job(kind, dataset, ledger.actor)
        self._active.add(job)
        self._pool.submit(self._run, Task(job, kind, ledger.actor, ledger.origin, work, arguments))
        return job

    def close(self) -> None:
        """Cancel all queued jobs, and start no more."""
        self._closing.set()
        self._process.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self, task: Task) -> None:
        self._running = task.job
        try:
            if self._process.run(task) or self._closing.is_set():
                return
            found = self._state.job(task.job)
            if found is not None and found.state in ("waiting", "running"):
                structlog.get_logger().error("job died", job=task.job, kind=task.kind)
                self._state.update_job(task.job, state="failed", stage=_DIED)
        finally:
            self._running = ""
            self._active.discard(task.job)

    def _send_heartbeats(self) -> None:
        """Update the time stamps of all active jobs; one that was cancelled and goes on without progress is killed."""
        cancelled = ""
        while not self._closing.wait(_HEARTBEAT_INTERVAL):
            for job in list(self._active):
                try:
                    self._state.update_job(job)
                    if job == self._running and self._state.is_cancelled(job):
                        if job == cancelled:
                            self._process.kill(job)
                        cancelled = job
                except SfumatoError as error:
                    structlog.get_logger().error("heartbeat failed", reason=str(error))


def execute(task: Task, vault: Vault, settings: Settings) -> None:
    """Do the work of a task, and record its result."""
    state = State(vault)
    try:
        state.update_job(task.job, state="running", stage="starting")
        progress = JobProgress(state, task.job)
        progress.stage("starting")
        result, report = task.work(Job(vault.acting_as(task.actor, task.origin), settings, progress), *task.arguments)
        stage = result.get("verdict", "done")
        state.update_job(task.job, state="done", stage=stage, result=result, report=report)
    except JobCancelled:
        structlog.get_logger().info("job cancelled", job=task.job, kind=task.kind)
    except SfumatoError as error:
        state.update_job(task.job, state="failed", stage=str(error))
    except TABLE_ERRORS as error:
        state.update_job(task.job, state="failed", stage=table_error_message(error))
    except Exception as error:
        structlog.get_logger().error("job failed", job=task.job, kind=task.kind, exc_info=error)
        state.update_job(task.job, state="failed", stage="This job failed; the service's log has the reason.")


def _supervise(
    connection: Connection, parent_end: Connection, open_vault: Callable[[], Vault], settings: Settings
) -> None:
    """Main loop of the process of which those of all jobs are children; it ends with its server worker."""
    parent_end.close()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # it ends when its server worker closes the connection
    os.nice(_NICENESS)
    forking = multiprocessing.get_context("fork")
    while True:
        try:
            task = connection.recv()
            if not isinstance(task, Task):  # a job to be killed, which has ended
                continue
            child = forking.Process(target=_in_child, args=(task, open_vault, settings))
            try:
                child.start()
            except OSError:  # there is no memory for another process
                connection.send(False)
                continue
            try:
                while child.sentinel not in wait([child.sentinel, connection]):
                    if connection.recv() == task.job:
                        child.kill()
            except (EOFError, OSError):  # the server worker ended
                child.kill()
                raise
            child.join()
            connection.send(child.exitcode == 0)
        except (EOFError, OSError):
            os._exit(0)


def _in_child(task: Task, open_vault: Callable[[], Vault], settings: Settings) -> None:
    execute(task, open_vault(), settings)
