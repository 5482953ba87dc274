"""The desk: how a key gets to the workers of a cluster without touching a disk, a log or a dashboard.

What an engine sends to its workers may be written to disk, kept by a scheduler and shown on a page. So no key is sent:
workers get a ticket, and with it ask the process that started the work. It answers while the work goes on, no longer; a
ticket that somebody finds later is worth nothing. The two agree on a key by X25519, both sides vouched for by the
ticket, so that who listens learns nothing either.
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

_PATIENCE = 20.0
"""Seconds that either side waits for the other."""
_PUBLIC = 32
_VOUCHED = _PUBLIC + 32
_SEALED = _PUBLIC + BYTES + 16


@dataclass(frozen=True)
class KeyToken:
    """Lets a worker ask for the key; call it there."""

    host: str
    port: int
    token: bytes = field(repr=False)

    def __call__(self) -> Key:
        """The key, which this process then remembers."""
        return _fetched(self)


@contextlib.contextmanager
def desk(host: str, key: Key) -> Iterator[KeyToken]:
    """Answer for a key at an address of this machine that the workers reach."""
    try:
        listening = socket.create_server((host, 0), backlog=128)
    except OSError as error:
        raise CustodyError(f"the key cannot be handed out at {host}: {error.strerror}") from None
    ticket = KeyToken(host, listening.getsockname()[1], secrets.token_bytes(32))
    threading.Thread(target=_serve, args=(listening, ticket.token, key), daemon=True).start()
    try:
        yield ticket
    finally:
        with contextlib.suppress(OSError):  # it wakes who waits in `accept`
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _serve(listening: socket.socket, token: bytes, key: Key) -> None:
    while True:
        try:
            caller, _ = listening.accept()
        except OSError:  # the desk was closed
            return
        threading.Thread(target=_answer, args=(caller, token, key), daemon=True).start()


def _answer(caller: socket.socket, token: bytes, key: Key) -> None:
    with caller, contextlib.suppress(OSError, ValueError):
        caller.settimeout(_PATIENCE)
        asked = _received(caller, _VOUCHED)
        theirs, vouched = asked[:_PUBLIC], asked[_PUBLIC:]
        if hmac.compare_digest(hmac.digest(token, theirs, "sha256"), vouched):
            own = X25519PrivateKey.generate()
            public = own.public_key().public_bytes_raw()
            agreed = _agreed(own, theirs, token, theirs + public)
            caller.sendall(public + agreed.encrypt(bytes(12), key.expose(), None))


@lru_cache(maxsize=4)
def _fetched(ticket: KeyToken) -> Key:
    own = X25519PrivateKey.generate()
    public = own.public_key().public_bytes_raw()
    try:
        with socket.create_connection((ticket.host, ticket.port), timeout=_PATIENCE) as line:
            line.sendall(public + hmac.digest(ticket.token, public, "sha256"))
            answer = _received(line, _SEALED)
        theirs = answer[:_PUBLIC]
        agreed = _agreed(own, theirs, ticket.token, public + theirs)
        return Key.from_bytes(agreed.decrypt(bytes(12), answer[_PUBLIC:], None))
    except (OSError, ValueError, InvalidTag):
        raise CustodyError(
            f"a worker must reach the process that started the work, at {ticket.host}:{ticket.port}, to be shared_key the "
            "key, and it did not; is that process still running, and may workers connect to it?"
        ) from None


def _agreed(own: X25519PrivateKey, theirs: bytes, token: bytes, both: bytes) -> AESGCM:
    """A cipher for one message, which only the two sides and nobody without the ticket can have."""
    shared = own.exchange(X25519PublicKey.from_public_bytes(theirs))
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=token, info=b"sfumato-desk-1" + both).derive(shared))


def _received(line: socket.socket, size: int) -> bytes:
    held = b""
    while len(held) < size:
        part = line.recv(size - len(held))
        if not part:
            raise ValueError("the line was closed")
        held += part
    return held
