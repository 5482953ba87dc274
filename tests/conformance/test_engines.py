"""What every engine must do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sfumato.engines import ENGINES, Engine
from sfumato.engines.local import Local


@pytest.fixture(params=[(name, threads) for name in ENGINES.names() for threads in (1, 2, 5)], ids=str)
def engine(request: pytest.FixtureRequest) -> Engine:
    name, threads = request.param
    made: Engine = ENGINES[name](threads)
    return made


def test_order_is_kept(engine: Engine) -> None:
    def slow(i: int) -> int:
        time.sleep(0.002 * (i % 3))
        return i * i

    assert list(engine.map(slow, range(40))) == [i * i for i in range(40)]
    assert engine.fold(str, lambda a, b: a + b, range(12)) == "01234567891011"


def test_few_items_are_held_at_a_time(engine: Engine) -> None:
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


def test_an_error_ends_the_work(engine: Engine) -> None:
    asked = []

    def fail(i: int) -> int:
        asked.append(i)
        if i == 3:
            raise ValueError("third")
        return i

    with pytest.raises(ValueError, match="third"):
        list(engine.map(fail, range(10_000)))
    assert len(asked) < 50


def test_an_error_in_the_items_is_passed_on(engine: Engine) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("unreadable")

    with pytest.raises(OSError, match="unreadable"):
        list(engine.map(lambda i: i, items()))


def test_all_cores_are_used_by_default() -> None:
    assert Local()._threads >= 1
