"""Downloads of copies: the bytes of a local release in every format, byte ranges, ETags and resumed downloads."""

from __future__ import annotations

import contextlib
import gzip
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from tests import wards
from tests.serving import Service, process_tree, serving, sqlite_vault

import sfumato as sf
from sfumato.errors import GrantError, ServiceError, UnknownSubject
from sfumato.ledger.reader import Query
from sfumato.release.certificate import check
from sfumato.vault.delivery import MAX_LEVELS

COPY = "/api/v1/copies/ward"


def test_downloads_equal_local_releases(service: Service, tmp_path: Path) -> None:
    for form, name in (("parquet", "x.parquet"), ("csv", "x.csv")):
        path, manifest = service.vault.release("clinic", "ward", tmp_path / name)
        with service.client("clinic") as client:
            assert client.get(COPY, params={"format": form}).content == path.read_bytes()
            assert sf.Manifest.loads(client.get(f"{COPY}/manifest").text) == manifest


def test_the_client_writes_the_files_of_a_local_release(service: Service, tmp_path: Path) -> None:
    for ending in ("parquet", "csv", "arrow"):
        ours, _ = service.vault.release("clinic", "ward", tmp_path / f"local.{ending}")
        theirs, manifest = service.remote("clinic").fetch("ward", tmp_path / f"fetched.{ending}")
        assert theirs.read_bytes() == ours.read_bytes()
        assert check(str(theirs), service.vault.public_key) == manifest
    table = service.remote("clinic").read("ward")
    assert table.equals(sf.read_copy(tmp_path / "local.parquet"))
    assert sf.Manifest.of(table) == manifest


def test_an_owner_downloads_the_copy_of_a_recipient(service: Service, tmp_path: Path) -> None:
    path, manifest = service.remote("owner").release("clinic", "ward", tmp_path / "copy.parquet")
    assert manifest.recipient == "clinic"
    assert path.read_bytes() == service.vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()


def test_rows_since_a_version_are_downloaded(sqlite_service: Service, tmp_path: Path) -> None:
    """The file of a local release of the appended rows, for recipients and owners; recorded once."""
    vault, rng = sqlite_service.vault, np.random.default_rng(8)
    rows = [pa.table({"n": np.arange(100) + 1000 * i, "v": rng.normal(size=100)}) for i in range(3)]
    vault.add(sf.Policy.loads('dataset = "daily"\n[levels]\na = 0.5\n[columns]\nn = "id"\nv = "gaussian"'), rows[0])
    vault.grant("clinic", "daily", "a")
    for more in rows[1:]:
        vault.append("daily", more)
    ours, expected = vault.release("clinic", "daily", tmp_path / "local.csv", since=1)
    assert (expected.rows, expected.since, expected.version) == (200, 1, 3)
    assert "which rows came when" in expected.limits[-1]
    theirs, manifest = sqlite_service.remote("clinic").fetch("daily", tmp_path / "fetched.csv", since=1)
    assert theirs.read_bytes() == ours.read_bytes()
    assert manifest == expected
    with pytest.raises(GrantError, match="you received no copy of it"):  # it would tell which rows came last
        sqlite_service.remote("clinic").fetch("daily", tmp_path / "last.csv", since=2)
    recorded = [one.body.get("since") for one in vault.log(Query(dataset="daily")) if one.kind == "release"]
    assert set(recorded) == {1}
    delivered = [one.body.get("since") for one in vault.accesses(Query(dataset="daily"))]
    assert 1 in delivered
    with pytest.raises(GrantError, match="an earlier one"):
        sqlite_service.remote("clinic").fetch("daily", tmp_path / "none.csv", since=3)


def test_content_negotiation(sqlite_service: Service) -> None:
    media = {
        "*/*": "application/vnd.apache.parquet",
        "text/csv": "text/csv; charset=utf-8",
        "text/csv;q=0.5, application/gzip": "application/gzip",
        "application/vnd.apache.arrow.stream, text/csv;q=0.1": "application/vnd.apache.arrow.stream",
        "text/html, */*;q=0.1": "application/vnd.apache.parquet",
    }
    with sqlite_service.client("clinic") as client:
        for accept, kind in media.items():
            assert client.get(COPY, headers={"Accept": accept}).headers["content-type"] == kind
        assert client.get(COPY, headers={"Accept": "image/png"}).status_code == 406
        assert client.get(COPY, params={"format": "xlsx"}).status_code == 422
        plain = client.get(COPY, params={"format": "csv"}).content
        assert gzip.decompress(client.get(COPY, params={"format": "csv.gz"}).content) == plain


def test_an_arrow_stream_ends_with_its_manifest(sqlite_service: Service) -> None:
    with sqlite_service.client("clinic") as client:
        reader = pa.ipc.open_stream(client.get(COPY, params={"format": "arrows"}).content)
        batches = list(reader.iter_batches_with_custom_metadata())
        manifest = sf.Manifest.loads(client.get(f"{COPY}/manifest").text)
    assert sf.Manifest.loads(batches[-1][1][b"sfumato"]) == manifest
    assert sum(batch.num_rows for batch, _ in batches) == manifest.rows


def test_byte_ranges(service: Service) -> None:
    with service.client("insurer") as client:
        first = client.get(COPY, headers={"Range": "bytes=10-19"})  # before the size of the copy is known
        complete = client.get(COPY)
        size = len(complete.content)
        assert complete.headers["content-length"] == str(size)
        assert (first.status_code, first.content) == (206, complete.content[10:20])
        assert first.headers["content-range"] == f"bytes 10-19/{size}"
        for header, part in {
            "bytes=0-0": complete.content[:1],
            f"bytes={size - 5}-": complete.content[-5:],
            "bytes=-7": complete.content[-7:],
            f"bytes=5-{10 * size}": complete.content[5:],
            f"bytes=-{10 * size}": complete.content,
        }.items():
            answer = client.get(COPY, headers={"Range": header})
            assert (header, answer.status_code, answer.content) == (header, 206, part)
            assert int(answer.headers["content-length"]) == len(part)
        for header in (f"bytes={size}-", "bytes=9-3", "bytes=-0"):
            answer = client.get(COPY, headers={"Range": header})
            assert (header, answer.status_code) == (header, 416)
            assert answer.headers["content-range"] == f"bytes */{size}"
        for header in ("bytes=", "bytes=-", "rows=1-2", "bytes=1-2,5-6", "bytes=x-"):  # invalid, so ignored
            assert client.get(COPY, headers={"Range": header}).content == complete.content


def test_every_delivery_is_in_the_access_log_with_token_and_address(service: Service) -> None:
    """The ledger has one pair of entries for a copy; the access log has each download of it, and each part."""
    before = len(service.vault.accesses(Query(recipient="clinic", last=100_000)))
    with service.client("clinic") as client:
        tag = client.get("/api/v1/copies/ward?format=csv").headers["etag"]
        client.get("/api/v1/copies/ward?format=csv", headers={"Range": "bytes=5-9"})
        client.get("/api/v1/copies/ward?format=csv", headers={"If-None-Match": tag})  # nothing is sent
        client.head("/api/v1/copies/ward?format=csv")
        client.get("/api/v1/copies/ward?format=csv&level=0.3")
        client.get("/api/v1/copies/ward/manifest")
    records = service.vault.accesses(Query(recipient="clinic", last=100_000))[before:]
    assert [one.body["bytes"] for one in records] == [None, [5, 9], None, None]
    assert [one.body["format"] for one in records] == ["csv", "csv", "csv", "manifest"]
    assert [round(one.body["fidelity"], 1) for one in records] == [0.5, 0.5, 0.3, 0.5]
    assert {one.actor for one in records} <= {one.credential for one in service.vault.tokens("clinic")}
    assert {one.body["address"] for one in records} == {"127.0.0.1"}
    assert all(one.last_use for one in service.vault.tokens("clinic") if one.credential == records[0].actor)
    with service.remote("owner") as remote:
        assert [one.number for one in remote.accesses(Query(recipient="clinic", last=4))] == [
            one.number for one in records
        ]
    assert service.vault.verify(files=False).sound


def test_etags(service: Service, tmp_path: Path) -> None:
    with service.client("clinic") as client:
        answer = client.get(COPY)
        tag = answer.headers["etag"]
        assert client.head(COPY).headers["etag"] == tag
        assert int(client.head(COPY).headers["content-length"]) == len(answer.content)
        assert client.get(COPY, headers={"If-None-Match": tag}).status_code == 304
        assert client.get(COPY, headers={"If-None-Match": f'"other", W/{tag}'}).status_code == 304
        assert client.get(COPY, headers={"If-None-Match": '"other"'}).status_code == 200
        assert client.get(COPY, headers={"If-None-Match": "*"}).status_code == 304
        assert client.get(COPY, headers={"If-None-Match": '"*"'}).status_code == 200
        assert client.get(COPY, headers={"Range": "bytes=3-", "If-Range": tag}).status_code == 206
        assert client.get(COPY, headers={"Range": "bytes=3-", "If-Range": '"other"'}).status_code == 200
        others = {client.head(COPY, params=params).headers["etag"] for params in ({"format": "csv"}, {"level": "0.3"})}
    with service.client("insurer") as client:
        others.add(client.head(COPY).headers["etag"])
    assert tag not in others
    assert len(others) == 3


def test_a_recipient_may_request_a_lower_level(service: Service, tmp_path: Path) -> None:
    remote = service.remote("clinic")
    path, manifest = remote.fetch("ward", tmp_path / "low.parquet", level=0.3)
    local, same = service.vault.release("clinic", "ward", tmp_path / "local.parquet", level=0.3)
    assert path.read_bytes() == local.read_bytes()
    assert manifest == same
    assert manifest.fidelity <= 0.3 == manifest.requested_fidelity
    assert manifest.level is None
    assert remote.manifest("ward", level=0.3) == manifest
    assert remote.manifest("ward", level="partner") == remote.manifest("ward")
    for level in (0.51, "internal", "public", "nonsense", 2, "nan"):
        with pytest.raises((GrantError, ServiceError, sf.SfumatoError)):
            remote.fetch("ward", tmp_path / "high.parquet", level=level)
    assert not (tmp_path / "high.parquet").exists()


def test_the_number_of_levels_that_a_recipient_may_request_is_limited(sqlite_service: Service) -> None:
    vault = sqlite_service.vault
    vault.recipient("curious")
    vault.grant("curious", "ward", "partner")
    token = vault.token("curious")["token"]
    with sqlite_service.client(token) as client:
        statuses = [client.get(COPY, params={"level": f"0.{i}"}).status_code for i in range(101, 101 + MAX_LEVELS + 2)]
        assert statuses == [200] * MAX_LEVELS + [403] * 2
        entries = len(vault.log(Query(kind="release", recipient="curious")))
        refused = client.get(COPY, params={"level": "0.4"})
        assert "request one of these" in refused.json()["detail"]
        assert client.get(COPY, params={"level": "0.101"}).status_code == 200  # received before
        assert len(vault.log(Query(kind="release", recipient="curious"))) == entries
        assert client.get(COPY).status_code == 200  # the level of the grant
    assert entries == 2 * MAX_LEVELS


def test_a_download_is_recorded_before_its_first_byte(tmp_path: Path) -> None:
    vault = sqlite_vault(tmp_path, wards.table(400_000))
    with serving(vault, tmp_path) as service:
        token = vault.token("clinic")["token"]
        with service.client(token) as client, client.stream("GET", COPY, params={"format": "csv"}) as answer:
            next(answer.iter_raw())
            [began] = vault.log(Query(kind="release"))
        assert (began.action, began.body["digest"], began.body["rows"]) == ("began", "", 400_000)
        time.sleep(1.5)  # the client has disconnected: nothing more is generated or recorded
        assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began"]
        busy = _ticks(service)
        time.sleep(1)
        assert _ticks(service) - busy < 30  # hundredths of a second
        with service.client(token) as client:
            client.get(COPY, params={"format": "csv"})
        assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began", "released"]
    assert vault.verify().sound


def _ticks(service: Service) -> int:
    """CPU time of all processes of the service, in hundredths of a second."""
    stats = [
        Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in process_tree(service.process.pid)
    ]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats)


def test_a_download_ends_with_the_grant_the_token_and_the_recipient(tmp_path: Path) -> None:
    """The clients do not read meanwhile, so that the server cannot notice it when it sends the next bytes."""
    vault = sqlite_vault(tmp_path, wards.table(400_000))
    vault.grant("stranger", "ward", "partner")
    tokens = {name: vault.token(name) for name in ("clinic", "insurer", "stranger")}
    with serving(vault, tmp_path) as service, contextlib.ExitStack() as stack:
        streams = {}
        for name, token in tokens.items():
            client = stack.enter_context(service.client(token["token"]))
            answer = stack.enter_context(client.stream("GET", COPY, params={"format": "csv"}))
            streams[name] = answer, answer.iter_raw()
            assert next(streams[name][1])
        vault.revoke("clinic", "ward")
        vault.withdraw(tokens["insurer"]["id"])
        vault.disable("stranger")
        ended = datetime.now(UTC)
        time.sleep(1.5)
        aborted = [line for line in service.lines() if line["event"] == "download aborted"]
        assert len(aborted) == 3
        for line in aborted:
            assert (datetime.fromisoformat(line["timestamp"]) - ended).total_seconds() < 1
        for answer, chunks in streams.values():
            with pytest.raises(httpx2.HTTPError):
                list(chunks)
            assert answer.num_bytes_downloaded < 20_000_000
        assert not [line for line in service.lines() if line["level"] == "error"]
        assert "Traceback" not in service.log.read_text()
        for name, status in {"clinic": 403, "insurer": 401, "stranger": 401}.items():
            with service.client(tokens[name]["token"]) as client:
                assert client.get(COPY).status_code == status
    assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began"] * 3


def test_an_interrupted_download_is_resumed(sqlite_service: Service, tmp_path: Path) -> None:
    """The connection fails after some bytes, three times."""
    expected = sqlite_service.vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    remote = sqlite_service.remote("clinic")
    real = remote._connection._http.stream
    ranges: list[str | None] = []

    class Broken:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __enter__(self) -> object:
            answer = self.inner.__enter__()  # type: ignore[attr-defined]
            ranges.append(answer.request.headers.get("range"))
            read = answer.iter_raw

            def limited() -> object:
                for chunk in read():
                    yield chunk[:4000]
                    raise httpx2.ReadError("interrupted")

            if len(ranges) < 4:
                answer.iter_raw = limited
            return answer

        def __exit__(self, *error: object) -> object:
            return self.inner.__exit__(*error)  # type: ignore[attr-defined]

    remote._connection._http.stream = lambda *arguments, **options: Broken(real(*arguments, **options))
    path, _ = remote.fetch("ward", tmp_path / "fetched.parquet")
    assert path.read_bytes() == expected
    assert ranges[0] is None
    assert len(ranges) == 4
    assert all(str(header).startswith("bytes=") for header in ranges[1:])


def test_recipients_see_their_own_grants(service: Service) -> None:
    [grant] = service.remote("clinic").own_grants()
    assert (grant["dataset"], grant["level"], grant["fidelity"], grant["version"]) == ("ward", "partner", 0.5, 1)
    assert list(grant["shown"]) == ["id", "region", "age", "income", "diagnosis"]
    assert any("copies" in line for line in grant["promises"])
    assert service.remote("stranger").own_grants() == []


def test_responses_reveal_nothing_about_other_recipients(sqlite_service: Service) -> None:
    """A dataset that does not exist and one that was not granted get the same response, without other names."""
    answers = {}
    for name in ("secret", "nowhere"):
        with sqlite_service.client("clinic") as client:
            problem = client.get(f"/api/v1/copies/{name}").json()
            answers[name] = problem["detail"].replace(name, "X"), problem["status"], problem["title"]
    assert answers["secret"] == answers["nowhere"]
    with sqlite_service.client("clinic") as client:
        everything = "".join(
            client.get(path).text
            for path in (
                "/api/v1/me",
                "/api/v1/me/grants",
                f"{COPY}/manifest",
                f"{COPY}?level=xyz",
                f"{COPY}?level=0.99",
            )
        )
    everything = re.sub(r"secret order|order.{1,5}secret", "", everything)  # of the rows
    for word in ("insurer", "stranger", "secret", "internal", '"public"', "0.8,", "0.2,"):
        assert word not in everything, word


def test_response_times_do_not_reveal_whether_a_dataset_exists(sqlite_service: Service) -> None:
    """Medians of 200 interleaved requests each; a false alarm needs a shift of 25 %, about 20 standard errors."""
    durations: dict[str, list[float]] = {"secret": [], "nowhere": []}
    with sqlite_service.client("clinic") as client:
        for _ in range(200):
            for name, times in durations.items():
                start = time.perf_counter()
                assert client.get(f"/api/v1/copies/{name}").status_code == 404
                times.append(time.perf_counter() - start)
    medians = {name: float(np.median(times)) for name, times in durations.items()}
    assert max(medians.values()) < 1.25 * min(medians.values()), medians


def test_client_errors_explain_the_reason(sqlite_service: Service, tmp_path: Path) -> None:
    with pytest.raises(UnknownSubject, match="no dataset 'secret' that you were granted"):
        sqlite_service.remote("clinic").fetch("secret", tmp_path / "x.parquet")
    with pytest.raises(ServiceError, match="token that is in force"):
        sqlite_service.remote("revoked").own_grants()
    with pytest.raises(ServiceError, match="did not respond"):
        sf.connect("http://127.0.0.1:9", "x").own_grants()
    with pytest.raises(ServiceError, match="SFUMATO_TOKEN"):
        sf.connect(sqlite_service.url)
    assert sqlite_service.tokens["clinic"] not in repr(sqlite_service.remote("clinic"))
