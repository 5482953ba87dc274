"""Background jobs and uploads in parts: progress, failures, lost workers and missing parts."""

from __future__ import annotations

import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
import xlsxwriter
from tests import wards
from tests.conftest import Site
from tests.schema import JOBS, tables_of
from tests.serving import (
    PASSWORD,
    Service,
    children,
    kill_process,
    populated_vault,
    process_tree,
    serving,
    sqlite_vault,
    wait_until_gone,
    wait_until_ready,
)

import sfumato as sf
from sfumato.errors import SfumatoError, TamperedError, UnknownSubject
from sfumato.keys.encrypted_file import Spill
from sfumato.ledger.ledger import Origin
from sfumato.ledger.reader import Query
from sfumato.release.certificate import check_report
from sfumato.service import uploads
from sfumato.service.api.schemas import TableSource
from sfumato.service.jobs import Job, JobProcess, Result, Task
from sfumato.service.settings import Settings
from sfumato.service.state import State
from sfumato.tables.file_options import FileOptions
from sfumato.tables.readers import TableFile
from sfumato.tables.source import Source
from sfumato.vault.store import FolderStore


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    return populated_vault(site)


def _put(vault: sf.Vault, upload: str, number: int, content: bytes) -> None:
    with Spill() as spill:
        spill.writer.write(content)
        uploads.put_part(vault.store, upload, number, spill)


def _files(vault: sf.Vault) -> list[Path]:
    assert isinstance(vault.store.files, FolderStore)
    return [path for path in vault.store.files.root.rglob("*") if path.is_file()]


def test_parts_can_arrive_in_any_order_and_be_replaced(vault: sf.Vault, tmp_path: Path) -> None:
    pq.write_table(wards.table(), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    upload = uploads.create(vault.store, "t.parquet")
    pieces = [content[:1000], content[1000:5000], content[5000:]]
    for number in (3, 1, 2, 1):
        _put(vault, upload, number, pieces[number - 1])
    with uploads.open_table(vault.store, Settings(), TableSource(upload=upload)) as table:
        assert isinstance(table, TableFile)
        assert table.open().read() == content
        assert Source.of(table).schema.names == wards.table().column_names
    assert content[5000:5100] not in b"".join(path.read_bytes() for path in _files(vault))
    _put(vault, upload, 2, b"another")
    with uploads.open_table(vault.store, Settings(), TableSource(upload=upload)) as table:
        assert isinstance(table, TableFile)
        assert table.open().read() == pieces[0] + b"another" + pieces[2]
    assert vault.verify().sound
    uploads.delete(vault.store, upload)
    with (
        pytest.raises(UnknownSubject, match="all its parts"),
        uploads.open_table(vault.store, Settings(), TableSource(upload=upload)),
    ):
        pass


def test_a_missing_part_is_detected(vault: sf.Vault) -> None:
    upload = uploads.create(vault.store, "t.csv")
    for number in (1, 3):
        _put(vault, upload, number, b"a\n1\n")
    with (
        pytest.raises(UnknownSubject, match="all its parts"),
        uploads.open_table(vault.store, Settings(), TableSource(upload=upload)),
    ):
        pass


@pytest.mark.parametrize("name", ["../x", "x", "20260101-x.csv", "20260101-000000000000000000000000.csv/../../x"])
def test_upload_ids_are_validated(vault: sf.Vault, name: str) -> None:
    with pytest.raises(UnknownSubject, match="no such upload"):
        _put(vault, name, 1, b"")


def test_expired_uploads_are_deleted(vault: sf.Vault) -> None:
    old = "20200101-" + "0" * 24 + ".csv"
    _put(vault, old, 1, b"a\n1\n")
    fresh = uploads.create(vault.store, "t.csv")
    _put(vault, fresh, 1, b"a\n1\n")
    uploads.create(vault.store, "t.csv")
    assert [name.split("/")[1] for name in vault.store.names("uploads")] == [fresh]


def test_the_suffix_determines_the_format(sqlite_service: Service) -> None:
    with sqlite_service.client("owner") as client:
        answer = client.post("/api/v1/uploads", json={"name": "table.docx"})
    assert answer.status_code == 422
    assert ".parquet" in answer.json()["detail"]


def test_a_workbook_is_uploaded_and_a_copy_of_it_downloaded(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(str(tmp_path / "clinic.xlsx")) as book:
        sheet, _ = book.add_worksheet("Patients"), book.add_worksheet("Notes").write_string(0, 0, "x")
        for row, cells in enumerate([("id", "age"), *((i, 20 + i % 50) for i in range(600))]):
            sheet.write_row(row, 0, cells)
    policy = sf.Policy.suggest(tmp_path / "clinic.xlsx", dataset="sheet", file=FileOptions(sheet="Patients"))
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path) as service:
        service.tokens["owner"] = vault.token()["token"]
        remote = service.remote("owner")
        remote.add(policy, tmp_path / "clinic.xlsx")
        remote.grant("clinic", "sheet", "partner")
        remote.release("clinic", "sheet", tmp_path / "copy.xlsx")
    copy = sf.read_copy(tmp_path / "copy.xlsx")
    assert (copy.column_names, copy.num_rows) == (["age"], 600)


def test_a_job_reports_its_progress(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path) as service:
        service.tokens["owner"] = vault.token()["token"]
        stages: list[str] = []
        service.remote("owner").audit("ward", stage=stages.append)
        assert {"making the copies", "drawing the report", "done"} & set(stages)
        with service.client("owner") as client:
            [job] = client.get("/api/v1/jobs", params={"kind": "audit"}).json()
            page = client.get(f"/api/v1/jobs/{job['id']}/report")
            assert client.get(f"/api/v1/jobs/{job['id']}").json()["result"]["passed"] is True
            assert client.get(f"/api/v1/jobs/{'0' * 16}/report").status_code == 404
        assert "sandbox" in page.headers["content-security-policy"]
        assert job["stage"].startswith("The column at the highest risk: ")
        assert job["result"] == {}


def test_a_disclosed_column_is_named_first_wherever_the_verdict_is_shown(sqlite_service: Service) -> None:
    vault = sqlite_service.vault
    vault.add(sf.Policy.loads(wards.POLICY.replace('"ward"', '"bare"').replace("0.8", "0.97")), wards.table(seed=78))
    found = sqlite_service.remote("owner").audit("bare", attacks=["llse"])
    assert not found.passed
    assert found.summary()["verdict"].startswith("DISCLOSED: an attack recovers more than 90% of 2 columns: ")
    with sqlite_service.client("owner") as client:
        [job] = client.get("/api/v1/jobs", params={"dataset": "bare"}).json()
    with sqlite_service.client() as client:
        client.post("/signin", data={"name": "anna", "password": PASSWORD})
        pages = [client.get(path).text for path in (f"/console/jobs/{job['id']}", "/console/datasets/bare/levels")]
        pages.append(client.get(f"/api/v1/jobs/{job['id']}/report").text)
    for page in (*pages, found.text()):
        assert "DISCLOSED: an attack recovers more than 90% of 2 columns" in page
        assert "No alarm" not in page
        assert "Sound" not in page
    assert "<pre" not in pages[0]
    assert '<p class="verdict bad"><strong>At risk.</strong> DISCLOSED' in pages[0]


def test_a_pack_is_made_and_decided_on_through_the_service(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    with serving(vault, tmp_path) as service:
        service.tokens["owner"] = vault.token()["token"]
        remote = service.remote("owner")
        with pytest.raises(SfumatoError, match="a report must end in"):
            remote.audit("ward", report=tmp_path / "pack.docx")
        for name in ("pack.pdf", "pack.html"):
            remote.audit("ward", attacks=["llse"], rows=200, report=tmp_path / name)
            assert check_report(tmp_path / name, vault.public_key) == vault.public_key
        assert (tmp_path / "pack.pdf").read_bytes().startswith(b"%PDF")
        entry = remote.approve("ward", "Ada", role="DPO", approved=False)
        assert (entry.action, entry.body["officer"]) == ("rejected", "Ada")
        with service.client("owner") as client:
            jobs = client.get("/api/v1/jobs", params={"kind": "audit"}).json()
            found = client.get(f"/api/v1/jobs/{jobs[0]['id']}").json()
            assert found["has_pack"]
            assert "pack" not in found["result"]
            sent = client.get(f"/api/v1/jobs/{jobs[0]['id']}/pack/content")
            assert sent.content == (tmp_path / "pack.html").read_bytes()
            assert sent.headers["content-disposition"].startswith("attachment")


def test_a_cancelled_job_stops_and_has_no_result(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(50_000))
    state = State(vault)
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        first, second = (client.post("/api/v1/datasets/ward/audits", json={}).json()["job"] for _ in range(2))
        assert client.delete(f"/api/v1/jobs/{second}").json()["state"] == "cancelled"  # while it waits
        while state.job(first).state != "running":  # type: ignore[union-attr]
            time.sleep(0.05)
        assert client.delete(f"/api/v1/jobs/{first}").json()["state"] == "cancelled"
        third = client.post("/api/v1/datasets/ward/audits", json={"attacks": ["udr"], "rows": 500}).json()["job"]
        while state.job(third).state not in ("done", "failed"):  # type: ignore[union-attr]
            time.sleep(0.05)
        assert [state.job(job).state for job in (first, second, third)] == [  # type: ignore[union-attr]
            *("cancelled", "cancelled", "done")
        ]
        assert client.delete(f"/api/v1/jobs/{third}").json()["state"] == "done"
    assert state.report(first) == ""
    assert [entry.body["state"] for entry in vault.accesses(Query(action="audited"))] == ["within limits"]


def test_a_job_cancelled_when_its_work_was_done_keeps_its_pack(tmp_path: Path) -> None:
    state = State(sqlite_vault(tmp_path))
    done, stopped = (state.add_job("audit", "ward", "owner anna") for _ in range(2))
    pack = {"format": "html", "content": "", "signature": ""}
    for job, end in ((done, "done"), (stopped, "failed")):
        state.cancel(job)
        state.update_job(job, state=end, result={"pack": pack})
    assert (state.job(done).state, state.pack(done)) == ("done", pack)  # type: ignore[union-attr]
    assert (state.job(stopped).state, state.pack(stopped)) == ("cancelled", {})  # type: ignore[union-attr]


def test_a_worker_that_dies_loses_only_its_jobs(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(50_000))
    state = State(vault)
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        job = client.post("/api/v1/datasets/ward/audits", json={}).json()["job"]
        while state.job(job).state != "running":  # type: ignore[union-attr]
            time.sleep(0.05)
        processes = process_tree(service.process.pid)
        service.process.kill()
        service.process.wait()
        for process in processes:  # all of them end with it, that of the job too
            wait_until_gone(process)
    assert vault.verify().sound
    with tables_of(vault.ledger.database) as connection:
        connection.execute(JOBS.update().values(beat="2020-01-01T00:00:00.000000+00:00"))
    found = state.job(job)
    assert found is not None
    assert found.state == "lost"


def test_a_job_whose_process_is_killed_fails_and_the_service_goes_on(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(50_000))
    state = State(vault)
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        before = process_tree(service.process.pid)
        job = client.post("/api/v1/datasets/ward/audits", json={}).json()["job"]
        while not (own := set(process_tree(service.process.pid)) - set(before)):
            time.sleep(0.02)
        [process] = own
        assert os.getpriority(os.PRIO_PROCESS, process) > os.getpriority(os.PRIO_PROCESS, before[1])
        kill_process(process)
        while state.job(job).state in ("waiting", "running"):  # type: ignore[union-attr]
            time.sleep(0.05)
        assert "ended, perhaps for want of memory" in state.job(job).stage  # type: ignore[union-attr]
        assert set(process_tree(service.process.pid)) == set(before)
        second = client.post("/api/v1/datasets/ward/audits", json={"attacks": ["udr"], "rows": 500}).json()["job"]
        while state.job(second).state not in ("done", "failed"):  # type: ignore[union-attr]
            time.sleep(0.05)
        assert state.job(second).state == "done"  # type: ignore[union-attr]
    assert vault.verify().sound


def _endless(_: Job) -> Result:
    time.sleep(600)
    return {}, ""


def _short(_: Job) -> Result:
    time.sleep(0.5)
    return {}, ""


def test_a_job_without_progress_is_killed_and_no_other(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path)
    state, process = State(vault), JobProcess(vault.pooled, Settings())
    first, second = (state.add_job("audit", "ward", "owner anna") for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(process.run, Task(first, "audit", "owner anna", Origin("owner anna"), _endless, ()))
        while state.job(first).state != "running":  # type: ignore[union-attr]
            time.sleep(0.02)
        process.kill(second)
        time.sleep(0.3)
        assert not running.done()
        process.kill(first)
        assert running.result(30) is False
        process.kill(first)  # it has ended, and the next one is not meant
        assert process.run(Task(second, "audit", "owner anna", Origin("owner anna"), _short, ()))
    assert state.job(second).state == "done"  # type: ignore[union-attr]
    process.close()


def test_a_service_whose_job_process_is_killed_is_replaced(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(500))
    state = State(vault)
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        [worker] = children(service.process.pid)
        supervisor = max(children(worker))  # forked last
        kill_process(supervisor)
        with contextlib.suppress(httpx2.HTTPError):
            client.post("/api/v1/datasets/ward/audits", json={})
        wait_until_gone(worker)
        wait_until_ready(service)
        job = client.post("/api/v1/datasets/ward/audits", json={"attacks": ["udr"], "rows": 500}).json()["job"]
        while state.job(job).state not in ("done", "failed"):  # type: ignore[union-attr]
            time.sleep(0.05)
        assert state.job(job).state == "done"  # type: ignore[union-attr]


def test_results_of_jobs_are_encrypted_and_erased_with_their_dataset(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table())
    state = State(vault)
    jobs = {dataset: state.add_job("audit", dataset, "owner anna") for dataset in ("ward", "", "not-added-yet")}
    jobs["another"] = state.add_job("audit", "", "owner anna")
    for job in jobs.values():
        state.update_job(job, state="done", result={"text": "a marker"}, report="<p>a marker</p>")
    with tables_of(vault.ledger.database) as connection:
        stored = connection.execute(sa.select(JOBS)).all()
    assert "marker" not in str(stored)
    for job in jobs.values():
        found = state.job(job)
        assert found is not None
        assert (found.result, found.has_report) == ({"text": "a marker"}, True)
        assert state.report(job) == "<p>a marker</p>"
    texts = {row.id: row.result for row in stored}
    with tables_of(vault.ledger.database) as connection:  # exchanged
        connection.execute(JOBS.update().where(JOBS.c.id == jobs[""]).values(result=texts[jobs["another"]]))
    with pytest.raises(TamperedError, match="results of background jobs"):
        state.job(jobs[""])
    vault.erase("ward")
    erased = state.job(jobs["ward"])
    assert erased is not None
    assert (erased.result, state.report(jobs["ward"])) == ({}, "")


def test_too_many_queued_jobs_are_refused(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(50_000))
    with serving(vault, tmp_path) as service, service.client(vault.token()["token"]) as client:
        statuses = [client.post("/api/v1/datasets/ward/audits", json={}).status_code for _ in range(20)]
    assert statuses == [202] * 16 + [429] * 4


def test_a_failed_job_reports_the_reason(sqlite_service: Service) -> None:
    with pytest.raises(SfumatoError, match="diagnosis"):
        sqlite_service.remote("owner").update("ward", wards.table().drop(["diagnosis"]))
