"""The key broker, from which workers of a cluster get a key."""

from __future__ import annotations

import contextlib
import hmac
import pickle
import socket
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import sfumato as sf
from sfumato.engines import _key_broker
from sfumato.engines._key_broker import key_broker
from sfumato.errors import CustodyError


def test_a_token_gets_the_key_while_the_broker_runs() -> None:
    key = sf.Key.generate()
    with key_broker("127.0.0.1", key) as token:
        travelled = pickle.loads(pickle.dumps(token))  # noqa: S301 - our own
        assert travelled() == key
        assert key.expose() not in pickle.dumps(token)
        assert token.token.hex() not in repr(token)
        assert repr(token.token) not in repr(token)
    assert travelled() == key  # who has it remembers
    _key_broker._fetched.cache_clear()
    with pytest.raises(CustodyError, match="is that process still running"):
        travelled()


def test_a_wrong_token_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_key_broker, "_TIMEOUT", 2.0)
    with key_broker("127.0.0.1", sf.Key.generate()) as token:
        with pytest.raises(CustodyError, match="to get the key"):
            replace(token, token=bytes(32))()
        for nonsense in (b"", b"x" * 10, b"GET / HTTP/1.1\r\n" * 20):
            line = socket.create_connection((token.host, token.port), timeout=5)
            with line, contextlib.suppress(OSError):  # who says too much is not heard to the end
                line.sendall(nonsense)
                line.shutdown(socket.SHUT_WR)
                assert line.recv(1) == b""
        token()  # the broker still runs


def test_an_eavesdropper_learns_nothing() -> None:
    """What goes over the line is different each time, and never holds the key."""
    key, received = sf.Key.generate(), []
    with key_broker("127.0.0.1", key) as token:
        for _ in range(2):
            own = X25519PrivateKey.generate()
            public = own.public_key().public_bytes_raw()
            with socket.create_connection((token.host, token.port), timeout=5) as line:
                line.sendall(public + hmac.digest(token.token, public, "sha256"))
                received.append(_key_broker._received(line, _key_broker._SEALED))
    assert received[0][32:] != received[1][32:]
    assert all(key.expose() not in answer for answer in received)


def test_keys_are_not_pickled() -> None:
    with pytest.raises(CustodyError, match="a key cannot be pickled"):
        pickle.dumps(sf.Key.generate())
