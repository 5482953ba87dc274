"""Locks: weak passphrases and altered locks are refused, in one sentence and at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import CustodyError
from sfumato.keys import lock as lock_module
from sfumato.keys.lock import WRONG, unwrap, wrap

MASTER, PHRASE = sf.Key.from_bytes(bytes(range(32))), "correct horse battery"


@pytest.fixture(scope="module")
def locks() -> dict[str, dict[str, Any]]:
    return {"passphrase": wrap(MASTER, PHRASE, "v/1"), "key": wrap(MASTER, MASTER, "v/1")}


@pytest.mark.parametrize("weak", ["", "a", "short", "elevenchars", "a" * 40, "abcabcabcabcabc", "tab\tseparated text"])
def test_a_weak_passphrase_is_refused(weak: str) -> None:
    with pytest.raises(CustodyError, match="at least 12 characters, 5 of them distinct"):
        wrap(MASTER, weak, "v/1")


def test_a_passphrase_of_12_characters_5_of_them_distinct_is_accepted() -> None:
    assert wrap(MASTER, "abcdeabcdeab", "v/1")["opens"] == "passphrase"


def test_a_lock_has_a_fresh_salt_and_nonce_and_the_documented_cost(locks: dict[str, dict[str, Any]]) -> None:
    for opens, lock in locks.items():
        assert lock["opens"] == opens
        assert (len(lock["salt"]), len(lock["nonce"]), len(lock["sealed"])) == (32, 24, 96)
    assert locks["passphrase"]["argon2id"] == {"iterations": 3, "lanes": 4, "memory_cost": 65536}
    again = wrap(MASTER, MASTER, "v/1")
    assert not {again[name] for name in ("salt", "nonce", "sealed")} & set(locks["key"].values())


def test_a_lock_is_bound_to_its_owner_and_its_secret(locks: dict[str, dict[str, Any]]) -> None:
    for secret, owner, opens in (
        *((MASTER, "v/2", "key"), (PHRASE, "v/2", "passphrase"), (sf.Key.from_bytes(bytes(32)), "v/1", "key")),
        *((PHRASE + "x", "v/1", "passphrase"), (PHRASE, "v/1", "key"), (MASTER, "v/1", "passphrase")),
    ):
        with pytest.raises(CustodyError) as refused:
            unwrap(locks[opens], secret, owner)
        assert str(refused.value) == WRONG


@pytest.mark.parametrize("beyond", [{"iterations": 17}, {"lanes": 17}, {"memory_cost": 256 * 1024 + 1}])
def test_a_cost_beyond_the_limit_is_never_paid(
    locks: dict[str, dict[str, Any]], beyond: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "Argon2id", lambda **_: pytest.fail("the cost was paid"))
    lock = locks["passphrase"]
    with pytest.raises(CustodyError):
        unwrap(lock | {"argon2id": lock["argon2id"] | beyond}, PHRASE, "v/1")


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
