"""Talking to a service: one request at a time, with its refusals as our own errors."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import GrantError, ServiceError, SfumatoError, UnknownSubject, VaultError

_PATIENCE = 60.0
"""Seconds to wait for an answer."""

_TRIES = 5
"""How often a download that broke off is taken up again without a byte of progress."""

_ERRORS: dict[int, type[SfumatoError]] = {403: GrantError, 404: UnknownSubject, 422: VaultError}

API = "/api/v1"

Progress = Callable[[int], None]


class Connection:
    """A connection to a service, with a token."""

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            import httpx2  # noqa: PLC0415 - an extra
        except ImportError:
            raise ServiceError("a service is reached with httpx2; run `pip install 'sfumato[client]'`") from None
        token = token or os.environ.get("SFUMATO_TOKEN")
        if not token:
            raise ServiceError("a service wants a token; give it, or set SFUMATO_TOKEN")
        self.url = url.rstrip("/")
        self._errors = httpx2.HTTPError
        self._http = httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=_PATIENCE, follow_redirects=False
        )
        self.close = weakref.finalize(self, self._http.close)  # also when nobody uses it any more

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"

    def ask(self, method: str, path: str, **said: Any) -> Any:
        """The answer, as JSON says it."""
        try:
            answer = self._http.request(method, API + path, **said)
        except self._errors as error:
            raise self._silent(error) from None
        self._check(answer)
        return answer.json() if answer.headers.get("content-type", "").startswith("application/json") else answer.text

    def wait(
        self, job: str, stage: Callable[[str], None] | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The result of a job, when it has one."""
        done, pause = 0, 0.05
        while True:
            found = self.ask("GET", f"/jobs/{job}")
            if stage:
                stage(found["stage"])
            if progress and found["rows"] > done:
                progress(found["rows"] - done)
                done = found["rows"]
            if found["state"] == "done":
                result: dict[str, Any] = found["result"]
                return result
            if found["state"] in ("failed", "lost"):
                raise VaultError(
                    found["stage"] if found["state"] == "failed" else "the service lost this job; ask again"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def fetch(self, path: str, query: dict[str, str], out: Path, progress: Progress | None = None) -> None:
        """Write an answer to a file; one that breaks off is taken up where it ended."""
        tag, tries, got = "", _TRIES, 0
        with out.open("wb") as file:
            while True:
                before = got
                headers = {"Range": f"bytes={got}-", "If-Range": tag} if got and tag else {}
                try:
                    with self._http.stream("GET", API + path, params=query, headers=headers) as answer:
                        if got and answer.headers.get("content-range") == f"bytes */{got}":
                            return  # it broke off between the last byte and the word that it was the last
                        if answer.status_code >= 400:
                            answer.read()
                        self._check(answer)
                        if answer.status_code == 200:  # from the start: another copy, or a service without ranges
                            file.seek(got := 0)
                            file.truncate()
                        tag = answer.headers.get("etag", "")
                        for chunk in answer.iter_raw():
                            file.write(chunk)
                            got += len(chunk)
                            if progress:
                                progress(len(chunk))
                    return
                except self._errors as error:
                    tries = _TRIES if got > before else tries - 1
                    if not tries:
                        raise self._silent(error) from None
                    time.sleep(0.2)

    def upload(self, path: Path, progress: Progress | None = None) -> str:
        """Send a file in parts; returns the upload's id."""
        begun = self.ask("POST", "/uploads", json={"name": path.name})
        for number, part in enumerate(_parts(path, begun["part"]), 1):
            self.ask("PUT", f"/uploads/{begun['upload']}/parts/{number}", content=part)
            if progress:
                progress(len(part))
        return str(begun["upload"])

    def _check(self, answer: Any) -> None:
        if answer.status_code < 400:
            return
        try:
            said = str(answer.json()["detail"])
        except (ValueError, KeyError, TypeError):
            said = f"the service answered with {answer.status_code}"
        raise _ERRORS.get(answer.status_code, ServiceError)(said)

    def _silent(self, error: Exception) -> ServiceError:
        return ServiceError(f"the service at {self.url} gave no answer: {type(error).__name__}; see that it runs")


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        empty = True
        while part := file.read(size):
            empty = False
            yield part
        if empty:
            yield b""
