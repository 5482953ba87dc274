"""Named sources: tables in a database, which owners choose by name; their URLs and passwords stay on the server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import wards
from tests.acceptance.test_databases import put
from tests.postgres import Server
from tests.serving import Service, serving, sqlite_vault

from sfumato.errors import ServiceError
from sfumato.service.settings import Settings
from sfumato.service.sources import read_sources

SECRET = "a-password-of-the-database"  # noqa: S105 - the server of the tests trusts its users

BROKEN = f"""
bucket = "s3://AKIA:{SECRET}@bucket/x.parquet?endpoint_override=127.0.0.1:1"
file = "sqlite:////srv/private/hr.db?table=t"
web = "http://127.0.0.1:1/private.parquet?sig={SECRET}"
"""
"""Sources that cannot be read, and whose URLs say what nobody is to know."""


def source_file(folder: Path, postgres: Server) -> Path:
    """A file that names a table in PostgreSQL, with a password, and sources that cannot be read."""
    url = put(f"{postgres.database()}?table=wards", wards.table(1500, seed=8))
    secret = url.replace("://", f"://reader:{SECRET}@") if "@" not in url else url.replace("@", f":{SECRET}@", 1)
    file = folder / "sources.toml"
    file.write_text(
        f'hr-wards = "{secret}"\n{BROKEN}broken = "postgresql://reader:{SECRET}@127.0.0.1:1/nowhere?table=t"\n'
    )
    file.chmod(0o600)
    return file


@pytest.fixture
def service(tmp_path: Path, postgres: Server) -> Iterator[Service]:
    file = source_file(tmp_path, postgres)
    (tmp_path / "vault").mkdir()
    with serving(sqlite_vault(tmp_path / "vault"), tmp_path / "vault", "--sources", str(file)) as found:
        found.tokens["owner"] = found.vault.token(scopes=["read", "write"])["token"]
        yield found


def _finished(client: Any, job: str) -> dict[str, Any]:
    for _ in range(300):
        found: dict[str, Any] = client.get(f"/api/v1/jobs/{job}").json()
        if found["state"] in ("done", "failed"):
            return found
        time.sleep(0.2)
    raise TimeoutError(job)


def test_a_table_is_added_by_the_name_of_its_source(service: Service) -> None:
    said: list[str] = []
    with service.client("owner") as client:
        drafted = client.post("/api/v1/suggestions", json={"source": "hr-wards", "dataset": "hr"})
        assert drafted.status_code == 200
        policy = drafted.json()["policy"]
        job = client.post("/api/v1/datasets", json={"policy": policy, "source": "hr-wards"}).json()["job"]
        done = _finished(client, job)
        assert done["state"] == "done"
        broken = client.post("/api/v1/suggestions", json={"source": "broken", "dataset": "hr"})
        assert broken.status_code >= 400
        for name in ("bucket", "file", "web"):
            refused = client.post("/api/v1/suggestions", json={"source": name, "dataset": "hr"})
            assert refused.status_code == 422
            assert "could not be read" in refused.json()["detail"]
            said.append(refused.text)
        failed = _finished(
            client, client.post("/api/v1/datasets", json={"policy": policy, "source": "broken"}).json()["job"]
        )
        assert failed["state"] == "failed"
        said.append(str(failed))
        unknown = client.post("/api/v1/suggestions", json={"source": "hr-words", "dataset": "hr"})
        assert unknown.status_code == 422
        assert "hr-wards" in unknown.json()["detail"]
        both = client.post("/api/v1/suggestions", json={"source": "hr-wards", "path": "x", "dataset": "hr"})
        assert "exactly one of them" in both.json()["detail"]
        said += [one.text for one in (drafted, broken, unknown, both, client.get("/api/v1/datasets"))] + [str(done)]
    assert service.vault.dataset("hr").rows == 1500
    said += [service.log.read_text(), *(str(entry) for entry in service.vault.log())]
    assert not [text for text in said if any(one in text for one in (SECRET, "postgresql://", "s3://", "private"))]


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [
        ("hr = 3", 0o600, "must be the URL of a table"),
        ('hr = "table.csv"', 0o600, "must be the URL of a table"),
        ('"h r" = "sqlite:///x.db?table=t"', 0o600, "name"),
        ("hr =", 0o600, "must be a file in TOML"),
        ('hr = "postgresql://a:b@h/d?table=t"', 0o644, "chmod 600"),
        ('hr = "s3://bucket/t.parquet?secret_key=b"', 0o640, "chmod 600"),
        ('hr = "postgresql://a:b@h/d"', 0o600, "must be the URL of a table"),
        ('hr = "postgresql://a:SE#CRET@h/d?table=t"', 0o600, "must be the URL of a table"),
        ('hr = "postgresql://[::1/db?table=t"', 0o600, "must be the URL of a table"),
    ],
)
def test_sources_that_cannot_be_used_are_refused(tmp_path: Path, text: str, mode: int, reason: str) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ServiceError, match=reason) as caught:
        read_sources(file)
    assert "SE#CRET" not in str(caught.value)


def test_passwords_of_sources_are_in_no_repr(tmp_path: Path) -> None:
    file = tmp_path / "sources.toml"
    file.write_text(f'open = "sqlite:///x.db?table=t"\nhr = "postgresql://a:{SECRET}@h/d?table=t"\n')
    file.chmod(0o600)
    settings = Settings(sources=read_sources(file))
    assert list(settings.sources) == ["open", "hr"]
    assert SECRET not in repr(settings)
