"""Commands in separate processes that need not import everything again: they are forked from one that has."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from subprocess import TimeoutExpired

_PRELOADED = [
    "tests.forking",
    "sfumato.cli.serve",
    "sfumato.service.server",
    "sfumato.service.deployment_check",
    "sfumato.service.worker_pool",
    "sfumato.survey.surveys",
    "fastapi",
    "httptools",
    "jinja2",
    "uvicorn",
    "uvloop",
]
"""What a service imports, except `prometheus_client`, which looks for its folder when it is imported."""

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(_PRELOADED)


class ForkedCommand:
    """A running `sfumato` command with its output in a file; the methods are those of `subprocess.Popen`."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self._process = _FORKING.Process(target=_run, args=(arguments, str(log), str(Path.cwd()), dict(os.environ)))
        self._process.start()
        self.pid = int(self._process.pid or 0)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired("sfumato", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], log: str, folder: str, environment: dict[str, str]) -> None:
    from sfumato.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with Path(log).open("ab") as out:
        for number in (1, 2):
            os.dup2(out.fileno(), number)
    sys.argv = ["sfumato", *arguments]
    main()
