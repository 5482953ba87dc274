"""What every engine must do; the suite runs on cluster engines in tests/scale, where there are clusters."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from sfumato.engines import ENGINES
from sfumato.engines.local import Local
from sfumato.errors import EngineError
from sfumato.testing import check_engine


def test_every_engine_is_tested() -> None:
    assert ENGINES.names() == ["dask", "local", "spark"]


@pytest.fixture(params=[1, 2, 5])
def engine(request: pytest.FixtureRequest) -> Local:
    return Local.at(None, request.param)


def test_it_keeps_its_promises(engine: Local) -> None:
    check_engine(engine)


def test_few_items_are_held_at_a_time(engine: Local) -> None:
    taken = done = most = 0
    lock = threading.Lock()

    def items() -> Iterator[int]:
        nonlocal taken, most
        for i in range(200):
            with lock:
                taken += 1
                most = max(most, taken - done)
            yield i

    for _ in engine.map(lambda i: i, items()):
        with lock:
            done += 1
    assert most <= 14


def test_an_error_ends_the_work(engine: Local) -> None:
    asked = []

    def fail(i: int) -> int:
        asked.append(i)
        if i == 3:
            raise ValueError("third")
        return i

    with pytest.raises(ValueError, match="third"):
        list(engine.map(fail, range(10_000)))
    assert len(asked) < 50


def test_all_cores_are_used_by_default() -> None:
    assert Local().threads >= 1
    with pytest.raises(EngineError, match="at least 1, got 0"):
        Local(0)
    with pytest.raises(EngineError, match="has no address"):
        Local.at("tcp://somewhere", None)
