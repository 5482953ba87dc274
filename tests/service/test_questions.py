"""Questions of recipients in SQL: answered from their own copies, by processes that can do little else."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests import wards
from tests.serving import Service, serving, sqlite_vault

import sfumato as sf
from sfumato.mining import ask
from sfumato.service import question_process, questions
from sfumato.service.problems import HTTPProblem
from sfumato.service.web.recipient import example

QUESTION = "select region, avg(age) as age from copy group by region"
PATH = "/api/v1/copies/ward/answers"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("questions")
    with serving(sqlite_vault(folder, wards.table(3000)), folder) as found:
        found.tokens |= {"clinic": found.vault.token("clinic")["token"], "owner": found.vault.token()["token"]}
        yield found


def _ask(service: Service, question: str, who: str = "clinic") -> Any:
    with service.client(who) as client:
        return client.post(PATH, json={"question": question})


def test_the_answer_is_that_of_the_own_copy(service: Service, tmp_path: Path) -> None:
    found = _ask(service, QUESTION)
    assert found.status_code == 200, found.text
    body = found.json()
    with service.client("clinic") as client:
        (tmp_path / "copy.parquet").write_bytes(client.get("/api/v1/copies/ward?format=parquet").content)
    expected = ask(tmp_path / "copy.parquet", QUESTION).to_pylist()
    assert body["answer"] == expected
    table = wards.table(3000)
    age, region = table["age"].to_numpy(), np.array(table["region"].to_pylist())
    for row in body["answer"]:
        width = row["age_high"] - row["age_low"]
        assert abs(row["age"] - age[region == row["region"]].mean()) < width
    assert (body["method"], body["columns"]) == ("correction", ["region", "age"])
    assert "corrected for the noise" in body["how"]
    assert " to " in body["shown"][0][1]
    assert "Answered a question about ward version 1 from the copy of clinic" in _accesses(service.vault)


def test_a_profile_is_a_page_about_the_own_copy_that_can_do_nothing(service: Service) -> None:
    with service.client("clinic") as client, service.client("owner") as owner:
        found = client.get("/api/v1/copies/ward/profile")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith("text/html")
        policy = found.headers["content-security-policy"]
        assert "sandbox" in policy
        assert "script-src" not in policy
        assert "Statistical profile of ward" in found.text
        assert "income" in found.text
        assert owner.get("/api/v1/copies/ward/profile?recipient=clinic").status_code == 200
        assert client.get("/api/v1/copies/ward/profile?recipient=insurer").status_code == 403
        assert client.get("/api/v1/copies/ward/profile?level=0.99").status_code == 403
    assert "Profiled ward version 1 from the copy of clinic" in _accesses(service.vault)


def test_a_copy_is_checked_and_an_altered_or_a_foreign_one_is_refused(service: Service, tmp_path: Path) -> None:
    def check(content: bytes) -> Any:
        with service.client("clinic") as client:
            return client.post("/api/v1/checks", content=content)

    with service.client("clinic") as client:
        content = client.get("/api/v1/copies/ward?format=parquet").content
    found = check(content)
    assert found.status_code == 200, found.text
    assert found.json() == {"dataset": "ward", "version": 1, "recipient": "clinic", "rows": 3000}
    pq.write_table(
        wards.changed(pq.read_table(io.BytesIO(content)), "age", slice(1), 1.0), tmp_path / "altered.parquet"
    )
    altered = check((tmp_path / "altered.parquet").read_bytes())
    assert altered.status_code == 422
    assert "digest" in altered.json()["detail"] or "trust" in altered.json()["detail"]
    (tmp_path / "other").mkdir()
    other = sf.Vault.create(tmp_path / "other/vault", secret=sf.Key.from_bytes(bytes(range(1, 33))))
    other.add(wards.policy(), wards.table(3000))
    other.recipient("clinic")
    other.grant("clinic", "ward", "partner")
    foreign = check(other.release("clinic", "ward", tmp_path / "foreign.parquet")[0].read_bytes())
    assert foreign.status_code == 422
    assert "must be signed by this vault" in foreign.json()["detail"]
    assert "was altered, or is no copy" in check(b"id,age\n1,2\n").json()["detail"]
    for index in range(4, len(content), len(content) // 12):
        damaged = bytearray(content)
        damaged[index] ^= 255
        told = check(bytes(damaged))
        if told.status_code == 200:  # what the file says about itself, and no value, may be another
            assert pq.read_table(io.BytesIO(bytes(damaged))).equals(pq.read_table(io.BytesIO(content)))
        else:
            assert told.status_code == 422
            assert "time or memory" not in told.text
    assert check(bytes((16 << 20) + 1)).status_code == 413


def test_a_recipient_is_told_what_is_new_since_the_last_copy(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(500))
    token = vault.token("clinic")["token"]
    with serving(vault, tmp_path) as service, service.client() as client:
        client.headers["Authorization"] = f"Bearer {token}"

        def mine() -> tuple[Any, ...]:
            [grant] = client.get("/api/v1/me/grants").json()
            return grant["version"], grant["fetched_version"], grant["appended"]

        assert mine() == (1, None, False)
        client.get("/api/v1/copies/ward/manifest")
        client.get("/api/v1/copies/ward?format=parquet", headers={"Range": "bytes=0-99"})
        with service.client(vault.token()["token"]) as owner:
            owner.get("/api/v1/copies/ward?format=parquet&recipient=clinic")
        assert mine() == (1, None, False)  # none of these is a copy that the recipient has
        client.get("/api/v1/copies/ward?format=parquet")
        assert mine() == (1, 1, False)
        more = wards.table(600).slice(500)
        vault.append("ward", more)
        assert mine() == (2, 1, True)
        assert client.get("/api/v1/copies/ward?format=parquet&since=1").status_code == 200
        vault.update("ward", wards.changed(wards.table(600), "age", slice(3), 1.0))
        client.get("/api/v1/copies/ward?format=parquet")
        assert mine() == (3, 3, False)
        vault.update("ward", wards.changed(wards.table(600), "age", slice(6), 1.0))
        assert mine() == (4, 3, False)


def _accesses(vault: sf.Vault) -> str:
    from sfumato.ledger.reader import Query
    from sfumato.vault.messages import sentence

    return "\n".join(sentence(entry) for entry in vault.accesses(Query(last=1000)))


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("select * from copy", "single records"),
        ("select count(*) from read_csv('/etc/passwd')", ""),
        ("select content from read_text('/etc/passwd')", ""),
        ("copy copy to '/tmp/stolen.csv'", "one SELECT"),
        ("select 1; select 2", "several"),
        ("attach '/tmp/x.db'", ""),
        ("selec", "SELECT"),
        ("select region, count(*) as n, repeat('x', 3000000) as z from copy group by region", "characters"),
    ],
)
def test_what_is_no_question_about_the_copy_is_refused_with_the_reason(
    service: Service, question: str, reason: str
) -> None:
    before = _accesses(service.vault).count("Answered")
    found = _ask(service, question)
    assert found.status_code == 422, found.text
    assert _accesses(service.vault).count("Answered") == before  # what was not answered is not recorded as if it were
    assert reason in found.json()["detail"]
    assert "root:" not in found.text


def test_only_recipients_with_a_grant_ask_and_only_about_their_own_copies(service: Service) -> None:
    assert _ask(service, QUESTION, "owner").status_code == 403
    service.vault.recipient("stranger")
    token = service.vault.token("stranger")["token"]
    assert _ask(service, QUESTION, token).status_code == 404
    link = service.vault.token("clinic", scopes=["link"])["token"]
    assert _ask(service, QUESTION, link).status_code == 401
    with service.client("clinic") as client:
        assert client.post(PATH, json={"question": QUESTION, "level": "0.9"}).status_code == 403
        assert client.post(PATH, json={"question": ""}).status_code == 422


def _process(
    question: str, code: str = "", seconds: int = question_process.SECONDS
) -> subprocess.CompletedProcess[bytes]:
    """The process as the service starts it, with the code of an intruder who got into it."""
    scheme, key = wards.policy().fit(wards.table()), sf.Key.from_bytes(bytes(32))
    sink = io.BytesIO()
    pq.write_table(scheme.release(wards.table(), "partner", key), sink)
    main = f"from sfumato.service import question_process as process; process.SECONDS = {seconds}"
    change = f"\ndef answered(*_):\n    {code}\n    return {{}}\nprocess.TASKS['answer'] = answered\n" if code else ""
    return subprocess.run(
        [sys.executable, "-I", "-c", f"{main}{change}\nprocess.main()"],
        input=json.dumps(["answer", question]).encode() + b"\n" + sink.getvalue(),
        env={"PATH": os.defpath},
        capture_output=True,
        check=False,
        timeout=120,
    )


def test_a_process_that_takes_too_much_ends(tmp_path: Path) -> None:
    assert json.loads(_process(QUESTION).stdout)["columns"] == ["region", "age"]
    most = question_process.MEMORY
    refused = json.loads(_process(QUESTION, f"x = bytearray({2 * most})").stdout)["refused"]
    assert "2 GiB of memory" in refused
    written = _process(QUESTION, f"open('{tmp_path}/file', 'wb').write(bytes({100 << 20}))")
    assert written.returncode != 0
    assert b"File too large" in written.stderr


def test_an_endless_question_is_ended() -> None:
    started = time.monotonic()
    assert _process(QUESTION, "while True: pass", seconds=1).returncode < 0  # by the kernel
    assert time.monotonic() - started < 60


class _Copy:
    """A copy of so many chunks, which are no table."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def chunks(self) -> AsyncGenerator[bytes]:
        for _ in range(self.count):
            yield bytes(1 << 20)


def test_copies_that_are_too_large_and_answers_that_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = questions.Questions()

    def status(count: int) -> int:
        with pytest.raises(HTTPProblem) as refused:
            asyncio.run(asking.answer("recipient clinic", QUESTION, _Copy(count)))
        return refused.value.status_code

    assert status(257) == 413
    assert status(1) == 422  # it is no table: the process fails
    monkeypatch.setattr(questions, "_SECONDS", 0.01)
    assert status(1) == 422
    monkeypatch.setattr(questions, "_AT_ONCE", 0)
    assert status(1) == 503
    assert asking._asking == set()
    asking._asking.add("recipient clinic")
    assert status(1) == 429  # one question of a caller at a time
    asking.close()


def test_the_process_has_no_key_and_nothing_of_the_environment_of_the_service(service: Service) -> None:
    """While an answer is computed, its process is looked at from outside."""
    seen: list[str] = []

    def look() -> None:
        for _ in range(400):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    command = (folder / "cmdline").read_bytes()
                    if b"sfumato.service.question_process" in command:
                        seen.append((folder / "environ").read_bytes().decode())
                except OSError:
                    continue
            time.sleep(0.01)

    looking = threading.Thread(target=look)
    looking.start()
    assert _ask(service, QUESTION).status_code == 200
    looking.join()
    assert any("PATH=" in one for one in seen)
    assert not any("SFUMATO" in one for one in seen)


def test_the_example_asks_what_the_columns_allow() -> None:
    assert example({"n": "int64"}) == "SELECT count(*) AS records FROM copy"
    columns = {"id": "int64", "sex": "string", "age": "double"}
    assert example(columns) == 'SELECT "sex", count(*) AS records, avg("age") AS average FROM copy GROUP BY "sex"'
