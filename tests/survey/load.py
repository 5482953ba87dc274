"""Load generator for surveys: `python -m tests.survey.load URL SURVEY SECONDS CONNECTIONS` sends answers without pause.

Each answer is sent until it is confirmed, with the same ticket. The script prints when it begins, and at the end the
number of confirmed answers as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

import numpy as np

from sfumato.survey.respondent import Choice, HttpConnection, Respondent
from sfumato.survey.simulation import random_answers


class Sender:
    """An HTTP connection that is opened again after it breaks."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._pair: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> int:
        if self._pair is None:
            self._pair = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._pair
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[16:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length: "))
        await reader.readexactly(length)
        return int(answer[9:12])

    def drop(self) -> None:
        if self._pair:
            self._pair[1].close()
        self._pair = None


async def main(url: str, name: str, seconds: float, connections: int) -> None:
    rng, respondent = np.random.default_rng(), Respondent(HttpConnection(url), name)
    survey, path = respondent.survey(), f"/api/v1/respond/{name}/answers"
    person = random_answers(survey, rng)
    print("begun", flush=True)
    confirmed, retries, unexpected, end = 0, 0, 0, time.monotonic() + seconds
    by_second: dict[int, int] = {}

    async def send_until_end() -> None:
        nonlocal confirmed, retries, unexpected
        sender = Sender(url)
        while time.monotonic() < end:
            respondent = Respondent(HttpConnection(url), name)
            respondent.prepare(survey, person, Choice(int(rng.integers(3))))
            body, status = json.dumps(respondent._body).encode(), 0
            while status not in (200, 201):
                try:
                    status = await asyncio.wait_for(sender.post(path, body), 20)
                except (OSError, TimeoutError, asyncio.IncompleteReadError):
                    status = 0
                if status not in (200, 201):
                    sender.drop()
                    retries += 1
                    unexpected += status not in (0, 503)
                    await asyncio.sleep(0.05)
            confirmed += 1
            second = int(seconds - (end - time.monotonic()))
            by_second[second] = by_second.get(second, 0) + 1
        sender.drop()

    await asyncio.gather(*(send_until_end() for _ in range(connections)))
    print(json.dumps({"confirmed": confirmed, "retries": retries, "unexpected": unexpected, "by_second": by_second}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))
