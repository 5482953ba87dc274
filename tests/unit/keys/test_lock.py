"""Locks: weak passphrases and altered locks are refused, in one sentence and at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import CustodyError
from sfumato.keys.lock import WRONG, unwrap, wrap

MASTER, PHRASE = sf.Key.from_bytes(bytes(range(32))), "correct horse battery"


@pytest.fixture(scope="module")
def locks() -> dict[str, dict[str, Any]]:
    return {"passphrase": wrap(MASTER, PHRASE, "v/1"), "key": wrap(MASTER, MASTER, "v/1")}


@pytest.mark.parametrize("weak", ["", "a", "short", "elevenchars", "a" * 40, "abcabcabcabcabc", "tab\tseparated text"])
def test_a_weak_passphrase_is_refused(weak: str) -> None:
    with pytest.raises(CustodyError, match="at least 12 characters, 5 of them distinct"):
        wrap(MASTER, weak, "v/1")


VALUES: list[Any] = [None, 7, [], {}, "", "zz", "00", "é"]
COSTS: list[Any] = [
    *({"iterations": 10**9}, {"memory_cost": 2**31}, {"lanes": 2**20}, {"iterations": 0}, {"lanes": -1}),
    *({"memory_cost": 1}, {"iterations": True}, {"iterations": 3.0}, {"iterations": "3"}, {"memory_cost": None}),
]


@pytest.mark.parametrize("opens", ["passphrase", "key"])
def test_every_altered_lock_is_refused_at_once(locks: dict[str, dict[str, Any]], opens: str) -> None:
    secret, lock = (PHRASE if opens == "passphrase" else MASTER), locks[opens]
    assert unwrap(lock, secret, "v/1") == MASTER
    altered: list[dict[str, Any]] = [{}, {"unreadable": "x"}]
    for name in set(lock) - {"opens"}:  # what it opens with is said, not proved
        altered += [{other: value for other, value in lock.items() if other != name}]
        altered += [lock | {name: value} for value in VALUES]
    if opens == "passphrase":
        altered += [lock | {"argon2id": lock["argon2id"] | cost} for cost in COSTS]
    started = time.perf_counter()
    for one in altered:
        with pytest.raises(CustodyError) as refused:
            unwrap(one, secret, "v/1")
        assert str(refused.value) == WRONG
    assert time.perf_counter() - started < 30
