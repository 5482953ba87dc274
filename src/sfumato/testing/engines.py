"""The conformance suite of engines: order, errors, laziness, and keys that are shared but never shown."""

from __future__ import annotations

import time
from collections.abc import Iterator

from sfumato.engines import Engine
from sfumato.errors import SourceError
from sfumato.keys.key import Key
from sfumato.testing._checks import refuses, require, run


def check_engine(engine: Engine) -> None:
    """Run the conformance suite on an engine that is running."""
    run(type(engine).__name__, (_order_is_kept, _errors_arrive, _keys_are_shared), engine)


def _slow_square(i: int) -> int:
    time.sleep(0.002 * (i % 3))
    return i * i


def _fail_at_three(i: int) -> int:
    if i == 3:
        raise SourceError("third")
    return i


def _order_is_kept(engine: Engine) -> None:
    require(list(engine.map(_slow_square, range(40))) == [i * i for i in range(40)], "results are out of order")
    require(not list(engine.map(_slow_square, [])), "no items must give no results")
    joined = engine.fold(str, lambda a, b: a + b, range(12))
    require(joined == "01234567891011", "`fold` must merge from left to right")


def _errors_arrive(engine: Engine) -> None:
    def unreadable() -> Iterator[int]:
        yield 1
        raise OSError("unreadable")

    text = refuses(SourceError, lambda: list(engine.map(_fail_at_three, range(30))), "an error does not arrive")
    require("third" in text, "an error arrives without its message")
    refuses(OSError, lambda: list(engine.map(_fail_at_three, unreadable())), "an error of the items does not arrive")


def _keys_are_shared(engine: Engine) -> None:
    key = Key.generate()
    with engine.shared_key(key) as secret:
        found = set(engine.map(lambda _: secret().fingerprint(), range(6)))
        require(found == {key.fingerprint()}, "workers get another key, or none")
        require(key.expose().hex() not in repr(secret), "the key is shown")
