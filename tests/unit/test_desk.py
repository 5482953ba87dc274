"""The desk that lends keys to workers."""

from __future__ import annotations

import contextlib
import hmac
import pickle
import socket
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import sfumato as sf
from sfumato.engines import _key_broker as _desk
from sfumato.engines._key_broker import desk
from sfumato.errors import CustodyError


def test_a_ticket_gets_the_key_while_the_desk_is_open() -> None:
    key = sf.Key.generate()
    with desk("127.0.0.1", key) as ticket:
        travelled = pickle.loads(pickle.dumps(ticket))  # noqa: S301 - our own
        assert travelled() == key
        assert key.expose() not in pickle.dumps(ticket)
        assert ticket.token.hex() not in repr(ticket)
        assert repr(ticket.token) not in repr(ticket)
    assert travelled() == key  # who has it remembers
    _desk._fetched.cache_clear()
    with pytest.raises(CustodyError, match="is that process still running"):
        travelled()


def test_a_wrong_ticket_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_desk, "_PATIENCE", 2.0)
    with desk("127.0.0.1", sf.Key.generate()) as ticket:
        with pytest.raises(CustodyError, match="to be shared_key the key"):
            replace(ticket, token=bytes(32))()
        for nonsense in (b"", b"x" * 10, b"GET / HTTP/1.1\r\n" * 20):
            with socket.create_connection((ticket.host, ticket.port), timeout=5) as line:
                line.sendall(nonsense)
                line.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionResetError):  # who says too much is not heard to the end
                    assert line.recv(1) == b""
        ticket()  # the desk is still there


def test_who_listens_learns_nothing() -> None:
    """What goes over the line is different each time, and never holds the key."""
    key, seen = sf.Key.generate(), []
    with desk("127.0.0.1", key) as ticket:
        for _ in range(2):
            own = X25519PrivateKey.generate()
            public = own.public_key().public_bytes_raw()
            with socket.create_connection((ticket.host, ticket.port), timeout=5) as line:
                line.sendall(public + hmac.digest(ticket.token, public, "sha256"))
                seen.append(_desk._received(line, _desk._SEALED))
    assert seen[0][32:] != seen[1][32:]
    assert all(key.expose() not in answer for answer in seen)


def test_keys_are_not_pickled() -> None:
    with pytest.raises(CustodyError, match="a key cannot be pickled"):
        pickle.dumps(sf.Key.generate())
