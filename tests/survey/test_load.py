"""Many respondents at once, while the service is killed and restarted: no answer is lost or counted twice."""

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
from tests.schema import ANSWERS, TICKETS, tables_of
from tests.serving import kill_process, process_tree, serving, wait_until_free

from sfumato.survey.example import EXAMPLE
from sfumato.survey.surveys import Surveys


def under_load(site: Site, folder: Path, seconds: float, kills: int) -> dict[str, Any]:
    """The numbers of confirmed answers and of stored rows, with the service killed and restarted under load."""
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
        _kill(service.process.pid)
    for left in range(kills - 1, -1, -1):
        wait_until_free(port)
        with serving(vault, folder, port=port) as service:
            if left:
                time.sleep(seconds / (kills + 1))
                _kill(service.process.pid)
            else:
                output, _ = load.communicate(timeout=seconds + 120)
    with tables_of(vault.ledger.database) as connection:
        stored = [
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (ANSWERS, TICKETS)
        ]
    return {**json.loads(output), "answers": stored[0], "tickets": stored[1]}


def _kill(process: int) -> None:
    for one in process_tree(process):
        kill_process(one)


def check(found: dict[str, Any]) -> None:
    assert found["answers"] == found["tickets"] == found["confirmed"]
    assert found["unexpected"] == 0  # nothing was refused except while the service was down
    assert found["retries"] > 0  # it was down, and respondents tried again


def test_nothing_is_lost_or_counted_twice_when_the_service_is_killed(site: Site, tmp_path: Path) -> None:
    check(under_load(site, tmp_path, 4, kills=1))


@pytest.mark.slow
def test_300_answers_per_second_for_a_minute(site: Site, tmp_path: Path) -> None:
    """On two cores shared with the respondents, while the service is killed twice."""
    found = under_load(site, tmp_path, 60, kills=2)
    print(found)
    check(found)
    assert found["confirmed"] >= 300 * 60
