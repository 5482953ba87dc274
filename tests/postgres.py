"""A real PostgreSQL for the tests: installed if need be, started on loopback, stopped at the end."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from tests.debian import installed

_SERVER = "nobody"
"""The user that runs the server where the tests run as root, whom PostgreSQL refuses."""


class Server:
    """One server with its own data; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._bin, self._data = _programs(), folder / "data"
        self._as = ["setpriv", f"--reuid={_SERVER}", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, _SERVER)
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync")
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def start(self) -> None:
        options = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
        command = [*self._as, str(self._bin / "postgres"), "-D", str(self._data), "-p", str(self.port), *options]
        with (self._data.parent / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "-c", "max_connections=100"], stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        for _ in range(300):
            with contextlib.suppress(psycopg.OperationalError), self._connect():
                return
            if self._process.poll() is not None:
                raise RuntimeError((self._data.parent / "log").read_text())
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not start within 15 seconds")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; with SIGKILL all its processes die at once."""
        if self._process is None:
            return
        if how == signal.SIGKILL:
            os.killpg(self._process.pid, how)
        else:
            self._process.send_signal(how)
        self._process.wait(30)

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._databases += 1
        name = f"vault{self._databases}"
        with self._connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://owner@127.0.0.1:{self.port}/{name}"

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(f"postgresql://owner@127.0.0.1:{self.port}/postgres", autocommit=True)

    def _run(self, program: str, *words: str) -> None:
        subprocess.run([*self._as, str(self._bin / program), *words], check=True, capture_output=True, cwd="/")


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A server for as long as it is needed."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Where PostgreSQL's programs are; it is installed if they are nowhere."""
    return installed(_find, "postgresql")


def _find() -> Path | None:
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/opt/homebrew/bin")]
    if on_path := shutil.which("initdb"):
        folders.insert(0, Path(on_path).parent)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def free_port() -> int:
    """A free port below those that the system gives to clients: one of them could take it before a restart."""
    while True:
        port = 12_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
