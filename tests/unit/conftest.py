"""What unit tests share: a vault with a table and a recipient, in both databases."""

from __future__ import annotations

import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    made = site.create()
    made.add(wards.policy(), wards.table())
    made.recipient("clinic", note="St. Mary's")
    return made
