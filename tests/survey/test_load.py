"""Many respondents at once, while the service is killed and started again: none is lost, none is counted twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.conftest import Site
from tests.serving import family, killed, serving

from sfumato.ledger.tables import ANSWERS, TICKETS
from sfumato.survey.example import EXAMPLE
from sfumato.survey.surveys import Surveys


def under_load(site: Site, folder: Path, seconds: float, kills: int) -> dict[str, Any]:
    """What was confirmed, and what is kept of it."""
    vault = site.create()
    surveys = Surveys(vault)
    surveys.new("commute", EXAMPLE)
    surveys.open("commute")
    with serving(vault, folder) as service:
        port = int(service.url.rpartition(":")[2])
        command = [sys.executable, "-m", "tests.survey.load", service.url, "commute", str(seconds), "32"]
        load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert load.stdout is not None
        assert load.stdout.readline() == "begun\n"
        time.sleep(seconds / (kills + 1))
        _end(service.process.pid)
    for left in range(kills - 1, -1, -1):
        with serving(vault, folder, port=port) as service:
            if left:
                time.sleep(seconds / (kills + 1))
                _end(service.process.pid)
            else:
                said, _ = load.communicate(timeout=seconds + 120)
    with vault.ledger.database.transaction(writes=False) as connection:
        kept = [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (ANSWERS, TICKETS)
        ]
    return {**json.loads(said), "answers": kept[0], "tickets": kept[1]}


def _end(process: int) -> None:
    for one in family(process):
        killed(one)


def check(found: dict[str, Any]) -> None:
    assert found["answers"] == found["tickets"] == found["confirmed"]
    assert found["odd"] == 0  # no other refusal than that the service is away
    assert found["again"] > 0  # it was away, and respondents tried again


def test_nothing_is_lost_or_counted_twice_when_the_service_is_killed(site: Site, tmp_path: Path) -> None:
    check(under_load(site, tmp_path, 4, kills=1))


@pytest.mark.slow
def test_300_answers_a_second_for_a_minute(site: Site, tmp_path: Path) -> None:
    """On two cores, with the respondents on the same; killed twice meanwhile."""
    found = under_load(site, tmp_path, 60, kills=2)
    print(found)
    check(found)
    assert found["confirmed"] >= 300 * 60
