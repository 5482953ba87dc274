"""What every engine must do, ours or a stranger's: checks that are run on each where it is at hand."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import sfumato as sf
from sfumato.engines import Engine
from sfumato.errors import SourceError


def keeps_its_promises(engine: Engine) -> None:
    """All of them."""
    keeps_order(engine)
    passes_errors_on(engine)
    lends_keys(engine)


def keeps_order(engine: Engine) -> None:
    def slow(i: int) -> int:
        time.sleep(0.002 * (i % 3))
        return i * i

    assert list(engine.map(slow, range(40))) == [i * i for i in range(40)]
    assert list(engine.map(slow, [])) == []
    assert engine.fold(str, lambda a, b: a + b, range(12)) == "01234567891011"


def passes_errors_on(engine: Engine) -> None:
    def fail(i: int) -> int:
        if i == 3:
            raise SourceError("third")
        return i

    def items() -> Iterator[int]:
        yield 1
        raise OSError("unreadable")

    with pytest.raises(SourceError, match="third"):
        list(engine.map(fail, range(30)))
    with pytest.raises(OSError, match="unreadable"):
        list(engine.map(fail, items()))


def lends_keys(engine: Engine) -> None:
    key = sf.Key.generate()
    with engine.shared_key(key) as secret:
        assert set(engine.map(lambda _: secret().fingerprint(), range(6))) == {key.fingerprint()}
        assert key.expose().hex() not in repr(secret)
