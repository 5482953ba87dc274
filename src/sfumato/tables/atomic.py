"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from sfumato.errors import ReleaseError


@contextlib.contextmanager
def replacing(target: Path, final: Callable[[Path], Path] | None = None) -> Iterator[Path]:
    """A path to write to; what is there at the end takes the target's name, durably, and on any error vanishes.

    Args:
        final: chooses another name, once the file is written.

    """
    part = target.with_name(f".{target.name}.{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        _sweep(target)
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target if final is None else final(part))
        _sync_folder(target.parent)
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ReleaseError(f"{target} could not be written, and is as it was: {reason}") from None
    finally:
        with contextlib.suppress(OSError):  # an unreadable folder was the error above
            part.unlink(missing_ok=True)


def replace_text(target: Path, text: str) -> None:
    """Write a text file that appears whole or not at all."""
    with replacing(target) as part:
        part.write_text(text, encoding="utf-8")


def _sweep(target: Path) -> None:
    """Remove what runs on this machine that were killed have left behind."""
    prefix = f".{target.name}.{socket.gethostname()}-"
    for left in target.parent.iterdir() if target.parent.is_dir() else ():
        owner = left.name.removeprefix(prefix).split("-")[0]
        if left.name.startswith(prefix) and left.suffix == ".part" and owner.isdigit() and not _alive(int(owner)):
            left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
