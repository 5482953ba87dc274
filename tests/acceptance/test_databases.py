"""Tables in real databases: read in one snapshot, copies written in one transaction, mined where they are."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.postgres import Server

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import SfumatoError
from sfumato.mining import ask
from sfumato.tables.database import DatabaseTable, _brief, without_password
from sfumato.tables.source import Source

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 150_000
"""More than two batches."""

POLICY = """
dataset = "clinic"
[levels]
partner = 0.5
[columns]
id = { role = "id", publish = false }
age = "gaussian"
cost = "gaussian"
ward = { role = "uniform", domain = ["north", "south"] }
seen = "keep"
"""


def table() -> pa.Table:
    draw = np.random.default_rng(5)
    days = pa.array(draw.integers(19_000, 20_000, ROWS), pa.int32()).cast(pa.date32())
    return pa.table(
        {
            "id": np.arange(ROWS) * 3,
            "age": draw.normal(50, 10, ROWS),
            "cost": draw.normal(1000, 100, ROWS),
            "ward": np.array(["north", "south"])[draw.integers(0, 2, ROWS)],
            "seen": days,
        }
    )


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("postgres")
        return server.database()
    return f"{request.param}:///{tmp_path}/clinic.db"


def put(uri: str, rows: pa.Table) -> str:
    address = DatabaseTable.of(uri)
    with address.cursor() as cursor:
        cursor.adbc_ingest(address.name, rows, mode="create")
    return uri


def values(uri: str, sql: str) -> list[Any]:
    with DatabaseTable.of(f"{uri}?table=x").cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def test_a_copy_in_a_database_is_the_copy_of_a_file(database: str, tmp_path: Path) -> None:
    original = put(f"{database}?table=patients", table())
    policy = sf.Policy.loads(POLICY)
    scheme = policy.fit(original)
    copy = f"{database}?table=partner_copy"
    manifest = sf.release_file(scheme, original, copy, "partner", KEY)
    assert manifest.digest == sf.release_file(scheme, original, tmp_path / "copy.parquet", "partner", KEY).digest
    sf.Manifest.of(copy).verify(copy)
    assert sf.release_file(scheme, original, copy, "partner", KEY) == manifest  # it replaces the earlier one
    assert values(database, "select count(*) from sfumato_manifests") == [(1,)]
    assert (
        ask(copy, "select avg(age) v from t").to_pylist()
        == ask(tmp_path / "copy.parquet", "select avg(age) v from t").to_pylist()
    )


def test_the_order_of_rows_in_the_database_does_not_matter(database: str) -> None:
    original = put(f"{database}?table=patients", table().slice(0, 3000))
    manifest = sf.release_file(
        sf.Policy.loads(POLICY).fit(original), original, f"{database}?table=first", "partner", KEY
    )
    with DatabaseTable.of(f"{database}?table=x").cursor() as cursor:
        cursor.execute("create table moved as select * from first order by age")
    manifest.verify(f"{database}?table=moved")


def test_nothing_appears_before_all_is_written(database: str) -> None:
    original = put(f"{database}?table=patients", table())
    scheme = sf.Policy.loads(POLICY).fit(original)

    def fail(rows: int) -> None:
        raise InterruptedError(rows)

    with pytest.raises(InterruptedError):
        sf.release_file(scheme, original, f"{database}?table=half", "partner", KEY, progress=fail)
    with pytest.raises(SfumatoError, match="the database could not do it"):
        Source.of(f"{database}?table=half")
    with pytest.raises(SfumatoError, match="must have its manifest"):
        sf.Manifest.of(f"{database}?table=half")


def test_rows_without_ids_are_refused(database: str) -> None:
    original = put(f"{database}?table=patients", table())
    policy = sf.Policy.loads(POLICY.replace('id = { role = "id", publish = false }', 'id = "drop"'))
    with pytest.raises(SfumatoError, match="give a column the role id"):
        policy.fit(original)


def test_types_of_postgresql(postgres: Server) -> None:
    uri = postgres.database()
    with DatabaseTable.of(f"{uri}?table=x").cursor() as cursor:
        cursor.execute(
            'create table "Odd Names" (id bigint, n numeric(10,2), m numeric, u uuid, j jsonb, '
            "t timestamptz, c char(2))"
        )
        cursor.execute(
            "insert into \"Odd Names\" values (1, 1.50, 2.25, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{}', "
            "'2025-01-01 10:00+00', 'ab'), (2, null, null, null, null, null, null)"
        )
    source = Source.of(f"{uri}?table=Odd Names")
    first, second = pa.Table.from_batches(source.batches(), source.schema).to_pylist()
    assert first == {
        "id": 1,
        "n": Decimal("1.50"),
        "m": 2.25,
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "j": "{}",
        "t": dt.datetime(2025, 1, 1, 10, tzinfo=dt.UTC),
        "c": "ab",
    }
    assert set(second.values()) == {2, None}


def test_the_commands_take_databases(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    original = put(f"{database}?table=patients", table().slice(0, 3000))
    KEY.save(tmp_path / "k")

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    secret = original.replace("owner@", "owner:hunter2@")  # which the server does not ask for
    assert "hunter2" not in run("suggest", secret, "-o", "policy.toml")
    assert sf.Policy.load("policy.toml").dataset == "patients"
    copy = f"{database}?table=copy"
    options = ("--policy", "policy.toml", "--level", "partner", "--key-file", "k", "--json")
    assert "hunter2" not in run("release", secret, copy.replace("owner@", "owner:hunter2@"), *options)
    assert "fidelity 0.5" in run("show", copy)
    assert "(" in run("mine", copy, "select avg(age) from copy")
    run("init", "vault", "--key-file", "vault.key")
    monkeypatch.setenv("SFUMATO_KEY_FILE", "vault.key")
    assert "3,000 rows" in run("add", original, "--policy", "policy.toml")


def test_passwords_are_not_shown() -> None:
    for uri in ("postgresql://me:secret@127.0.0.1:1/x?table=t", "postgresql://me:secret@127.0.0.1:1/x"):
        with pytest.raises(SfumatoError) as caught:
            Source.of(uri)
        assert "secret" not in str(caught.value)
    assert without_password("postgresql://me:secret@h:5/x?table=t") == "postgresql://me@h:5/x?table=t"
    assert _brief(ValueError("no way to postgresql://me:secret@host")) == "no way to postgresql"
