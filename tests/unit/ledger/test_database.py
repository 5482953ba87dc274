"""The database of the ledger: URLs as SQLAlchemy reads them, no password in a message, and sound pooled connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import Unavailable, VaultError
from sfumato.ledger.database import Database

URLS = [
    "postgresql://host/db",
    "postgresql://me@host:5433/db",
    "postgres://me:topsecret@127.0.0.1:1/db",
    "postgresql+psycopg://me:topsecret@host/db?sslmode=require&application_name=sfumato",
    *(f"postgresql://me:top{odd}secret@127.0.0.1:1/db" for odd in "#?/[]: ^%&=℀"),
    "postgresql://me:top%40secret%25@127.0.0.1:1/db",
    "postgresql://me:topsecret@[::1]:1/db",
    "postgresql://me@/db?host=/run/postgresql&port=5433",
    "postgresql://me:topsecret@/db?host=a:1&host=b:2",
    "postgresql:///db",
    "postgresql://me@host/db?sslpassword=topsecret&passfile=topsecret",
]


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_read_as_by_sqlalchemy_and_shown_without_passwords(url: str) -> None:
    database = Database(url)
    expected = sa.make_url(url.replace("postgres://", "postgresql://")).set(drivername="postgresql+psycopg")
    dialect: Any = PGDialect_psycopg
    _, options = dialect().create_connect_args(expected)
    stated = {name: str(value) for name, value in options.items() if name != "context" and value}
    assert database.parameters == stated
    assert "secret" not in database.name
    assert database.name.startswith("postgresql://")
    assert Database(database.name).parameters.keys() | {"password"} == stated.keys() | {"password"}


def test_no_error_shows_a_password() -> None:
    for odd in "#?/[ ℀":
        with pytest.raises(Unavailable) as refused:
            Database(f"postgresql://me:top{odd}secret@127.0.0.1:1/db").check()
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["mysql://me:topsecret@host/db", "postgresql//me:topsecret@host", "://topsecret"])
def test_another_url_is_refused_without_repeating_it(url: str) -> None:
    if "://" in url:
        with pytest.raises(VaultError, match="postgresql://user@host/name") as refused:
            Database(url)
        assert "secret" not in str(refused.value)
    else:
        assert Database(url).is_file  # the name of a folder


def test_a_stream_that_outlives_its_transaction_does_no_harm(site: Site) -> None:
    vault = site.create().pooled()
    for number in range(30):
        vault.recipient(f"r{number}")
    database = vault.ledger.database
    kept: list[Any] = []

    def fail() -> None:
        with database.transaction(writes=False) as connection:
            kept.append(connection.stream("SELECT * FROM sfumato_entries"))
            next(kept[0])
            raise RuntimeError  # whose traceback keeps the stream alive

    with pytest.raises(RuntimeError):
        fail()
    vault.recipient("later")
    with database.transaction(writes=False) as connection:
        kept.pop().close()
        assert connection.value("SELECT count(*) FROM sfumato_entries") == 32
    assert vault.verify().sound


def test_pooled_connections_are_kept_and_those_of_failed_transactions_closed(tmp_path: Path) -> None:
    sf.Vault.create(tmp_path / "vault")
    database = Database(tmp_path / "vault", pooled=True)
    with database.transaction(writes=False) as first:
        pass
    with database.transaction(writes=False) as second:
        assert second.driver is first.driver
    with pytest.raises(Unavailable), database.transaction(writes=True) as failed:
        failed.run("INSERT INTO sfumato_nothing VALUES (1)")
    with database.transaction(writes=True) as after:
        assert after.driver is not failed.driver
