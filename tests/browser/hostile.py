"""A hostile survey server: it serves the honest page and module, and replies to every answer as a test tells it."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from threading import Thread
from typing import Any

from sfumato.service.web.surveys import BROWSER, MODULES
from sfumato.survey import Survey
from sfumato.survey.example import EXAMPLE

_HEAD = '<title>Hostile</title><link rel="stylesheet" href="/survey/sfumato-form.css">'

PAGE = _HEAD + "".join(f'<script type="module" src="/survey/{one}"></script>' for one in MODULES)

HEADERS = {
    "Retry-After": "0",
    "Clear-Site-Data": '"*"',
    "Set-Cookie": "person=1",
    "Refresh": "0",
    "Location": "/api/v1/respond/again/answers",
}
"""Headers of every reply to an answer."""

PROBLEM = ("application/problem+json", b'{"detail": "Answer again, please."}')
BODIES = {
    "problem": PROBLEM,
    "page": ("text/html", b"<h1>Answer again</h1>"),
    "empty": ("application/json", b""),
    "null": ("application/problem+json", b"null"),
    "uncounted": ("application/json", b'{"counted": "no", "state": "none", "content": {}, "row": [0]}'),
    "huge": ("application/json", b"[" + b"0," * 1_000_000 + b"0]"),
}
STATUSES = (
    *(200, 201, 202, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308),
    *(400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 421, 422, 423, 425, 426, 428),
    *(429, 431, 451, 499, 500, 501, 502, 503, 504, 507, 511, 520, 599, 0),
)
"""Status codes of replies; 0 cuts the connection."""

VARIANTS = tuple(
    Survey.loads(EXAMPLE.replace("careful = 0.5", careful).replace("Do you own", question)).published
    for careful, question in (
        ("careful = 0.5", "Do you own"),
        ("careful = 3.0", "Do you own"),
        ("careful = 1", "Own you"),
    )
)
"""Definitions of one and the same survey, with other probabilities and other questions."""


class HostileServer:
    """What the server replies with, and what it received."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.reply: tuple[int, str] = (503, "problem")
        self.definitions: Iterator[str] = repeat(VARIANTS[0])
        self.page_headers: dict[str, str] = {}

    @property
    def rows(self) -> set[str]:
        """All distinct rows received, whatever else was sent with them."""
        return {json.dumps(one["row"]) for one in self.received}

    def survey(self) -> bytes:
        """The definition, which may differ from the one before."""
        definition = next(self.definitions)
        version = hashlib.sha256(definition.encode()).hexdigest()
        said = {"survey": "s", "state": "open", "definition": definition, "version": version, "wanted": True}
        return json.dumps(said).encode()


@contextmanager
def hostile_server() -> Iterator[HostileServer]:
    """A running server."""
    state = HostileServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            if self.path.startswith("/survey/"):
                kind = "text/css" if self.path.endswith(".css") else "text/javascript"
                self._say(200, kind, (BROWSER / self.path[8:]).read_bytes())
            elif self.path.startswith("/api/"):
                self._say(200, "application/json", state.survey())
            else:
                name = self.path.strip("/")
                page = f'{PAGE}<sfumato-survey survey="{name}"></sfumato-survey>' if name else PAGE
                self._say(200, "text/html", page.encode(), state.page_headers)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with state.lock:  # a path and its body belong together
                state.paths.append(self.path)
                state.received.append(body)
            named = re.search(r"/respond/(\d+)-(\w+)/", self.path)  # a survey named after the reply to its answers
            status, body = (int(named[1]), named[2]) if named else state.reply
            if not status:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self._say(status, *BODIES[body], HEADERS)

        def _say(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {**(headers or {}), "Content-Type": kind, "Content-Length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            if status not in (204, 205, 304):
                self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        yield state
        server.shutdown()
