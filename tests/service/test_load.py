"""The service under hostile load: unfinished requests, anonymous requests and malicious uploads."""

from __future__ import annotations

import contextlib
import io
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.serving import PASSWORD, Service, serving, sqlite_vault

_HALF_OPEN = 2000


def _address(service: Service) -> tuple[str, int]:
    host, port = service.url.removeprefix("http://").split(":")
    return host, int(port)


def _bomb() -> bytes:
    """A Parquet file of a few kilobytes that holds gigabytes of text."""
    batch = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, np.int8)), pa.array(["x" * 200]))
    out = io.BytesIO()
    pq.write_table(pa.table({"text": pa.chunked_array([batch] * 10)}), out, compression="zstd")
    return out.getvalue()


def _send_bombs(service: Service, stop: threading.Event) -> None:
    bomb = _bomb()
    with contextlib.suppress(httpx2.HTTPError), service.client("owner") as client:
        while not stop.is_set():
            upload = client.post("/api/v1/uploads", json={"name": "bomb.parquet"}).json()["upload"]
            client.put(f"/api/v1/uploads/{upload}/parts/1", content=bomb)
            client.post("/api/v1/suggestions", json={"upload": upload, "dataset": "bomb"})


def _send_anonymous_requests(service: Service, stop: threading.Event) -> None:
    with contextlib.suppress(httpx2.HTTPError), service.client() as client:
        while not stop.wait(0.1):
            client.get("/api/v1/me")


def _slowest_answer(service: Service) -> float:
    """The longest time, in seconds, for the health check and for a correct sign-in."""
    slowest = 0.0
    for _ in range(8):
        begun = time.monotonic()
        assert httpx2.get(f"{service.url}/healthz", timeout=10).status_code == 200
        healthy = time.monotonic()
        form = {"name": "anna", "password": PASSWORD}
        assert httpx2.post(f"{service.url}/signin", data=form, timeout=10).status_code == 303
        slowest = max(slowest, healthy - begun, time.monotonic() - healthy)
        time.sleep(0.1)
    return slowest


@pytest.fixture
def many_files() -> Iterator[int]:
    """As many open files as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_service_answers_under_hostile_load(tmp_path: Path, many_files: int) -> None:
    """Within a second; on a machine that is busy with other things, within thrice the time without the load."""
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path, "--tries", "20") as service, contextlib.ExitStack() as stack:
        service.tokens["owner"] = vault.token()["token"]
        quiet = _slowest_answer(service)
        first = _connected_again(stack, service)
        begun = time.monotonic()
        stop = threading.Event()
        attackers = [
            threading.Thread(target=attack, args=(service, stop)) for attack in (_send_bombs, _send_anonymous_requests)
        ]
        for attacker in attackers:
            attacker.start()
            stack.callback(attacker.join)
        stack.callback(stop.set)
        for i in range(min(_HALF_OPEN, many_files // 4)):
            connection = stack.enter_context(socket.create_connection(_address(service)))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n"[: i % 32])
        assert _slowest_answer(service) < max(1.0, 3 * quiet)
        with contextlib.suppress(ConnectionResetError):
            assert first.recv(1000) == b""
        assert time.monotonic() - begun > 9


def _connected_again(stack: contextlib.ExitStack, service: Service) -> socket.socket:
    """A connection with an unfinished second request."""
    whole, answer = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b""
    connection = stack.enter_context(socket.create_connection(_address(service), timeout=30))
    connection.sendall(whole)
    while not answer.endswith(b'{"status":"alive"}'):
        answer += connection.recv(1000)
    connection.sendall(whole[:20])
    return connection


def test_the_longest_waiting_connections_are_closed_first(tmp_path: Path) -> None:
    """A worker with 128 open files accepts 64 connections; 200 unfinished requests leave room for others."""
    vault = sqlite_vault(tmp_path)
    limited = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))  # noqa: E731
    with serving(vault, tmp_path, preexec_fn=limited) as service, contextlib.ExitStack() as stack:
        for _ in range(200):
            connection = stack.enter_context(socket.create_connection(_address(service)))
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /healthz")
        assert httpx2.get(f"{service.url}/readyz", timeout=10).status_code == 200
