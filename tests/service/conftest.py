"""Fixtures: one running service per kind of database, with tokens for every role."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Site
from tests.serving import Service, issue_tokens, populated_vault, serving


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    yield from _running(request, tmp_path_factory.mktemp("service"), request.param)


@pytest.fixture(scope="session")
def sqlite_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on SQLite, for tests that do not depend on the database."""
    yield from _running(request, tmp_path_factory.mktemp("sqlite_service"), "sqlite")


def _running(request: pytest.FixtureRequest, folder: Path, kind: str) -> Iterator[Service]:
    (folder / "site").mkdir()
    server = None if kind == "sqlite" else request.getfixturevalue("postgres")
    vault = populated_vault(Site(kind, folder / "site", server))
    with serving(vault, folder) as service:
        service.tokens = issue_tokens(vault)
        yield service
