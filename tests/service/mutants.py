"""Mutation fuzzing: valid requests and tables with random faults."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from tests import wards
from tests.service.test_matrix import CELLS

_UNUSUAL_VALUES: list[Any] = [
    *(None, True, -1, 0, 1e308, 2**70, float("1e-320"), "", "x" * 5000, "\u0000", "\ud7ff", "../../x", "é" * 50),
    *([], {}, [[]], {"a": {"b": []}}, "nan", "NaN", "1e999", "0.5", "0x1", "ward", "clinic", "'; drop table x; --"),
]
_HEADERS = ("Range", "If-None-Match", "If-Range", "Accept", "Content-Type", "Cookie", "X-CSRF-Token", "Authorization")
_HEADER_VALUES = (
    "bytes=0-",
    "bytes=-1",
    "bytes=99999999999999999999-",
    "*/*",
    ";q=",
    "text/csv;q=2",
    '"',
    "application/json",
)
_URL_PIECES = ("%00", "%2e%2e/", "..", "//", "%ff", "?", "&", "=", "%", "é", "{", "\\", ";", "#", "%0d%0a", " ")


class Mutants:
    """A reproducible generator of faulty requests and files."""

    def __init__(self, seed: list[int]) -> None:
        self._rng = np.random.default_rng(seed)

    def request(self) -> dict[str, Any]:
        """Method, URL, headers and body of a faulty request."""
        method, _, path, options, _ = self._choice(CELLS)
        while path.endswith("audits") and self._pick(20):  # audits take long, and one is like another
            method, _, path, options, _ = self._choice(CELLS)
        request: dict[str, Any] = {"method": method, "url": path, "headers": {}, "content": None}
        body = options.get("json")
        request["content"] = options.get("content") if body is None else json.dumps(body).encode()
        if body is not None:
            request["headers"]["Content-Type"] = "application/json"
        for _ in range(1 + self._pick(3)):
            self._corrupt(request, body)
        return request

    def raw(self) -> bytes:
        """Corrupted bytes of an HTTP request."""
        method, _, path, *_ = self._choice(CELLS)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {self._pick(9)}\r\n\r\n"
        return self._corrupted(head.encode())

    def file(self) -> tuple[str, bytes]:
        """A corrupted file with a table, and its suffix."""
        suffix, content = self._choice(_FILES)
        return suffix, self._corrupted(content)

    def _corrupt(self, request: dict[str, Any], body: Any) -> None:
        kind = self._pick(7)
        if kind == 0:
            at = self._pick(len(request["url"]) + 1)
            request["url"] = "/" + (request["url"][:at] + self._choice(_URL_PIECES) + request["url"][at:]).lstrip("/")
        elif kind == 1:
            request["method"] = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")[
                self._pick(9)
            ]
        elif kind == 2 and isinstance(body, dict):
            changed = {
                **body,
                (list(body) or ["x"])[self._pick(max(len(body), 1))]: self._choice(_UNUSUAL_VALUES),
            }
            request["content"] = json.dumps(changed).encode()
        elif kind == 3 and request["content"]:
            request["content"] = self._corrupted(request["content"])
        elif kind == 4:
            request["headers"][self._choice(_HEADERS)] = self._choice(_HEADER_VALUES)
        elif kind == 5:
            level = str(self._choice(_UNUSUAL_VALUES))[:500].replace("\u0000", "%00")
            request["url"] += f"{'&' if '?' in request['url'] else '?'}level={level}"
        else:
            request["content"] = self._rng.bytes(self._pick(3000))

    def _corrupted(self, content: bytes) -> bytes:
        out = bytearray(content)
        for _ in range(1 + self._pick(4)):
            at = self._pick(max(len(out), 1))
            if self._pick(4) == 0:
                del out[at : at + self._pick(40)]
            elif out:
                out[at % len(out)] = self._pick(256)
        return bytes(out)

    def _choice(self, values: Sequence[Any]) -> Any:
        return values[self._pick(len(values))]

    def _pick(self, count: int) -> int:
        return int(self._rng.integers(count))


def _files() -> Iterator[tuple[str, bytes]]:
    table = wards.table(60)
    for suffix in ("parquet", "csv", "arrow"):
        out = io.BytesIO()
        if suffix == "parquet":
            pa.parquet.write_table(table, out)
        elif suffix == "csv":
            pa.csv.write_csv(table, out)
        else:
            with pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        yield suffix, out.getvalue()


_FILES = list(_files())
