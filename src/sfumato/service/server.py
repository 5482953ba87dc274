"""Running a service: workers on one socket, of which a dead one is replaced, each with processes that make copies."""

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
from sfumato.service.settings import SHARED, Settings
from sfumato.vault import Vault

_TURN = 0.0005
"""Seconds that a thread may keep Python to itself while others wait: a small request has to wait for several turns."""

_HOPELESS = 1
"""How a worker ends that could not do its work: another one could not either."""

Opener = Callable[[], Vault]
"""Opens the vault, in the process that uses it."""


def serve(opener: Opener, settings: Settings, host: str, port: int, workers: int) -> None:
    """Answer requests until somebody stops it."""
    logs.configure()
    with _listening(host, port) as listener:
        _Crew(opener, settings, listener, workers).work()


def _answer(opener: Opener, settings: Settings, listener: socket.socket, makers: int) -> None:
    import uvicorn  # noqa: PLC0415 - it starts an event loop's worth of modules

    from sfumato.service.app import application  # noqa: PLC0415
    from sfumato.service.worker_pool import Maker  # noqa: PLC0415

    crew = [Maker(opener) for _ in range(makers)]  # before anything here has threads or connections
    app = application(opener(), settings, crew)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        proxy_headers=False,
    )
    sys.setswitchinterval(_TURN)
    gc.collect()
    gc.freeze()  # what is there now stays: looking through it again and again would make requests wait
    structlog.get_logger().info("listening", address=listener.getsockname()[:2], process=os.getpid())
    uvicorn.Server(config).run(sockets=[listener])


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        yield listener
    except OSError as error:
        raise ServiceError(f"the address {host}:{port} could not be used: {error.strerror}; choose another") from None
    finally:
        listener.close()


class _Crew:
    """The parent of some workers: it does nothing but watch them."""

    def __init__(self, opener: Opener, settings: Settings, listener: socket.socket, workers: int) -> None:
        self._opener, self._settings, self._listener = opener, settings, listener
        self._count, self._alive, self._stopping = workers, set[int](), False
        self._ends = os.pipe()
        """What workers wait at: as long as this process lives, nothing comes, not even an end."""

    def work(self) -> None:
        """Keep so many workers alive until it is told to stop."""
        figures = tempfile.mkdtemp(prefix="sfumato-metrics-")
        os.environ[SHARED] = figures  # also for one: the one that replaces it goes on counting
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        try:
            while len(self._alive) < self._count and not self._stopping:
                self._alive.add(self._begin())
            while self._alive:
                process, status = os.wait()
                self._alive.discard(process)
                if not self._stopping:
                    _say_dead(process, status)
                    if os.waitstatus_to_exitcode(status) == _HOPELESS:
                        self._stop()
                    else:
                        self._alive.add(self._begin())
        finally:
            shutil.rmtree(figures, ignore_errors=True)

    def _begin(self) -> int:
        process = os.fork()
        if process:
            return process
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.close(self._ends[1])
            threading.Thread(target=_end_with, args=(self._ends[0],), daemon=True, name="parent").start()
            _answer(self._opener, self._settings, self._listener, max(1, cores() // self._count))
        except BaseException as error:  # a child never returns into its parent's code
            print(f"sfumato: {error}", file=sys.stderr, flush=True)
            os._exit(_HOPELESS)
        os._exit(0)

    def _stop(self, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:  # noqa: ARG002
        self._stopping = True
        for process in self._alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _end_with(wire: int) -> None:
    """End when the process at the other end of a wire does."""
    os.read(wire, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _say_dead(process: int, status: int) -> None:
    structlog.get_logger().error("a worker died", process=process, status=os.waitstatus_to_exitcode(status))
