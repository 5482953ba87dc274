"""What unit tests share: a vault with a table and a recipient, in both databases, and two copies of a larger one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    made = site.create(key=sf.Key.from_bytes(bytes(range(1, 33))))  # the same noise in every run
    made.add(wards.policy(), wards.table())
    made.recipient("clinic", note="St. Mary's")
    return made


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return wards.table(4000)


@pytest.fixture(scope="session")
def copies(table: pa.Table) -> dict[str, pa.Table]:
    made = wards.policy().fit(table).release_levels(table, ["internal", "partner"], sf.Key.from_bytes(bytes(32)))
    return dict(zip(("ann", "bob"), made, strict=True))
