"""The key broker: how workers of a cluster get a key that touches no disk, no log and no dashboard.

What an engine sends to its workers may be written to disk, kept by a scheduler and shown on a page. So no key is sent:
workers get a token, and with it ask the process that started the work. It answers only while the work goes on; a token
that somebody finds later is useless. Both sides agree on a session key by X25519, authenticated by the token, so that
an eavesdropper learns nothing either.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import CustodyError
from sfumato.keys.key import BYTES, Key

_TIMEOUT = 20.0
"""Seconds that either side waits for the other."""
_PUBLIC = 32
_AUTHENTICATED = _PUBLIC + 32
_SEALED = _PUBLIC + BYTES + 16


@dataclass(frozen=True)
class KeyToken:
    """Lets a worker fetch the key; call it on the worker."""

    host: str
    port: int
    token: bytes = field(repr=False)

    def __call__(self) -> Key:
        """The key, which this process then caches."""
        return _fetched(self)


@contextlib.contextmanager
def key_broker(host: str, key: Key) -> Iterator[KeyToken]:
    """Serve a key at an address of this machine that the workers reach."""
    try:
        listening = socket.create_server((host, 0), backlog=128)
    except OSError as error:
        raise CustodyError(f"the key must be served at {host}, which is not possible: {error.strerror}") from None
    holder = KeyToken(host, listening.getsockname()[1], secrets.token_bytes(32))
    threading.Thread(target=_serve, args=(listening, holder.token, key), daemon=True).start()
    try:
        yield holder
    finally:
        with contextlib.suppress(OSError):  # it wakes the thread that waits in `accept`
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _serve(listening: socket.socket, token: bytes, key: Key) -> None:
    while True:
        try:
            caller, _ = listening.accept()
        except OSError:  # the broker was closed
            return
        threading.Thread(target=_answer, args=(caller, token, key), daemon=True).start()


def _answer(caller: socket.socket, token: bytes, key: Key) -> None:
    with caller, contextlib.suppress(OSError, ValueError):
        caller.settimeout(_TIMEOUT)
        request = _received(caller, _AUTHENTICATED)
        theirs, code = request[:_PUBLIC], request[_PUBLIC:]
        if hmac.compare_digest(hmac.digest(token, theirs, "sha256"), code):
            own = X25519PrivateKey.generate()
            public = own.public_key().public_bytes_raw()
            agreed = _agreed(own, theirs, token, theirs + public)
            caller.sendall(public + agreed.encrypt(bytes(12), key.expose(), None))


@lru_cache(maxsize=4)
def _fetched(holder: KeyToken) -> Key:
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes_raw()
    try:
        with socket.create_connection((holder.host, holder.port), timeout=_TIMEOUT) as connection:
            connection.sendall(public + hmac.digest(holder.token, public, "sha256"))
            answer = _received(connection, _SEALED)
        theirs = answer[:_PUBLIC]
        agreed = _agreed(own, theirs, holder.token, public + theirs)
        return Key.from_bytes(agreed.decrypt(bytes(12), answer[_PUBLIC:], None))
    except (OSError, ValueError, InvalidTag):
        raise CustodyError(
            f"a worker must reach the process that started the work, at {holder.host}:{holder.port}, to get the "
            "key, and it did not; is that process still running, and may workers connect to it?"
        ) from None


def _agreed(own: X25519PrivateKey, theirs: bytes, token: bytes, both: bytes) -> AESGCM:
    """A cipher for one message, which nobody without the token can have."""
    shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=token, info=b"sfumato-key-broker-1" + both).derive(shared))


def _received(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ValueError("the connection was closed")
        received += part
    return received
