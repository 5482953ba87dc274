"""HTTP requests as raw bytes, answered by the service's application in this process."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote_to_bytes

import structlog
from tests.conftest import Site
from tests.fuzz.mutation import UNUSUAL, Mutator, changed_bytes, changed_document
from tests.service.test_matrix import CELLS
from tests.serving import issue_tokens, populated_vault

import sfumato as sf
from sfumato.service.app import application
from sfumato.service.jobs import Task, execute
from sfumato.service.settings import Settings
from sfumato.service.worker_pool import CopyWorker, WorkerPool, _CopyStreams

_HEADERS = ("Range", "If-None-Match", "If-Range", "Accept", "Content-Type", "Cookie", "X-CSRF-Token", "Content-Length")
_VALUES = (
    "bytes=0-",
    "bytes=-1",
    "bytes=9-2",
    "*/*",
    ";q=",
    "text/csv;q=2",
    '"',
    "application/json",
    "-1",
    "1e9",
    "\0",
)
_TOKEN = "TOKEN-OF-"  # noqa: S105 - none
"""Stands for the token of a role, which differs from run to run."""


class _InProcess(CopyWorker):
    """A copy worker in this process."""

    def __init__(self, vault: sf.Vault) -> None:
        self._copies, self._numbers, self.active_streams = _CopyStreams(vault), itertools.count(), 0

    async def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._copies, method)(*arguments)

    def close(self) -> None:
        pass


class _JobsHere:
    """Jobs in a thread of this process: there are too many requests for a process each."""

    def __init__(self, vault: sf.Vault, settings: Settings) -> None:
        self._vault, self._settings = vault, settings

    def run(self, task: Task) -> bool:
        execute(task, self._vault, self._settings)
        return True

    def kill(self, job: str) -> None:
        """It cannot be stopped."""

    def close(self) -> None:
        """There is nothing to stop."""


class HttpParser:
    """Sends requests to the application: every response must have a status below 500."""

    def __init__(self, secret: sf.Key) -> None:
        self._secret = secret
        self._tokens: dict[str, str] = {}

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="sfumato-fuzz-")

    @cached_property
    def _app(self) -> Any:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))  # no access log
        folder = Path(self._folder.name) / "site"
        folder.mkdir()
        vault = populated_vault(Site("sqlite", folder, None, self._secret))
        self._tokens = issue_tokens(vault)
        pool = WorkerPool(lambda: vault, 0)
        pool._workers = [_InProcess(vault)]
        settings = Settings(secure=False, requests_per_minute=10**9, failures_per_minute=10**9)
        return application(vault, settings, pool, _JobsHere(vault, settings))

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    def __call__(self, content: bytes) -> None:
        app = self._app
        for role, token in self._tokens.items():
            content = content.replace(f"{_TOKEN}{role}".encode(), token.encode())
        head, _, body = content.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        method, _, rest = first.partition(b" ")
        target = rest.rpartition(b" ")[0] or b"/"
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 12345),
            "root_path": "",
            "method": method.decode("latin-1").upper(),
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "headers": [(n.strip().lower(), v.strip()) for n, _, v in (line.partition(b":") for line in lines) if n],
        }
        status = self._loop.run_until_complete(_status(app, scope, body))
        assert status < 500, f"status {status}"

    @staticmethod
    def mutants() -> Mutator:
        """Valid requests with changed targets, headers and bodies."""
        cells = [cell for cell in CELLS if not cell[2].endswith(("audits", "traces"))]  # these start long jobs

        def mutant(rng: Random) -> bytes:
            method, _, path, options, _ = rng.choice(cells)
            body = b"" if options.get("content") is None else bytes(options["content"])
            if "json" in options:
                document = options["json"] if rng.randrange(4) == 0 else changed_document(rng, options["json"])
                body = json.dumps(document).encode()
            role = rng.choice(("owner", "owner", "owner", "clinic", "reader", "nobody"))
            lines = [f"Authorization: Bearer {_TOKEN}{role}", "Content-Type: application/json", "Host: x"]
            if rng.randrange(2):
                lines.append(f"{rng.choice(_HEADERS)}: {rng.choice(_VALUES)}")
            if rng.randrange(3) == 0:
                value = str(rng.choice(UNUSUAL))[:400].encode("utf-8", "replace")
                path += ("&" if "?" in path else "?") + "level=" + value.decode("latin-1")
            target = path.encode("utf-8")
            target = changed_bytes(rng, target).replace(b" ", b"%20") if rng.randrange(3) == 0 else target
            head = b"\r\n".join([method.encode() + b" " + target + b" HTTP/1.1", *(line.encode() for line in lines)])
            whole = head + b"\r\n\r\n" + body
            return changed_bytes(rng, whole) if rng.randrange(4) == 0 else whole

        return mutant


async def _status(app: Any, scope: dict[str, Any], body: bytes) -> int:
    found: list[int] = []
    sent = False

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    await app(scope, receive, send)
    return found[0]
