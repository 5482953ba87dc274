"""The owner's tasks over HTTP, by Python client and by command line, have the same results as locally."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests import wards
from tests.conftest import Site
from tests.serving import Service, populated_vault, serving

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import SfumatoError, UnknownSubject, VaultError
from sfumato.ledger.reader import Query


@pytest.fixture
def any_service(site: Site, tmp_path: Path) -> Any:
    """A service for one test, on either database."""
    yield from _running(site, tmp_path)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A service on SQLite, for tests that do not depend on the database."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "site").mkdir()
    yield from _running(Site("sqlite", folder / "site", None), folder)


def _running(site: Site, folder: Path) -> Any:
    vault = populated_vault(site)
    with serving(vault, folder) as service:
        service.tokens = {"owner": vault.token()["token"], "clinic": vault.token("clinic")["token"]}
        yield service


def test_all_tasks_with_the_client(any_service: Service, tmp_path: Path) -> None:
    own = any_service
    remote = own.remote("owner")
    rows: list[int] = []
    entry = remote.add(wards.policy("new"), wards.table(seed=8), progress=rows.append)
    assert (entry.action, entry.dataset, entry.body["rows"]) == ("added", "new", wards.ROWS)
    assert entry.actor.startswith("owner token ")
    assert remote.add(wards.policy("new"), wards.table(seed=8)) == entry
    later = wards.changed(wards.table(seed=8), "age", slice(0, 5), 1.0)
    assert remote.update("new", later).body["changes"]["changed"] == 5
    more = wards.table(400, seed=8).slice(wards.ROWS)
    assert remote.append("new", more).body["changes"] == {
        "appended": 100,
        "deleted": 0,
        "changed": 0,
        "redrawn": 0,
        "unchanged": wards.ROWS,
    }
    assert remote.dataset("new").version == 3
    with pytest.raises(VaultError, match=r"at least 95% of the records, and this table lacks 300 of the 400"):
        remote.update("new", more)
    assert remote.update("new", wards.table(seed=8), replace=True).body["changes"]["deleted"] == 100
    remote.recipient("office", note="a statistics office")
    remote.grant("office", "new", "partner", columns=["id", "age"], until="2099-12-31")
    handed = remote.token("office", days=3, note="its programs")
    path, manifest = sf.connect(own.url, handed["token"]).fetch("new", tmp_path / "office.parquet")
    assert pq.read_schema(path).names == ["id", "age"]
    assert path.read_bytes() == own.vault.release("office", "new", tmp_path / "local.parquet")[0].read_bytes()
    assert manifest.recipient == "office"
    found = remote.audit("ward", rows=200, attacks=["llse", "bayes"])
    assert found.passed
    assert "<title>Audit of ward" in found.page()
    assert remote.trace("new", path).matched > 0
    assert remote.verify().sound
    assert [one.note for one in remote.tokens("office")] == ["its programs"]
    assert remote.grants("new", "office") == own.vault.grants("new", "office") != []
    assert remote.recipients() == own.vault.recipients() != []
    assert remote.overview("new") == own.vault.overview("new")
    remote.withdraw(handed["id"])
    with pytest.raises(SfumatoError, match="in force"):
        sf.connect(own.url, handed["token"]).own_grants()
    remote.revoke("office", "new")
    remote.disable("office")
    assert own.vault.log(Query(last=2))[-1].action == "disabled"
    assert remote.enable("office").action == "enabled"
    assert [entry.hash for entry in remote.log(Query())] == [entry.hash for entry in own.vault.log(Query())]
    assert own.vault.verify().sound


def test_remote_errors_equal_local_errors(own: Service) -> None:
    remote = own.remote("owner")
    cases: tuple[tuple[Callable[[], Any], Callable[[], Any], type[SfumatoError]], ...] = (
        (lambda: remote.grant("nobody", "ward", 0.5), lambda: own.vault.grant("nobody", "ward", 0.5), UnknownSubject),
        (lambda: remote.grant("clinic", "ward", 2.0), lambda: own.vault.grant("clinic", "ward", 2.0), SfumatoError),
        (lambda: remote.revoke("stranger", "ward"), lambda: own.vault.revoke("stranger", "ward"), VaultError),
        (lambda: remote.tables("wrad"), lambda: own.vault.tables("wrad"), UnknownSubject),
    )
    assert remote.tables("ward") == own.vault.tables("ward") == []
    for remotely, locally, kind in cases:
        with pytest.raises(SfumatoError) as expected:
            locally()
        with pytest.raises(kind) as found:
            remotely()
        assert str(found.value) == str(expected.value)


def test_a_table_that_does_not_match_its_policy_is_refused(own: Service) -> None:
    before = own.vault.ledger.database.name, len(own.vault.log(Query()))
    with pytest.raises(VaultError, match="diagnosis"):
        own.remote("owner").add(wards.policy("odd"), wards.table().drop(["diagnosis"]))
    assert (own.vault.ledger.database.name, len(own.vault.log(Query()))) == before
    assert own.vault.store.names("uploads") != []  # the upload can be used again with another policy


def run(service: Service, *arguments: str, who: str = "owner", code: int = 0) -> str:
    done = CliRunner().invoke(main, list(arguments), env={"SFUMATO_TOKEN": service.tokens[who]})
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_all_tasks_on_the_command_line(own: Service, tmp_path: Path) -> None:
    pq.write_table(wards.table(seed=8), tmp_path / "new.parquet")
    (tmp_path / "policy.toml").write_text(wards.policy("new").dumps())
    url = ["--url", own.url]
    added = run(own, "add", str(tmp_path / "new.parquet"), "--policy", str(tmp_path / "policy.toml"), *url)
    assert "Added new: 300 rows" in added
    assert "Registered office" in run(own, "recipient", "add", "office", *url)
    assert "Granted new to office at partner." in run(own, "grant", "office", "new", "--level", "partner", *url)
    out = tmp_path / "office.parquet"
    assert "for office at fidelity 0.5 (partner)" in run(own, "release", "office", "new", "-o", str(out), *url)
    assert out.read_bytes() == own.vault.release("office", "new", tmp_path / "l.parquet")[0].read_bytes()
    handed = json.loads(run(own, "token", "add", "office", "--json", *url))
    own.tokens["office"] = handed["token"]
    assert "new (version 1) at partner" in run(own, "fetch", *url, who="office")
    fetched = tmp_path / "fetched.csv"
    assert "300 rows of new" in run(own, "fetch", "new", "-o", str(fetched), *url, who="office")
    assert fetched.read_bytes() == own.vault.release("office", "new", tmp_path / "l.csv")[0].read_bytes()
    assert "new" in run(own, "status", *url)
    assert "office" in run(own, "status", "new", *url)
    assert "office" in run(own, "recipient", "list", *url)
    assert "Issued the token" in run(own, "log", *url)
    assert "The vault is intact" in run(own, "verify", *url)
    assert "rows were compared" in run(own, "trace", "new", str(fetched), *url)
    page = tmp_path / "report.html"
    output = run(own, "audit", "new", "--attack", "llse", "--rows", "200", "-o", str(page), *url)
    assert f"open {page}" in output
    assert "<title>Audit of new" in page.read_text()
    assert handed["id"] in run(own, "token", "list", *url)
    assert "Withdrew" in run(own, "token", "withdraw", handed["id"], *url)
    assert "in force" in run(own, "fetch", *url, who="office", code=15)
    assert "Revoked" in run(own, "revoke", "office", "new", *url)
    assert "run it on the machine of the vault" in run(own, "backup", str(tmp_path / "b"), *url, code=13)
