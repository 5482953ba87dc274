"""Long work and large tables: in the background, in parts, and nothing half done."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests import wards
from tests.conftest import Site
from tests.serving import Service, lone, populated, serving

import sfumato as sf
from sfumato.errors import SfumatoError, UnknownSubject
from sfumato.service import uploads
from sfumato.service.settings import Settings
from sfumato.service.state import JOBS, State


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    return populated(site)


def test_parts_make_a_table_in_any_order_and_again(vault: sf.Vault, tmp_path: Path) -> None:
    pq.write_table(wards.table(), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    upload = uploads.begin(vault.store, "t.parquet")
    pieces = [content[:1000], content[1000:5000], content[5000:]]
    for number in (3, 1, 2, 1):
        (tmp_path / "part").write_bytes(pieces[number - 1])
        uploads.put(vault.store, upload, number, tmp_path / "part")
    with uploads.table(vault.store, Settings(), upload, None) as path:
        assert path.read_bytes() == content
    (tmp_path / "part").write_bytes(b"another")
    uploads.put(vault.store, upload, 2, tmp_path / "part")
    with uploads.table(vault.store, Settings(), upload, None) as path:
        assert path.read_bytes() == pieces[0] + b"another" + pieces[2]
    assert vault.verify().sound
    uploads.drop(vault.store, upload)
    with pytest.raises(UnknownSubject, match="all its parts"), uploads.table(vault.store, Settings(), upload, None):
        pass


def test_a_missing_part_is_missed(vault: sf.Vault, tmp_path: Path) -> None:
    upload = uploads.begin(vault.store, "t.csv")
    (tmp_path / "part").write_bytes(b"a\n1\n")
    for number in (1, 3):
        uploads.put(vault.store, upload, number, tmp_path / "part")
    with pytest.raises(UnknownSubject, match="all its parts"), uploads.table(vault.store, Settings(), upload, None):
        pass


@pytest.mark.parametrize("name", ["../x", "x", "20260101-x.csv", "20260101-000000000000000000000000.csv/../../x"])
def test_an_upload_has_a_name_of_ours(vault: sf.Vault, tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownSubject, match="no such upload"):
        uploads.put(vault.store, name, 1, tmp_path)


def test_uploads_that_were_given_up_are_swept(vault: sf.Vault, tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"a\n1\n")
    old = "20200101-" + "0" * 24 + ".csv"
    uploads.put(vault.store, old, 1, tmp_path / "part")
    fresh = uploads.begin(vault.store, "t.csv")
    uploads.put(vault.store, fresh, 1, tmp_path / "part")
    uploads.begin(vault.store, "t.csv")
    assert [name.split("/")[1] for name in vault.store.names("uploads")] == [fresh]


def test_a_name_says_the_format(small: Service) -> None:
    with small.client("owner") as client:
        answer = client.post("/api/v1/uploads", json={"name": "table.xlsx"})
    assert answer.status_code == 422
    assert ".parquet" in answer.json()["detail"]


def test_a_job_tells_how_far_it_is(tmp_path: Path) -> None:
    vault = lone(tmp_path)
    with serving(vault, tmp_path) as service:
        service.tokens["owner"] = vault.token()["token"]
        seen: list[str] = []
        service.remote("owner").audit("ward", stage=seen.append)
        assert {"making the copies", "drawing the report", "done"} & set(seen)
        with service.client("owner") as client:
            [job] = client.get("/api/v1/jobs", params={"kind": "audit"}).json()
            page = client.get(f"/api/v1/jobs/{job['id']}/report")
            assert client.get(f"/api/v1/jobs/{job['id']}").json()["result"]["passed"] is True
            assert client.get(f"/api/v1/jobs/{'0' * 16}/report").status_code == 404
        assert "sandbox" in page.headers["content-security-policy"]
        assert (job["stage"], job["result"]) == ("no alarm", {})


def test_a_worker_that_dies_loses_its_jobs_and_nothing_else(tmp_path: Path) -> None:
    vault = lone(tmp_path, wards.table(50_000))
    state = State(vault)
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        job = client.post("/api/v1/datasets/ward/audits", json={}).json()["job"]
        while state.job(job).state != "running":  # type: ignore[union-attr]
            time.sleep(0.05)
        service.process.kill()
        service.process.wait()
    assert vault.verify().sound
    with vault.ledger.database.transaction(writes=True) as connection:
        connection.execute(JOBS.update().values(beat="2020-01-01T00:00:00.000000+00:00"))
    found = state.job(job)
    assert found is not None
    assert found.state == "lost"


def test_too_many_jobs_wait(tmp_path: Path) -> None:
    vault = lone(tmp_path, wards.table(50_000))
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        statuses = [client.post("/api/v1/datasets/ward/audits", json={}).status_code for _ in range(20)]
    assert statuses == [202] * 16 + [429] * 4


def test_a_failed_job_says_why(small: Service) -> None:
    with pytest.raises(SfumatoError, match="diagnosis"):
        small.remote("owner").update("ward", wards.table().drop(["diagnosis"]))
