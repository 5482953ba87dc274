"""Files that appear whole or not at all, on this machine or in an object store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.tables.atomic import replacing
from sfumato.tables.filesystem import is_file, is_remote, opened, system


@contextlib.contextmanager
def storing(place: str) -> Iterator[Any]:
    """A file to write to; on any error, it is as it was."""
    if not is_remote(place):
        path = Path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, part.open("wb") as file:
            yield file
        return
    files, path_there = system(place)
    try:
        file = files.open(path_there, "wb")  # of which nobody sees anything until it is closed
        try:
            yield file
        except BaseException:
            file.discard()
            file.closed = True  # else it would be written after all when it is forgotten
            raise
        file.close()
    except OSError as error:
        raise ReleaseError(f"{place} could not be written: {error}") from None


def store_text(place: str, text: str) -> None:
    """Write a short text."""
    with storing(place) as file:
        file.write(text.encode())


def stored_text(place: str) -> str | None:
    """A short text, if it is there."""
    if not is_file(place):
        return None
    with opened(place) as file:
        return str(file.read().decode())


def remove(places: list[str]) -> None:
    """Remove some files, and the folders on this machine that are then empty."""
    for place in places:
        if is_remote(place):
            files, path = system(place)
            files.rm_file(path)
        else:
            Path(place).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # one holds something else
                for folder in Path(place).parents:
                    folder.rmdir()
