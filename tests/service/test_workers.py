"""Several server workers on PostgreSQL: identical bytes from all, and replacement of workers that die."""

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
from tests.serving import Service, children, kill_process, populated_vault, serving, sqlite_vault

import sfumato as sf
from sfumato.errors import ServiceError

COPY = "/api/v1/copies/ward"


@pytest.fixture
def vault(postgres: Server, tmp_path: Path) -> sf.Vault:
    (tmp_path / "site").mkdir()
    return populated_vault(Site("postgresql", tmp_path / "site", postgres), wards.table(1_500_000))


def test_a_worker_killed_during_a_download_loses_only_its_connections(vault: sf.Vault, tmp_path: Path) -> None:
    expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    with serving(vault, tmp_path, "--workers", "2") as service:
        service.tokens["clinic"] = vault.token("clinic")["token"]
        first = children(service.process.pid)
        assert len(first) == 2
        answered = _answered(service)
        assert answered == set(first)  # both workers answer
        with ThreadPoolExecutor(2) as pool:
            fetching = [
                pool.submit(service.remote("clinic").fetch, "ward", tmp_path / f"fetched{i}.parquet") for i in range(2)
            ]
            time.sleep(0.4)
            kill_process(first[0])
            for done in fetching:
                assert done.result()[0].read_bytes() == expected  # the client resumed the download
        for _ in range(100):
            if len(children(service.process.pid)) == 2:
                break
            time.sleep(0.1)
        later = children(service.process.pid)
        assert len(later) == 2
        assert first[0] not in later
        assert first[1] in later
        assert _answered(service) == set(later)
        assert any(line["event"] == "worker died" for line in service.lines())
    assert vault.verify().sound


def _answered(service: Service) -> set[int]:
    """The processes of the workers that answer requests."""
    found = set()
    for _ in range(60):
        with service.client("clinic") as client:
            found.add(client.get("/healthz").headers["x-request-id"])
    return {line["process"] for line in service.lines() if line.get("id") in found}


@pytest.mark.slow
def test_all_workers_send_identical_bytes(postgres: Server, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    vault = populated_vault(Site("postgresql", tmp_path / "site", postgres))
    with serving(vault, tmp_path, "--workers", "2") as service:
        token = vault.token("clinic")["token"]
        bodies: dict[str, bytes] = {}
        for _ in range(60):
            with service.client(token) as client:
                answer = client.get(COPY)
                bodies[answer.headers["x-request-id"]] = answer.content
        assert len({line["process"] for line in service.lines() if line.get("id") in bodies}) == 2
        assert len(set(bodies.values())) == 1
        owner = vault.token(scopes=["metrics"])["token"]
        with service.client(owner) as client:
            metrics = client.get("/metrics").text
        counted = [line for line in metrics.splitlines() if line.startswith('sfumato_copies_total{format="parquet"}')]
        assert [float(line.split()[-1]) for line in counted] == [60.0]  # summed over both workers


def test_sqlite_allows_only_one_worker(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    sf.Key.from_bytes(bytes(range(32))).save(tmp_path / "key")
    command = [sys.executable, "-m", "sfumato", "serve", vault.location, "--key-file", str(tmp_path / "key")]
    done = subprocess.run([*command, "--workers", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == ServiceError.exit_code
    assert "several workers need a vault in PostgreSQL" in done.stderr


def test_a_lost_database_gives_503_until_it_is_back(tmp_path: Path) -> None:
    from tests.postgres import running

    (tmp_path / "site").mkdir()
    with running() as server:
        vault = populated_vault(Site("postgresql", tmp_path / "site", server))
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


def test_the_service_stops_on_sigterm(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(1_000_000))
    with serving(vault, tmp_path) as service:
        with service.client(vault.token("clinic")["token"]) as client, client.stream("GET", COPY) as answer:
            next(answer.iter_raw())
        service.process.terminate()
        assert service.process.wait(20) in (0, -15)
    with pytest.raises(httpx2.HTTPError):
        httpx2.get(f"{service.url}/healthz")


@pytest.mark.slow
def test_a_copy_worker_that_dies_is_replaced_with_its_server_worker(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    expected = vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    with serving(vault, tmp_path) as service:
        service.tokens["clinic"] = vault.token("clinic")["token"]
        [worker] = children(service.process.pid)
        copy_workers = children(worker)
        assert copy_workers
        for process in copy_workers:
            kill_process(process)
        path, _ = service.remote("clinic").fetch("ward", tmp_path / "fetched.parquet")  # from the replacement
        assert path.read_bytes() == expected
        assert children(service.process.pid) != [worker]


def test_copy_workers_end_with_their_server_worker(tmp_path: Path) -> None:
    with serving(sqlite_vault(tmp_path), tmp_path) as service:
        [worker] = children(service.process.pid)
        copy_workers = children(worker)
        kill_process(worker)
        for _ in range(100):
            if not any(Path(f"/proc/{process}").exists() for process in copy_workers):
                break
            time.sleep(0.1)
        assert not any(Path(f"/proc/{process}").exists() for process in copy_workers)
