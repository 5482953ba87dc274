"""The process that does one task with one copy of a recipient, and can do little else.

It gets the task and the copy on standard input, and writes the answer to standard output. It has no key and no
environment of the service; its time, its memory and the size of its files are limited before it reads anything.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from collections.abc import Callable
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


def answered(copy: Any, question: str) -> dict[str, Any]:
    """The answer to a question about a copy."""
    from sfumato.errors import MiningError  # noqa: PLC0415 - after the limits
    from sfumato.mining import ask  # noqa: PLC0415
    from sfumato.mining.sql.explanation import cells, explanation, method_of  # noqa: PLC0415
    from sfumato.release.manifest import Manifest  # noqa: PLC0415
    from sfumato.serialization import json_safe  # noqa: PLC0415

    answer = ask(copy, question)
    if answer.num_rows > ROWS:
        raise MiningError(f"an answer may have {ROWS:,} rows, and this one has {answer.num_rows:,}; group by fewer")
    columns, shown = cells(answer)
    how = explanation(answer, Manifest.of(copy), question)
    found = {"answer": answer.to_pylist(), "method": method_of(answer), "how": how, "columns": columns, "shown": shown}
    return dict(json_safe(found))


def profiled(copy: Any, _: None) -> dict[str, Any]:
    """The profile of the original, estimated from a copy, as a page."""
    from sfumato.mining import profile  # noqa: PLC0415 - after the limits
    from sfumato.mining.report.page import page  # noqa: PLC0415

    return {"page": page(profile(copy))}


def checked(copy: Any, signers: list[str]) -> dict[str, Any]:
    """What a copy's certificate says, if one of these keys signed it and the copy is as it was signed."""
    from sfumato.errors import ManifestError  # noqa: PLC0415 - after the limits
    from sfumato.release.certificate import check  # noqa: PLC0415

    found = check(copy)
    if found.signer not in signers:
        raise ManifestError(
            f"the copy must be signed by this vault, and {found.signer[:16]}… signed it; do not trust it"
        )
    return {"dataset": found.dataset, "version": found.version, "recipient": found.recipient, "rows": found.rows}


TASKS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {"answer": answered, "profile": profiled, "check": checked}


def done(task: str, argument: Any, stream: IO[bytes]) -> dict[str, Any]:
    """The result of a task with a copy in Parquet, or the reason why there is none."""
    import pyarrow as pa  # noqa: PLC0415 - after the limits
    import pyarrow.parquet as pq  # noqa: PLC0415

    from sfumato.errors import SfumatoError  # noqa: PLC0415

    try:
        return TASKS[task](pq.read_table(pa.BufferReader(stream.read())), argument)
    except SfumatoError as error:
        return {"refused": str(error)}
    except MemoryError:
        raise
    except Exception:
        if task != "check":
            raise
        return {"refused": "the file was altered, or is no copy in Parquet; for other formats use `sfumato check FILE`"}


def main() -> None:
    """Do the task in the first line, with the copy after it."""
    limit()
    task, argument = json.loads(sys.stdin.buffer.readline())
    try:
        text = json.dumps(done(task, argument, sys.stdin.buffer), allow_nan=False)
    except MemoryError:
        text = json.dumps({"refused": f"an answer may take {MEMORY >> 30} GiB of memory, and this one takes more"})
    if len(text) > CHARACTERS:
        reason = f"an answer may have {CHARACTERS:,} characters, and this one has {len(text):,}; ask for less"
        text = json.dumps({"refused": reason})
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
