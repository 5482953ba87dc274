"""Object stores on this machine, by real servers that the tests start: S3, Google's and Azure's."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.debian import installed

_ACCOUNT = "devstoreaccount1"
_PUBLIC_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account of every such server, and its key, which its documentation prints."""


@contextlib.contextmanager
def bucket(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty bucket; where it is and how to enter is said where every client looks."""
    import fsspec

    patch = pytest.MonkeyPatch()
    with {"s3": _s3, "gs": _google, "az": _azure}[kind](patch, folder):
        fsspec.filesystem(kind).clear_instance_cache()
        if kind != "gs":  # whose server was started with it
            fsspec.filesystem(kind).mkdir("lake")
        yield f"{kind}://lake"
        fsspec.filesystem(kind).clear_instance_cache()
    patch.undo()


@contextlib.contextmanager
def _s3(patch: pytest.MonkeyPatch, _: Path) -> Iterator[None]:
    port = _free_port()
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1"}
    settings |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"}
    _set(patch, settings)
    # a process of its own: Delta Lake's client waits with Python's lock held
    with _running(port, str(Path(sys.executable).with_name("moto_server")), "-p", str(port)):
        yield


@contextlib.contextmanager
def _google(patch: pytest.MonkeyPatch, _: Path) -> Iterator[None]:
    port = _free_port()
    _set(patch, {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"})
    program = str(Path(sys.executable).with_name("gcp-storage-emulator"))
    with _running(port, program, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=lake"):
        yield


@contextlib.contextmanager
def _azure(patch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    parts = {"DefaultEndpointsProtocol": "http", "AccountName": _ACCOUNT, "AccountKey": _PUBLIC_KEY}
    parts["BlobEndpoint"] = f"{address}/{_ACCOUNT}"
    settings = {"AZURE_STORAGE_CONNECTION_STRING": ";".join(f"{name}={value}" for name, value in parts.items())}
    settings |= {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": address}  # for Delta Lake
    settings |= {"AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": _PUBLIC_KEY}
    _set(patch, settings)
    options = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--skipApiVersionCheck", "-l", str(folder))
    with _running(port, str(_azurite()), *options):
        yield


def _azurite() -> Path:
    """The server, which npm installs once for all runs."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sfumato-tests" / "azurite"
    program = home / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        home.mkdir(parents=True, exist_ok=True)
        npm = installed(
            lambda: next((p for p in ("/usr/bin/npm", "/usr/local/bin/npm") if Path(p).exists()), None), "npm"
        )
        subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent", "azurite"], cwd=home, check=True)
    return program


@contextlib.contextmanager
def _running(port: int, *command: str) -> Iterator[None]:
    """A server while it is needed, from when it answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield
        finally:
            server.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _set(patch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        patch.setenv(name, value)
