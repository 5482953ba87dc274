"""The process that answers one question of a recipient about one copy, or profiles it, and can do little else.

It gets the question and the copy on standard input, and writes the answer to standard output. It has no key and no
environment of the service; its time, its memory and the size of its files are limited before it reads anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import IO, Any

SECONDS = 60
"""Processor seconds of one answer."""

MEMORY = 2 << 30
"""Bytes of memory of one answer."""

ROWS, CHARACTERS = 1_000, 1_500_000
"""The most rows of an answer, and the most characters."""

_FILES = 64 << 20
"""Bytes of a file that it may write: a cache of compiled code, and no copies."""


def limit() -> None:
    """Limit this process for good."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILES, _FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(10)
    with contextlib.suppress(OSError):  # where memory ends in spite of that, this process goes, and no server worker
        Path("/proc/self/oom_score_adj").write_text("1000")


def answered(question: str, stream: IO[bytes]) -> dict[str, Any]:
    """The answer to a question about a copy in Parquet, or the reason why there is none."""
    import pyarrow as pa  # noqa: PLC0415 - after the limits
    import pyarrow.parquet as pq  # noqa: PLC0415

    from sfumato.errors import SfumatoError  # noqa: PLC0415
    from sfumato.mining import ask  # noqa: PLC0415
    from sfumato.mining.sql.explanation import cells, explanation, method_of  # noqa: PLC0415
    from sfumato.release.manifest import Manifest  # noqa: PLC0415
    from sfumato.serialization import json_safe  # noqa: PLC0415

    try:
        copy = pq.read_table(pa.BufferReader(stream.read()))
        answer = ask(copy, question)
    except SfumatoError as error:
        return {"refused": str(error)}
    if answer.num_rows > ROWS:
        return {"refused": f"an answer may have {ROWS:,} rows, and this one has {answer.num_rows:,}; group by fewer"}
    columns, shown = cells(answer)
    how = explanation(answer, Manifest.of(copy), question)
    found = {"answer": answer.to_pylist(), "method": method_of(answer), "how": how, "columns": columns, "shown": shown}
    return dict(json_safe(found))


def profiled(stream: IO[bytes]) -> dict[str, Any]:
    """The profile of the original, estimated from a copy in Parquet, as a page; or the reason why there is none."""
    import pyarrow as pa  # noqa: PLC0415 - after the limits
    import pyarrow.parquet as pq  # noqa: PLC0415

    from sfumato.errors import SfumatoError  # noqa: PLC0415
    from sfumato.mining import profile  # noqa: PLC0415
    from sfumato.mining.report.page import page  # noqa: PLC0415

    try:
        return {"page": page(profile(pq.read_table(pa.BufferReader(stream.read()))))}
    except SfumatoError as error:
        return {"refused": str(error)}


def main() -> None:
    """Answer the question in the first line, about the copy after it; without one, profile the copy."""
    limit()
    question = json.loads(sys.stdin.buffer.readline())
    try:
        found = profiled(sys.stdin.buffer) if question is None else answered(question, sys.stdin.buffer)
        text = json.dumps(found, allow_nan=False)
    except MemoryError:
        text = json.dumps({"refused": f"an answer may take {MEMORY >> 30} GiB of memory, and this one takes more"})
    if len(text) > CHARACTERS:
        reason = f"an answer may have {CHARACTERS:,} characters, and this one has {len(text):,}; ask for less"
        text = json.dumps({"refused": reason})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
