"""Fuzz tests of the API: by schemathesis from the OpenAPI document, and by mutation of valid requests and tables."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.service.mutants import Mutants
from tests.serving import Service, issue_tokens, serving, sqlite_vault

from sfumato.service.state import State

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture
def service(tmp_path: Path) -> object:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path) as found:
        found.tokens = issue_tokens(vault)
        yield found


def schemathesis(service: Service, token: str, examples: int, *options: str) -> str:
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/api/v1/openapi.json"]
    command += ["--url", service.url, "--header", f"Authorization: Bearer {service.tokens[token]}", "--checks", CHECKS]
    command += ["--request-timeout", "60"]  # a question takes seconds
    command += ["--max-examples", str(examples), "--seed", "1", "--phases", "examples,coverage,fuzzing", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = "\n".join(line[:300] for line in done.stdout.splitlines() if not re.fullmatch("0*", line))
    assert "Tested:" in output, output + done.stderr
    return output if done.returncode else ""


def test_responses_to_owners_conform_to_the_openapi_document(service: Service) -> None:
    assert schemathesis(service, "owner", 2) == ""


def test_responses_to_recipients_conform_to_the_openapi_document(service: Service) -> None:
    assert schemathesis(service, "clinic", 3, "--include-path-regex", "copies|/me") == ""


@pytest.mark.slow
@pytest.mark.parametrize("token", ["owner", "clinic"])
def test_many_responses_conform_to_the_openapi_document(service: Service, token: str) -> None:
    assert schemathesis(service, token, 150) == ""


def test_schemathesis_finds_a_planted_fault(service: Service, tmp_path: Path) -> None:
    """The planted fault is an OpenAPI document without the 403 response of an endpoint."""
    document = httpx2.get(f"{service.url}/api/v1/openapi.json").json()
    del document["paths"]["/api/v1/me/grants"]["get"]["responses"]["403"]
    (tmp_path / "document.json").write_text(json.dumps(document))
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", str(tmp_path / "document.json")]
    command += [
        "--url",
        service.url,
        "--header",
        f"Authorization: Bearer {service.tokens['owner']}",
        "--checks",
        CHECKS,
    ]
    command += ["--request-timeout", "60"]  # a question takes seconds
    command += ["--max-examples", "2", "--include-path", "/api/v1/me/grants"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Undocumented" in done.stdout


def mutate(service: Service, seed: list[int], requests: int, files: int) -> None:
    """Send mutants from four clients at once: no 5xx response, no hang, and no memory leak."""
    aborted: list[dict[str, Any]] = []

    def send_requests(client_number: int, count: int) -> list[str]:
        mutants, found = Mutants([*seed, client_number]), []
        with service.client(("owner", "clinic")[client_number % 2]) as client:
            for i in range(count):
                if i % 20 == 0:
                    _raw(service.url, mutants.raw())
                request = mutants.request()
                try:
                    answer = client.request(request.pop("method"), request.pop("url"), **request, timeout=20)
                except (httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeEncodeError, ValueError):
                    continue  # the client library refuses to send it
                except (httpx2.ReadError, httpx2.RemoteProtocolError):
                    aborted.append(request)  # a download, whose grant another mutant changed
                    continue
                if answer.status_code >= 500 and "retry-after" not in answer.headers:  # a busy machine may say: later
                    found.append(f"{answer.status_code} {request}")
        return found

    def send_files(count: int) -> list[str]:
        mutants, found = Mutants([*seed, 99]), []
        with service.client("owner") as client:
            for _ in range(count):
                suffix, content = mutants.file()
                name = client.post("/api/v1/uploads", json={"name": f"x.{suffix}"}).json()["upload"]
                client.put(f"/api/v1/uploads/{name}/parts/1", content=content)
                body = {"upload": name, "dataset": "x"}
                answer = client.post("/api/v1/suggestions", json=body, timeout=30)
                client.delete(f"/api/v1/uploads/{name}")
                if answer.status_code >= 500:
                    found.append(f"{answer.status_code} {suffix} {content[:80]!r}")
        return found

    def send_all(count: int, uploads: int) -> list[str]:
        with ThreadPoolExecutor(5) as pool:
            work = [pool.submit(send_requests, i, count // 4) for i in range(4)] + [pool.submit(send_files, uploads)]
            return [line for done in work for line in done.result()]

    assert send_all(requests // 5, files // 5) == []  # fills caches and pools
    before = _idle_memory(service)
    assert send_all(requests - requests // 5, files - files // 5) == []
    assert _idle_memory(service) < 1.2 * before + 50_000
    assert service.process.poll() is None
    assert service.vault.verify().sound
    lines = service.lines()
    assert not [line for line in lines if line["event"] == "unhandled exception"]
    refused = [line["level"] for line in lines if line["event"] == "download aborted"]
    assert "error" not in refused
    assert len(aborted) <= len(refused)


def _idle_memory(service: Service) -> int:
    """Resident memory when all jobs are done."""
    state = State(service.vault)
    while any(job.state in ("waiting", "running") for job in state.jobs()):
        time.sleep(0.2)
    return service.memory()


def _raw(url: str, content: bytes) -> None:
    target = urlsplit(url)
    with socket.create_connection((target.hostname, target.port), timeout=10) as connection:
        start = time.monotonic()
        with contextlib.suppress(OSError):  # the service may close before it has read everything
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        assert time.monotonic() - start < 10


def test_mutants_get_a_response(service: Service, seed: list[int]) -> None:
    mutate(service, seed, 1_000, 100)


@pytest.mark.slow
def test_many_mutants_get_a_response(service: Service, seed: list[int]) -> None:
    mutate(service, seed, 90_000, 10_000)
