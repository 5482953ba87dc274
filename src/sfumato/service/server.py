"""HTTP server: a supervisor with several server workers on one socket, each with its own pool of copy workers."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import structlog

from sfumato.engines.local import cores
from sfumato.errors import ServiceError
from sfumato.service import logs
from sfumato.service.settings import METRICS_DIRECTORY_VARIABLE, Settings
from sfumato.vault import Vault

_SWITCH_INTERVAL = 0.0005
"""Seconds that a thread may hold the interpreter while others wait: a small request waits for several such turns."""

_EXIT_FATAL = 1
"""Exit code of a worker that could not start; a replacement could not start either."""

OpenVault = Callable[[], Vault]
"""Opens the vault in the process that uses it."""


def serve(open_vault: OpenVault, settings: Settings, host: str, port: int, workers: int) -> None:
    """Serve a vault over HTTP until the process is stopped."""
    logs.configure()
    with _listen(host, port) as listener:
        _Supervisor(open_vault, settings, listener, workers).run()


def _run_worker(open_vault: OpenVault, settings: Settings, listener: socket.socket, copy_workers: int) -> None:
    import uvicorn  # noqa: PLC0415 - it imports a whole event loop

    from sfumato.service.app import application  # noqa: PLC0415
    from sfumato.service.http_protocol import BoundedHttpProtocol, raise_file_limit  # noqa: PLC0415
    from sfumato.service.jobs import JobProcess  # noqa: PLC0415
    from sfumato.service.worker_pool import WorkerPool  # noqa: PLC0415

    raise_file_limit()
    pool = WorkerPool(open_vault, copy_workers)  # they fork, so this process must not have threads or connections yet
    app = application(open_vault(), settings, pool, JobProcess(open_vault, settings))
    config = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        proxy_headers=False,
        ssl_certfile=None if settings.tls is None else settings.tls[0],
        ssl_keyfile=None if settings.tls is None else settings.tls[1],
    )
    sys.setswitchinterval(_SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()  # these objects live as long as the process: scanning them again and again would delay requests
    structlog.get_logger().info("listening", address=listener.getsockname()[:2], process=os.getpid())
    uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        yield listener
    except OSError as error:
        raise ServiceError(
            f"the address {host}:{port} must be free, and could not be used: {error.strerror}; choose another one"
        ) from None
    finally:
        listener.close()


class _Supervisor:
    """The parent of all server workers, which only starts and replaces them."""

    def __init__(self, open_vault: OpenVault, settings: Settings, listener: socket.socket, workers: int) -> None:
        self._open_vault, self._settings, self._listener = open_vault, settings, listener
        self._count, self._alive, self._stopping = workers, set[int](), False
        self._lifeline = os.pipe()
        """A pipe on which nothing is written: a worker that reads its end knows that this process has ended."""

    def run(self) -> None:
        """Keep the given number of workers alive until the process is stopped."""
        metrics = tempfile.mkdtemp(prefix="sfumato-metrics-")
        os.environ[METRICS_DIRECTORY_VARIABLE] = metrics  # for one worker too: its replacement continues the counts
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            while len(self._alive) < self._count and not self._stopping:
                self._alive.add(self._start_worker())
            while self._alive:
                process, status = os.wait()
                self._alive.discard(process)
                if not self._stopping:
                    _log_exit(process, status)
                    if os.waitstatus_to_exitcode(status) == _EXIT_FATAL:
                        self._stop()
                    else:
                        self._alive.add(self._start_worker())
        finally:
            shutil.rmtree(metrics, ignore_errors=True)

    def _start_worker(self) -> int:
        process = os.fork()
        if process:
            return process
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.close(self._lifeline[1])
            threading.Thread(target=_stop_with_parent, args=(self._lifeline[0],), daemon=True, name="parent").start()
            _run_worker(self._open_vault, self._settings, self._listener, max(1, cores() // self._count))
        except BaseException as error:  # a child process never returns into its parent's code
            print(f"sfumato: {error}", file=sys.stderr, flush=True)
            os._exit(_EXIT_FATAL)
        os._exit(0)

    def _stop(self, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:  # noqa: ARG002
        self._stopping = True
        for process in self._alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _stop_with_parent(lifeline: int) -> None:
    """Terminate this process when its parent, at the other end of the pipe, has ended."""
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _log_exit(process: int, status: int) -> None:
    structlog.get_logger().error("worker died", process=process, status=os.waitstatus_to_exitcode(status))
