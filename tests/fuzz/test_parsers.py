"""Fuzz tests: whatever bytes a parser gets, it accepts or refuses them, in little time and memory.

`make test` replays the inputs that once made a parser fail, with a few random ones; `make sweep` tries a million.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.fuzz.campaign import CORPUS, MEMORY, ROOT, in_own_process
from tests.fuzz.parsers import PARSERS

_PER_PROCESS = 10_000
"""Cases of the sweep in one process."""


def test_inputs_that_once_failed_and_random_ones(request: pytest.FixtureRequest) -> None:
    found = in_own_process([(name, 0, parser.cases) for name, parser in PARSERS.items()], request.config.option.seed)
    assert {name: outcome.failures for name, outcome in found.items() if outcome.failures} == {}
    assert all(outcome.cases >= PARSERS[name].cases and outcome.memory < MEMORY for name, outcome in found.items())
    assert len(found) == len(PARSERS)


def test_every_folder_of_the_corpus_belongs_to_a_parser() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= {name.replace(" ", "-") for name in PARSERS}


def test_small_inputs_that_ask_for_much() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz.bombs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 20
    assert [(name, failure) for name, failure, _ in found if failure] == []
    assert [(name, memory >> 20) for name, _, memory in found if memory > 1 << 30] == []


def test_a_million_cases_are_declared() -> None:
    assert sum(parser.sweep for parser in PARSERS.values()) >= 10**6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parser", "first"),
    [(name, first) for name, parser in PARSERS.items() for first in range(0, parser.sweep, _PER_PROCESS)],
)
def test_many_cases(parser: str, first: int, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> None:
    count = min(_PER_PROCESS, PARSERS[parser].sweep - first)
    [outcome] = in_own_process([(parser, first, count)], request.config.option.seed).values()
    with capfd.disabled():
        print(f"\n{parser}: cases {first:,} to {first + outcome.cases:,}, {len(outcome.failures)} failures", flush=True)
    assert outcome.failures == {}
    assert outcome.cases >= count
    assert outcome.memory < MEMORY
