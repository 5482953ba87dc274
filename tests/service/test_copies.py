"""Copies over HTTP: the bytes of a local release, in every format, whole, in part, and again."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from tests import wards
from tests.serving import Service, family, lone, serving

import sfumato as sf
from sfumato.errors import GrantError, ServiceError, UnknownSubject
from sfumato.ledger.ledger import Query
from sfumato.release.certificate import check

COPY = "/api/v1/copies/ward"


def test_the_bytes_are_those_of_a_local_release(service: Service, tmp_path: Path) -> None:
    for form, name in (("parquet", "x.parquet"), ("csv", "x.csv")):
        path, manifest = service.vault.release("clinic", "ward", tmp_path / name)
        with service.client("clinic") as client:
            assert client.get(COPY, params={"format": form}).content == path.read_bytes()
            assert sf.Manifest.loads(client.get(f"{COPY}/manifest").text) == manifest


def test_the_client_writes_the_same_files(service: Service, tmp_path: Path) -> None:
    for ending in ("parquet", "csv", "arrow"):
        ours, _ = service.vault.release("clinic", "ward", tmp_path / f"local.{ending}")
        theirs, manifest = service.remote("clinic").fetch("ward", tmp_path / f"fetched.{ending}")
        assert theirs.read_bytes() == ours.read_bytes()
        assert check(str(theirs), service.vault.public_key) == manifest
    table = service.remote("clinic").read("ward")
    assert table.equals(sf.read_copy(tmp_path / "local.parquet"))
    assert sf.Manifest.of(table) == manifest


def test_an_owner_fetches_what_a_recipient_would(service: Service, tmp_path: Path) -> None:
    path, manifest = service.remote("owner").release("clinic", "ward", tmp_path / "copy.parquet")
    assert manifest.recipient == "clinic"
    assert path.read_bytes() == service.vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()


def test_the_client_likes_best(small: Service) -> None:
    media = {
        "*/*": "application/vnd.apache.parquet",
        "text/csv": "text/csv; charset=utf-8",
        "text/csv;q=0.5, application/gzip": "application/gzip",
        "application/vnd.apache.arrow.stream, text/csv;q=0.1": "application/vnd.apache.arrow.stream",
        "text/html, */*;q=0.1": "application/vnd.apache.parquet",
    }
    with small.client("clinic") as client:
        for accept, kind in media.items():
            assert client.get(COPY, headers={"Accept": accept}).headers["content-type"] == kind
        assert client.get(COPY, headers={"Accept": "image/png"}).status_code == 406
        assert client.get(COPY, params={"format": "xlsx"}).status_code == 422
        plain = client.get(COPY, params={"format": "csv"}).content
        assert gzip.decompress(client.get(COPY, params={"format": "csv.gz"}).content) == plain


def test_an_arrow_stream_ends_with_its_manifest(small: Service) -> None:
    with small.client("clinic") as client:
        reader = pa.ipc.open_stream(client.get(COPY, params={"format": "arrows"}).content)
        batches = list(reader.iter_batches_with_custom_metadata())
        manifest = sf.Manifest.loads(client.get(f"{COPY}/manifest").text)
    assert sf.Manifest.loads(batches[-1][1][b"sfumato"]) == manifest
    assert sum(batch.num_rows for batch, _ in batches) == manifest.rows


def test_a_copy_is_fetched_in_parts(service: Service) -> None:
    with service.client("insurer") as client:
        first = client.get(COPY, headers={"Range": "bytes=10-19"})  # before anybody has fetched it whole
        whole = client.get(COPY)
        size = len(whole.content)
        assert whole.headers["content-length"] == str(size)
        assert (first.status_code, first.content) == (206, whole.content[10:20])
        assert first.headers["content-range"] == f"bytes 10-19/{size}"
        for said, part in {
            "bytes=0-0": whole.content[:1],
            f"bytes={size - 5}-": whole.content[-5:],
            "bytes=-7": whole.content[-7:],
            f"bytes=5-{10 * size}": whole.content[5:],
            f"bytes=-{10 * size}": whole.content,
        }.items():
            answer = client.get(COPY, headers={"Range": said})
            assert (said, answer.status_code, answer.content) == (said, 206, part)
            assert int(answer.headers["content-length"]) == len(part)
        for said in (f"bytes={size}-", "bytes=9-3", "bytes=-0"):
            answer = client.get(COPY, headers={"Range": said})
            assert (said, answer.status_code) == (said, 416)
            assert answer.headers["content-range"] == f"bytes */{size}"
        for said in ("bytes=", "bytes=-", "rows=1-2", "bytes=1-2,5-6", "bytes=x-"):  # not understood: the whole
            assert client.get(COPY, headers={"Range": said}).content == whole.content


def test_a_copy_has_a_name_for_its_bytes(service: Service, tmp_path: Path) -> None:
    with service.client("clinic") as client:
        answer = client.get(COPY)
        tag = answer.headers["etag"]
        assert client.head(COPY).headers["etag"] == tag
        assert int(client.head(COPY).headers["content-length"]) == len(answer.content)
        assert client.get(COPY, headers={"If-None-Match": tag}).status_code == 304
        assert client.get(COPY, headers={"If-None-Match": f'"other", W/{tag}'}).status_code == 304
        assert client.get(COPY, headers={"If-None-Match": '"other"'}).status_code == 200
        assert client.get(COPY, headers={"Range": "bytes=3-", "If-Range": tag}).status_code == 206
        assert client.get(COPY, headers={"Range": "bytes=3-", "If-Range": '"other"'}).status_code == 200
        others = {client.head(COPY, params=said).headers["etag"] for said in ({"format": "csv"}, {"level": "0.3"})}
    with service.client("insurer") as client:
        others.add(client.head(COPY).headers["etag"])
    assert tag not in others
    assert len(others) == 3


def test_a_lower_level_on_demand(service: Service, tmp_path: Path) -> None:
    remote = service.remote("clinic")
    path, manifest = remote.fetch("ward", tmp_path / "low.parquet", level=0.3)
    local, same = service.vault.release("clinic", "ward", tmp_path / "local.parquet", level=0.3)
    assert path.read_bytes() == local.read_bytes()
    assert manifest == same
    assert manifest.fidelity <= 0.3 == manifest.requested_fidelity
    assert manifest.level is None
    assert remote.manifest("ward", level=0.3) == manifest
    assert remote.manifest("ward", level="partner") == remote.manifest("ward")
    for asked in (0.51, "internal", "public", "nonsense", 2, "nan"):
        with pytest.raises((GrantError, ServiceError, sf.SfumatoError)):
            remote.fetch("ward", tmp_path / "high.parquet", level=asked)
    assert not (tmp_path / "high.parquet").exists()


def test_the_ledger_says_so_before_the_first_byte(tmp_path: Path) -> None:
    vault = lone(tmp_path, wards.table(400_000))
    with serving(vault, tmp_path) as service:
        token = vault.token("clinic")["token"]
        with service.client(token) as client, client.stream("GET", COPY, params={"format": "csv"}) as answer:
            next(answer.iter_raw())
            [began] = vault.log(Query(kind="release"))
        assert (began.action, began.body["digest"], began.body["rows"]) == ("began", "", 400_000)
        time.sleep(1.5)  # the client hung up: nothing more is made or recorded
        assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began"]
        busy = _ticks(service)
        time.sleep(1)
        assert _ticks(service) - busy < 30  # hundredths of a second
        with service.client(token) as client:
            client.get(COPY, params={"format": "csv"})
        assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began", "released"]
    assert vault.verify().sound


def _ticks(service: Service) -> int:
    """Hundredths of a second that all its processes have worked."""
    stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in family(service.process.pid)]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats)


def test_a_grant_that_ends_meanwhile_leaves_an_unreadable_copy(tmp_path: Path) -> None:
    vault = lone(tmp_path, wards.table(3_000_000))
    with serving(vault, tmp_path) as service, service.client(vault.token("clinic")["token"]) as client:
        got: list[bytes] = []

        def fetch() -> None:
            with client.stream("GET", COPY) as answer:
                for chunk in answer.iter_raw():
                    if not got:
                        vault.revoke("clinic", "ward")
                    got.append(chunk)

        with pytest.raises(httpx2.HTTPError):
            fetch()
        assert b"".join(got)[-4:] != b"PAR1"
        assert client.get(COPY).status_code == 403
    assert [entry.action for entry in vault.log(Query(kind="release"))] == ["began"]


def test_a_download_that_breaks_off_is_taken_up_again(small: Service, tmp_path: Path) -> None:
    """By a connection that fails after some bytes, three times."""
    whole = small.vault.release("clinic", "ward", tmp_path / "local.parquet")[0].read_bytes()
    remote = small.remote("clinic")
    real = remote._wire._http.stream
    asked: list[str | None] = []

    class Broken:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __enter__(self) -> object:
            answer = self.inner.__enter__()  # type: ignore[attr-defined]
            asked.append(answer.request.headers.get("range"))
            read = answer.iter_raw

            def limited() -> object:
                for chunk in read():
                    yield chunk[:4000]
                    raise httpx2.ReadError("cut")

            if len(asked) < 4:
                answer.iter_raw = limited
            return answer

        def __exit__(self, *error: object) -> object:
            return self.inner.__exit__(*error)  # type: ignore[attr-defined]

    remote._wire._http.stream = lambda *words, **said: Broken(real(*words, **said))
    path, _ = remote.fetch("ward", tmp_path / "fetched.parquet")
    assert path.read_bytes() == whole
    assert asked[0] is None
    assert len(asked) == 4
    assert all(str(said).startswith("bytes=") for said in asked[1:])


def test_what_i_may_fetch(service: Service) -> None:
    [grant] = service.remote("clinic").grants()
    assert (grant["dataset"], grant["level"], grant["fidelity"], grant["version"]) == ("ward", "partner", 0.5, 1)
    assert list(grant["shown"]) == ["id", "region", "age", "income", "diagnosis"]
    assert any("copies" in line for line in grant["promises"])
    assert service.remote("stranger").grants() == []


def test_nothing_is_told_of_others(small: Service) -> None:
    """The same words for a dataset that is not there and for one that was never granted; no name of any other."""
    answers = {}
    for name in ("secret", "nowhere"):
        with small.client("clinic") as client:
            said = client.get(f"/api/v1/copies/{name}").json()
            answers[name] = said["detail"].replace(name, "X"), said["status"], said["title"]
    assert answers["secret"] == answers["nowhere"]
    with small.client("clinic") as client:
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
    for word in ("insurer", "stranger", "secret", "internal", '"public"', "0.8,", "0.2,"):
        assert word not in everything, word


def test_the_same_time_for_what_is_not_there_and_what_is_not_mine(small: Service) -> None:
    """Medians of 200 interleaved requests each; a false alarm needs a shift of 25 %, some 20 standard errors."""
    took: dict[str, list[float]] = {"secret": [], "nowhere": []}
    with small.client("clinic") as client:
        for _ in range(200):
            for name, times in took.items():
                start = time.perf_counter()
                assert client.get(f"/api/v1/copies/{name}").status_code == 404
                times.append(time.perf_counter() - start)
    medians = {name: float(np.median(times)) for name, times in took.items()}
    assert max(medians.values()) < 1.25 * min(medians.values()), medians


def test_a_client_says_what_is_wrong(small: Service, tmp_path: Path) -> None:
    with pytest.raises(UnknownSubject, match="no dataset 'secret' that you were granted"):
        small.remote("clinic").fetch("secret", tmp_path / "x.parquet")
    with pytest.raises(ServiceError, match="token that is in force"):
        small.remote("revoked").grants()
    with pytest.raises(ServiceError, match="gave no answer"):
        sf.connect("http://127.0.0.1:9", "x").grants()
    with pytest.raises(ServiceError, match="SFUMATO_TOKEN"):
        sf.connect(small.url)
    assert small.tokens["clinic"] not in repr(small.remote("clinic"))
