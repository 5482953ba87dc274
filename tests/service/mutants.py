"""Requests and tables that nobody should send: right ones, with something wrong about them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from tests import wards
from tests.service.test_matrix import CELLS

_ODD: list[Any] = [
    *(None, True, -1, 0, 1e308, 2**70, float("1e-320"), "", "x" * 5000, "\u0000", "\ud7ff", "../../x", "é" * 50),
    *([], {}, [[]], {"a": {"b": []}}, "nan", "NaN", "1e999", "0.5", "0x1", "ward", "clinic", "'; drop table x; --"),
]
_HEADERS = ("Range", "If-None-Match", "If-Range", "Accept", "Content-Type", "Cookie", "X-CSRF-Token", "Authorization")
_WORDS = ("bytes=0-", "bytes=-1", "bytes=99999999999999999999-", "*/*", ";q=", "text/csv;q=2", '"', "application/json")
_PIECES = ("%00", "%2e%2e/", "..", "//", "%ff", "?", "&", "=", "%", "é", "{", "\\", ";", "#", "%0d%0a", " ")


class Mutants:
    """An endless supply, the same for the same seed."""

    def __init__(self, seed: list[int]) -> None:
        self._rng = np.random.default_rng(seed)

    def request(self) -> dict[str, Any]:
        """Method, address, headers and body of a request."""
        method, _, path, said, _ = CELLS[self._pick(len(CELLS))]
        while path.endswith("audits") and self._pick(20):  # they take long, and one is like another
            method, _, path, said, _ = CELLS[self._pick(len(CELLS))]
        made: dict[str, Any] = {"method": method, "url": path, "headers": {}, "content": None}
        body = said.get("json")
        made["content"] = said.get("content") if body is None else json.dumps(body).encode()
        if body is not None:
            made["headers"]["Content-Type"] = "application/json"
        for _ in range(1 + self._pick(3)):
            self._spoil(made, body)
        return made

    def raw(self) -> bytes:
        """Bytes that are hardly HTTP."""
        method, _, path, *_ = CELLS[self._pick(len(CELLS))]
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {self._pick(9)}\r\n\r\n"
        return self._bytes(head.encode())

    def file(self) -> tuple[str, bytes]:
        """A table that was damaged on its way, and its ending."""
        ending, content = _FILES[self._pick(len(_FILES))]
        return ending, self._bytes(content)

    def _spoil(self, made: dict[str, Any], body: Any) -> None:
        kind = self._pick(7)
        if kind == 0:
            at = self._pick(len(made["url"]) + 1)
            made["url"] = "/" + (made["url"][:at] + _PIECES[self._pick(len(_PIECES))] + made["url"][at:]).lstrip("/")
        elif kind == 1:
            made["method"] = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")[
                self._pick(9)
            ]
        elif kind == 2 and isinstance(body, dict):
            odd = {**body, (list(body) or ["x"])[self._pick(max(len(body), 1))]: _ODD[self._pick(len(_ODD))]}
            made["content"] = json.dumps(odd).encode()
        elif kind == 3 and made["content"]:
            made["content"] = self._bytes(made["content"])
        elif kind == 4:
            made["headers"][_HEADERS[self._pick(len(_HEADERS))]] = _WORDS[self._pick(len(_WORDS))]
        elif kind == 5:
            level = str(_ODD[self._pick(len(_ODD))])[:500].replace("\u0000", "%00")
            made["url"] += f"{'&' if '?' in made['url'] else '?'}level={level}"
        else:
            made["content"] = self._rng.bytes(self._pick(3000))

    def _bytes(self, content: bytes) -> bytes:
        out = bytearray(content)
        for _ in range(1 + self._pick(4)):
            at = self._pick(max(len(out), 1))
            if self._pick(4) == 0:
                del out[at : at + self._pick(40)]
            elif out:
                out[at % len(out)] = self._pick(256)
        return bytes(out)

    def _pick(self, count: int) -> int:
        return int(self._rng.integers(count))


def _written() -> Iterator[tuple[str, bytes]]:
    table = wards.table(60)
    for ending in ("parquet", "csv", "arrow"):
        out = io.BytesIO()
        if ending == "parquet":
            pa.parquet.write_table(table, out)
        elif ending == "csv":
            pa.csv.write_csv(table, out)
        else:
            with pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
        yield ending, out.getvalue()


_FILES = list(_written())
