"""Several workers on PostgreSQL: equal bytes from all of them, and a dead one costs its connections only."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from tests import wards
from tests.conftest import Site
from tests.postgres import Server
from tests.serving import Service, children, killed, lone, populated, serving

import sfumato as sf

COPY = "/api/v1/copies/ward"


@pytest.fixture
def vault(postgres: Server, tmp_path: Path) -> sf.Vault:
    (tmp_path / "site").mkdir()
    return populated(Site("postgresql", tmp_path / "site", postgres), wards.table(1_500_000))


def test_a_worker_killed_while_it_sends_loses_that_connection_only(vault: sf.Vault, tmp_path: Path) -> None:
    expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    with serving(vault, tmp_path, "--workers", "2") as service:
        service.tokens["clinic"] = vault.token("clinic")["token"]
        first = children(service.process.pid)
        assert len(first) == 2
        answered = _answered(service)
        assert answered == set(first)  # both of them answer
        with ThreadPoolExecutor(2) as pool:
            fetching = [
                pool.submit(service.remote("clinic").fetch, "ward", tmp_path / f"fetched{i}.parquet") for i in range(2)
            ]
            time.sleep(0.4)
            killed(first[0])
            for done in fetching:
                assert done.result()[0].read_bytes() == expected  # the client took up what broke off
        for _ in range(100):
            if len(children(service.process.pid)) == 2:
                break
            time.sleep(0.1)
        later = children(service.process.pid)
        assert len(later) == 2
        assert first[0] not in later
        assert first[1] in later
        assert _answered(service) == set(later)
        assert any(line["event"] == "a worker died" for line in service.lines())
    assert vault.verify().sound


def _answered(service: Service) -> set[int]:
    """Which workers answer."""
    found = set()
    for _ in range(60):
        with service.client("clinic") as client:
            found.add(client.get("/healthz").headers["x-request-id"])
    return {line["process"] for line in service.lines() if line.get("id") in found}


def test_both_workers_send_equal_bytes(postgres: Server, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    vault = populated(Site("postgresql", tmp_path / "site", postgres))
    with serving(vault, tmp_path, "--workers", "2") as service:
        token = vault.token("clinic")["token"]
        seen: dict[str, bytes] = {}
        for _ in range(60):
            with service.client(token) as client:
                answer = client.get(COPY)
                seen[answer.headers["x-request-id"]] = answer.content
        assert len({line["process"] for line in service.lines() if line.get("id") in seen}) == 2
        assert len(set(seen.values())) == 1
        owner = vault.token(scopes=["metrics"])["token"]
        with service.client(owner) as client:
            figures = client.get("/metrics").text
        counted = [line for line in figures.splitlines() if line.startswith('sfumato_copies_total{format="parquet"}')]
        assert [float(line.split()[-1]) for line in counted] == [60.0]  # of both workers together


def test_sqlite_is_for_one_worker(tmp_path: Path) -> None:
    vault = lone(tmp_path)
    sf.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    command = [sys.executable, "-m", "sfumato.cli", "serve", vault.location, "--key-file", str(tmp_path / "key")]
    done = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "several workers need a vault in PostgreSQL" in done.stderr


def test_a_service_without_its_database_says_so_and_comes_back(tmp_path: Path) -> None:
    from tests.postgres import running

    (tmp_path / "site").mkdir()
    with running() as server:
        vault = populated(Site("postgresql", tmp_path / "site", server))
        token = vault.token("clinic")["token"]
        with serving(vault, tmp_path) as service, service.client(token) as client:
            assert client.get(COPY).status_code == 200
            server.stop()
            for path in ("/readyz", COPY, "/api/v1/me"):
                answer = client.get(path)
                assert (path, answer.status_code) == (path, 503)
                assert "127.0.0.1" not in answer.text
            assert client.get("/healthz").status_code == 200
            server.start()
            assert client.get(COPY).status_code == 200


def test_it_stops_when_it_is_told_to(tmp_path: Path) -> None:
    vault = lone(tmp_path, wards.table(1_000_000))
    with serving(vault, tmp_path) as service:
        with service.client(vault.token("clinic")["token"]) as client, client.stream("GET", COPY) as answer:
            next(answer.iter_raw())
        service.process.terminate()
        assert service.process.wait(20) in (0, -15)
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(f"{service.url}/healthz")


def test_a_maker_that_dies_is_replaced_with_its_worker(tmp_path: Path) -> None:
    vault = lone(tmp_path)
    expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    with serving(vault, tmp_path) as service:
        service.tokens["clinic"] = vault.token("clinic")["token"]
        [worker] = children(service.process.pid)
        makers = children(worker)
        assert makers
        for maker in makers:
            killed(maker)
        path, _ = service.remote("clinic").fetch("ward", tmp_path / "fetched.parquet")  # by the one that comes after
        assert path.read_bytes() == expected
        assert children(service.process.pid) != [worker]


def test_makers_end_with_their_worker(tmp_path: Path) -> None:
    with serving(lone(tmp_path), tmp_path) as service:
        [worker] = children(service.process.pid)
        makers = children(worker)
        killed(worker)
        for _ in range(100):
            if not any(Path(f"/proc/{maker}").exists() for maker in makers):
                break
            time.sleep(0.1)
        assert not any(Path(f"/proc/{maker}").exists() for maker in makers)
