"""HTTP requests to a service, with resumable downloads, uploads in parts, and errors of this package."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import GrantError, ServiceError, SfumatoError, UnknownSubject, VaultError, install_hint

_TIMEOUT = 60.0
"""Seconds to wait for a response."""

_MAX_RETRIES = 5
"""How often an interrupted download is resumed without a byte of progress."""

_ERRORS: dict[int, type[SfumatoError]] = {403: GrantError, 404: UnknownSubject, 422: VaultError}

API = "/api/v1"

Progress = Callable[[int], None]


class Connection:
    """A connection to a service, authenticated by a token."""

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx2  # noqa: PLC0415 - an extra
        except ImportError:
            raise ServiceError(f"connecting to a service needs httpx2; {install_hint('client')}") from None
        token = token or os.environ.get("SFUMATO_TOKEN")
        if not token:
            raise ServiceError("a service needs a token; give one, or set SFUMATO_TOKEN")
        self.url = url.rstrip("/")
        self._errors = httpx2.HTTPError
        self._http = httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT, follow_redirects=False
        )
        self.close = weakref.finalize(self, self._http.close)  # also when it is garbage-collected

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    def request(self, method: str, path: str, **options: Any) -> Any:
        """The response to a request: decoded if it is JSON, else its text."""
        response = self._send(method, path, **options)
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.json() if is_json else response.text

    def content(self, path: str) -> bytes:
        """A file of the service, byte by byte."""
        return bytes(self._send("GET", path).content)

    def _send(self, method: str, path: str, **options: Any) -> Any:
        """The response to a request, which is no error."""
        try:
            response = self._http.request(method, API + path, **options)
        except self._errors as error:
            raise self._unavailable(error) from None
        self._check(response)
        return response

    def wait(
        self, job: str, stage: Callable[[str], None] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Wait until a job has finished, and return its result."""
        done, pause = 0, 0.05
        while True:
            status = self.request("GET", f"/jobs/{job}")
            if stage:
                stage(status["stage"])
            if progress and status["rows"] > done:
                progress(status["rows"] - done)
                done = status["rows"]
            if status["state"] == "done":
                result: dict[str, Any] = status["result"]
                return result
            if status["state"] == "failed":
                raise VaultError(status["stage"])
            if status["state"] == "cancelled":
                raise VaultError("this job was cancelled, and has no result")
            if status["state"] == "lost":
                raise VaultError("the service stopped before it finished this job; start it again")
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def fetch(self, path: str, query: dict[str, str], out: Path, progress: Progress | None = None) -> None:
        """Download to a file; an interrupted download is resumed where it ended."""
        tag, retries, received = "", _MAX_RETRIES, 0
        with out.open("wb") as file:
            while True:
                before = received
                headers = {"Range": f"bytes={received}-", "If-Range": tag} if received and tag else {}
                try:
                    with self._http.stream("GET", API + path, params=query, headers=headers) as response:
                        if received and response.headers.get("content-range") == f"bytes */{received}":
                            return  # it was interrupted after the last byte, before the end of the response
                        if response.status_code >= 400:
                            response.read()
                        self._check(response)
                        if response.status_code == 200:  # from the start: another copy, or no support for ranges
                            file.seek(received := 0)
                            file.truncate()
                        tag = response.headers.get("etag", "")
                        for chunk in response.iter_raw():
                            file.write(chunk)
                            received += len(chunk)
                            if progress:
                                progress(len(chunk))
                    return
                except self._errors as error:
                    retries = _MAX_RETRIES if received > before else retries - 1
                    if not retries:
                        raise self._unavailable(error) from None
                    time.sleep(0.2)

    def upload(self, path: Path, progress: Progress | None = None) -> str:
        """Upload a file in parts, and return the id of the upload."""
        upload = self.request("POST", "/uploads", json={"name": path.name})
        for number, part in enumerate(_parts(path, upload["part"]), 1):
            self.request("PUT", f"/uploads/{upload['upload']}/parts/{number}", content=part)
            if progress:
                progress(len(part))
        return str(upload["upload"])

    def _check(self, response: Any) -> None:
        """Raise the error of a response."""
        if response.status_code < 400:
            return
        try:
            message = str(response.json()["detail"])
        except (ValueError, KeyError, TypeError):
            message = f"the service responded with status {response.status_code}"
        raise _ERRORS.get(response.status_code, ServiceError)(message)

    def _unavailable(self, error: Exception) -> ServiceError:
        return ServiceError(f"the service at {self.url} did not respond: {type(error).__name__}; check that it runs")


def _parts(path: Path, size: int) -> Iterator[bytes]:
    """The parts of a file; an empty file has one empty part."""
    with path.open("rb") as file:
        empty = True
        while part := file.read(size):
            empty = False
            yield part
        if empty:
            yield b""
