"""Nonsense: by schemathesis from the OpenAPI document, and by mutation of right requests and tables."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.service.mutants import Mutants
from tests.serving import Service, handed_out, lone, serving

from sfumato.service.state import State

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


@pytest.fixture
def service(tmp_path: Path) -> object:
    vault = lone(tmp_path)
    with serving(vault, tmp_path) as found:
        found.tokens = handed_out(vault)
        yield found


def schemathesis(service: Service, token: str, examples: int, *options: str) -> str:
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{service.url}/api/v1/openapi.json"]
    command += ["--url", service.url, "--header", f"Authorization: Bearer {service.tokens[token]}", "--checks", CHECKS]
    command += ["--max-examples", str(examples), "--seed", "1", "--phases", "examples,coverage,fuzzing", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "\n".join(line[:300] for line in done.stdout.splitlines() if not re.fullmatch("0*", line))
    assert "Tested:" in said, said + done.stderr
    return said if done.returncode else ""


def test_the_document_is_kept_for_owners(service: Service) -> None:
    assert schemathesis(service, "owner", 4) == ""


def test_the_document_is_kept_for_recipients(service: Service) -> None:
    assert schemathesis(service, "clinic", 10, "--include-path-regex", "copies|/me") == ""


@pytest.mark.slow
@pytest.mark.parametrize("token", ["owner", "clinic"])
def test_the_document_is_kept_at_length(service: Service, token: str) -> None:
    assert schemathesis(service, token, 150) == ""


def test_schemathesis_would_find_a_fault(service: Service, tmp_path: Path) -> None:
    """The planted fault: a document that does not know that somebody may be refused."""
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
    command += ["--max-examples", "2", "--include-path", "/api/v1/me/grants"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Undocumented" in done.stdout


def mutate(service: Service, seed: list[int], requests: int, files: int) -> None:
    """So many mutants, by four clients at once: no 5xx, no hang, and no memory kept."""

    def hurl(turn: int, count: int) -> list[str]:
        mutants, found = Mutants([*seed, turn]), []
        with service.client(("owner", "clinic")[turn % 2]) as client:
            for i in range(count):
                if i % 20 == 0:
                    _raw(service.url, mutants.raw())
                said = mutants.request()
                try:
                    answer = client.request(said.pop("method"), said.pop("url"), **said, timeout=20)
                except (httpx2.InvalidURL, httpx2.LocalProtocolError, UnicodeEncodeError, ValueError):
                    continue  # the client itself refuses to send that
                if answer.status_code >= 500:
                    found.append(f"{answer.status_code} {said}")
        return found

    def upload(count: int) -> list[str]:
        mutants, found = Mutants([*seed, 99]), []
        with service.client("owner") as client:
            for _ in range(count):
                ending, content = mutants.file()
                name = client.post("/api/v1/uploads", json={"name": f"x.{ending}"}).json()["upload"]
                client.put(f"/api/v1/uploads/{name}/parts/1", content=content)
                said = {"upload": name, "dataset": "x"}
                answer = client.post("/api/v1/suggestions", json=said, timeout=30)
                client.delete(f"/api/v1/uploads/{name}")
                if answer.status_code >= 500:
                    found.append(f"{answer.status_code} {ending} {content[:80]!r}")
        return found

    def all_of(count: int, uploads: int) -> list[str]:
        with ThreadPoolExecutor(5) as pool:
            work = [pool.submit(hurl, turn, count // 4) for turn in range(4)] + [pool.submit(upload, uploads)]
            return [line for done in work for line in done.result()]

    assert all_of(requests // 5, files // 5) == []  # what is kept once, such as caches and pools, is there by then
    before = _idle(service)
    assert all_of(requests - requests // 5, files - files // 5) == []
    assert _idle(service) < 1.2 * before + 50_000
    assert service.process.poll() is None
    assert service.vault.verify().sound
    assert not [line for line in service.lines() if line["event"] == "unforeseen"]


def _idle(service: Service) -> int:
    """The memory that is kept when no work is left."""
    state = State(service.vault)
    while any(job.state in ("waiting", "running") for job in state.jobs()):
        time.sleep(0.2)
    return service.memory()


def _raw(url: str, content: bytes) -> None:
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        start = time.monotonic()
        try:
            while connection.recv(65536):
                pass
        except ConnectionError:
            pass
        assert time.monotonic() - start < 10


def test_mutants_are_answered(service: Service, seed: list[int]) -> None:
    mutate(service, seed, 1_500, 150)


@pytest.mark.slow
def test_many_mutants_are_answered(service: Service, seed: list[int]) -> None:
    mutate(service, seed, 90_000, 10_000)
