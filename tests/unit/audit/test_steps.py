"""Steps of an audit: names as they begin, an estimate when enough is done, and an end where the caller wants one."""

from __future__ import annotations

import pytest

from sfumato.audit.steps import Steps


def test_the_time_that_is_left_follows_from_what_is_done() -> None:
    said: list[str] = []
    now = [0.0]
    steps = Steps(said.append, lambda: now[0])
    steps.plan(20)
    for number, cost in enumerate((1, 9, 5, 5)):
        with steps.step(f"step {number}", cost):
            now[0] += 10 * cost
    assert said == ["step 0", "step 1", "step 2, about 2 min left", "step 3, about 50 s left"]


def test_what_the_caller_raises_ends_the_work() -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Steps(stop).step("a step", 1):
        raise AssertionError("a cancelled step must not begin")
