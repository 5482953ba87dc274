"""Small inputs that ask for much memory or time: each is parsed in a forked process, whose peak memory is measured.

`python -m tests.fuzz.bombs` prints a line of JSON for each.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import tarfile
import time
import traceback
from collections.abc import Callable

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from tests import wards
from tests.fuzz.campaign import SECONDS
from tests.fuzz.parsers import OLD, PARSERS, SECRET

import sfumato as sf
from sfumato.errors import SfumatoError

_DEEP = 200_000


def _manifest(**changes: object) -> bytes:
    table = wards.policy().fit(wards.table(60)).release(wards.table(60), "partner", SECRET)
    return json.dumps(json.loads(sf.Manifest.of(table).dumps()) | changes).encode()


def _policy(text: str) -> bytes:
    return text.encode() + b"\n" + wards.POLICY.encode()


def _tar(compress: Callable[[bytes], bytes], size: int = 2 << 30) -> bytes:
    """A compressed archive, in many short streams, whose ledger is one very long line."""
    member = tarfile.TarInfo("ledger.jsonl")
    member.size = size
    return compress(member.tobuf()) + compress(bytes(1 << 20)) * (size >> 20) + compress(bytes(1024))


def _sparse_tar() -> bytes:
    """An archive that declares a ledger of 4 GiB."""
    member = tarfile.TarInfo("ledger.jsonl")
    member.size = 4 << 30
    return member.tobuf() + b"[" * 100_000


def _parquet(rows: int) -> bytes:
    """Very many rows in few bytes."""
    out = io.BytesIO()
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()).take(pa.array([0] * 1000)), ["x" * 1000])
    batch = pa.record_batch({"a": pa.concat_arrays([column] * (rows // 1000))})
    with pyarrow.parquet.ParquetWriter(out, batch.schema, compression="zstd") as writer:
        writer.write_batch(batch, row_group_size=rows)
    return out.getvalue()


def _arrow() -> bytes:
    """A compressed column that declares a length of 2⁶⁰ bytes."""
    out = io.BytesIO()
    table = pa.table({"a": pa.array([0] * 5000)})
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return out.getvalue().replace((40_000).to_bytes(8, "little"), (1 << 60).to_bytes(8, "little"))


def _request(body: bytes, path: str = "/api/v1/datasets") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nAuthorization: Bearer TOKEN-OF-owner\r\nContent-Type: application/json\r\n\r\n"
    return head.encode() + body


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "manifest of nested lists": ("manifest", lambda: b"[" * _DEEP),
    "manifest of nested objects": ("manifest", lambda: b'{"a":' * _DEEP),
    "manifest with a number of a million digits": ("manifest", lambda: b'{"sfumato": ' + b"9" * 10**6 + b"}"),
    "manifest that declares 10^18 rows": ("manifest in metadata", lambda: _manifest(rows=10**18)),
    "policy of nested lists": ("policy", lambda: _policy("x = " + "[" * _DEEP)),
    "policy of nested tables": ("policy", lambda: _policy("x = " + "{a=" * _DEEP)),
    "policy with a dotted key": ("policy", lambda: _policy(".".join(["a"] * 20_000) + " = 1")),
    "policy with a number of a million digits": ("policy", lambda: _policy("digits = " + "9" * 10**6)),
    "policy with a domain of 3 billion values": (
        "fitted policy",
        lambda: wards.POLICY.replace(
            '"gaussian"', '{ role = "uniform", domain = { min = 0, max = 3000000000 } }'
        ).encode(),
    ),
    "survey of nested lists": ("survey definition", lambda: b"x = " + b"[" * _DEEP),
    "scheme of nested lists": ("scheme", lambda: b"[" * _DEEP),
    "condition of nested brackets": ("condition on rows", lambda: b"(" * _DEEP),
    "condition of many negations": ("condition on rows", lambda: b"not " * 20_000 + b"age > 1"),
    "condition with a power": ("condition on rows", lambda: b"age > 9**9**9**9"),
    "gzip backup": ("backup", lambda: _tar(gzip.compress)),
    "bzip2 backup": ("backup", lambda: _tar(bz2.compress)),
    "xz backup": ("backup", lambda: _tar(lzma.compress)),
    "backup that declares 4 GiB": ("backup", _sparse_tar),
    "damaged gzip backup": ("backup", lambda: gzip.compress((OLD / "vault.backup").read_bytes())[:-2000]),
    "csv of one long line": ("csv table", lambda: b"a," * (8 << 20)),
    "csv of many columns": ("csv table", lambda: b"\n".join([b",".join(b"%d" % i for i in range(8_000))] * 2)),
    "csv with an unclosed quote": ("csv table", lambda: b'a,b\n1,"' + b"x,\n" * (2 << 20)),
    "parquet of repeated text": ("parquet table", lambda: _parquet(2_000_000)),
    "arrow column that declares 2^60 bytes": ("arrow file", _arrow),
    "request of nested lists": ("http request", lambda: _request(b"[" * 400_000)),
    "request with a nested policy": (
        "http request",
        lambda: _request(json.dumps({"policy": "x = " + "[" * 300_000, "upload": "x"}).encode()),
    ),
}


def _exploded(name: str) -> str:
    """What became of one input in this process, in a few words; empty if it was accepted or refused as it should be."""
    parser, make = BOMBS[name]
    content = make()
    begin = time.process_time()
    try:
        PARSERS[parser].parse(content)
    except SfumatoError:
        pass
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:300] + traceback.format_exc()[-300:]
    seconds = time.process_time() - begin
    return f"{seconds:.1f} s" if seconds > SECONDS else ""


def main() -> None:
    """Parse each in a child, since a peak of memory is of a process."""
    for name in sys.argv[1:] or BOMBS:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, _exploded(name).encode()[:4000])
            os._exit(0)
        os.close(writing)
        found = os.read(reading, 4000).decode()
        os.close(reading)
        _, status, used = os.wait4(child, 0)
        print(json.dumps([name, found or (f"status {status}" if status else ""), used.ru_maxrss << 10]), flush=True)


if __name__ == "__main__":
    main()
