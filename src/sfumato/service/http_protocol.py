"""HTTP protocol of the server: uvicorn's, with a deadline for request headers and a limit on open connections.

A client that opens connections and never finishes its requests would otherwise hold file descriptors until nobody else
can connect. So a request's headers must arrive in time, and when there are too many connections the one that has waited
longest without a request is closed.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEADER_TIMEOUT = 10.0
"""Seconds within which the headers of a request must be complete."""

_DISCARD_UNSENT = struct.pack("ii", 1, 0)
"""The value of `SO_LINGER` with which closing a socket discards what the kernel has not sent yet."""


def raise_file_limit() -> None:
    """Allow this process, and those that it starts, as many open files as the system permits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections() -> int:
    """The largest number of connections of one server worker: half of its open files, to leave some for the vault."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection, which is closed if its request does not arrive in time."""

    _waiting: ClassVar[dict[BoundedHttpProtocol, None]] = {}
    """The connections of this process without a complete request, the longest waiting first."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; the longest waiting connection is closed if there are too many."""
        super().connection_made(transport)
        self._waiting[self] = None
        self._start_deadline()
        if len(self.connections) > max_connections():
            next(iter(self._waiting)).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Expect the headers of a request from now on."""
        super().on_message_begin()
        self.scope["abort"] = self.abort  # type: ignore[typeddict-unknown-key]
        self._start_deadline()

    def on_headers_complete(self) -> None:
        """Handle the request."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, for which uvicorn's own time limit applies until its first byte."""
        self._waiting[self] = None
        super().on_response_complete()

    def abort(self) -> None:
        """Close the connection at once, and discard all that was not sent yet."""
        self._stop_waiting()
        connected: socket.socket | None = self.transport.get_extra_info("socket")
        if connected is not None and not self.transport.is_closing():
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD_UNSENT)
        self.transport.abort()

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_TIMEOUT, self.abort)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
