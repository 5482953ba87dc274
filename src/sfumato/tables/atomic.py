"""Atomic writes: files that appear whole or not at all, on this machine or in an object store."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import ReleaseError, is_of_arrow
from sfumato.tables.filesystem import filesystem_of, is_file, is_remote, open_file


@contextlib.contextmanager
def atomic_path(target: Path, final: Callable[[Path], Path] | None = None) -> Iterator[Path]:
    """A path to write to; what is there at the end takes the target's name, durably, and on any error is removed.

    Only the owner may read the file, which holds a copy, a scheme or a report: whom else to give it to is the owner's
    decision.

    Args:
        target: the name that the file takes.
        final: chooses another name, once the file is written.

    """
    part = target.with_name(f".{target.name}.{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        _remove_leftovers(target)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target if final is None else final(part))
        _sync_folder(target.parent)
    except Exception as error:
        if not (isinstance(error, OSError) or is_of_arrow(error)):
            raise
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ReleaseError(f"{target} could not be written, and is as it was: {reason}") from None
    finally:
        with contextlib.suppress(OSError):  # an unreadable folder was the error above
            part.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(target) as part:
        part.write_text(text, encoding="utf-8")


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file atomically."""
    with atomic_path(target) as part:
        part.write_bytes(content)


@contextlib.contextmanager
def atomic_upload(uri: str) -> Iterator[Any]:
    """A file object to write to, on this machine or in an object store; on any error, the file is as it was."""
    if not is_remote(uri):
        path = Path(uri)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part, part.open("wb") as file:
            yield file
        return
    files, path_there = filesystem_of(uri)
    try:
        file = files.open(path_there, "wb")  # nothing of it is visible until it is closed
        try:
            yield file
        except BaseException:
            file.discard()
            file.closed = True  # else it would be written after all when it is garbage-collected
            raise
        file.close()
    except OSError as error:
        raise ReleaseError(f"{uri} could not be written: {error}") from None


def upload_text(uri: str, text: str) -> None:
    """Write a short text to a URI atomically."""
    with atomic_upload(uri) as file:
        file.write(text.encode())


def read_text(uri: str) -> str | None:
    """A short text from a URI, or nothing if there is no such file."""
    if not is_file(uri):
        return None
    with open_file(uri) as file:
        return str(file.read().decode())


def remove(uris: list[str]) -> None:
    """Remove some files, and the folders on this machine that are then empty."""
    for uri in uris:
        if is_remote(uri):
            files, path = filesystem_of(uri)
            files.rm_file(path)
        else:
            Path(uri).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # one holds something else
                for folder in Path(uri).parents:
                    folder.rmdir()


def _remove_leftovers(target: Path) -> None:
    """Remove what killed processes of this machine have left behind."""
    prefix = f".{target.name}.{socket.gethostname()}-"
    for left in target.parent.iterdir() if target.parent.is_dir() else ():
        owner = left.name.removeprefix(prefix).split("-")[0]
        if left.name.startswith(prefix) and left.suffix == ".part" and owner.isdigit() and not _is_alive(int(owner)):
            left.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there signal 0 is no question, but Ctrl-C
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and others only those that may be listed
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
