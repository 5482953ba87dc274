"""Where files lie: on this machine, or in any store that fsspec knows (`s3://bucket/folder`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import SourceError


@dataclass(frozen=True)
class Found:
    """A file in a folder."""

    name: str
    """Its path below the folder, with slashes."""
    place: str
    stamp: str
    """Changes when the file does: its size, and its time or the store's own mark."""


def is_remote(place: str | Path) -> bool:
    """Whether a place is a URL."""
    return isinstance(place, str) and "://" in place


def system(place: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    try:
        import fsspec  # noqa: PLC0415 - an extra
    except ImportError:
        raise SourceError(f"{place} needs fsspec; run `pip install 'sfumato[remote]'`") from None
    try:
        found, path = fsspec.core.url_to_fs(place)
    except (ValueError, ImportError) as error:
        raise SourceError(f"{place} must be a path, or a URL that fsspec knows: {error}") from None
    return found, str(path)


def opened(place: str | Path, *, mapped: bool = False) -> pa.NativeFile:
    """A file to read from; `mapped` into memory, where it lies on this machine."""
    if not is_remote(place):
        return pa.memory_map(str(place)) if mapped else pa.OSFile(str(place))
    files, path = system(str(place))
    return pa.PythonFile(files.open(path, "rb"), mode="r")


def is_file(place: str | Path) -> bool:
    """Whether a file is there."""
    if not is_remote(place):
        return Path(place).is_file()
    files, path = system(str(place))
    return bool(files.isfile(path))


def is_folder(place: str | Path) -> bool:
    """Whether a folder is there."""
    if not is_remote(place):
        return Path(place).is_dir()
    files, path = system(str(place))
    return bool(files.isdir(path))


def below(folder: str | Path, name: str) -> str:
    """The place of a name in a folder."""
    return f"{str(folder).rstrip('/')}/{name}"


def listed(folder: str | Path) -> list[Found]:
    """All files of a folder and its folders, in the order of their names; their places hold wherever they are read."""
    found = _remote(str(folder)) if is_remote(folder) else _local(Path(folder).absolute())
    return sorted(found, key=lambda file: file.name)


def _local(folder: Path) -> Iterator[Found]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            said = path.stat()
            yield Found(path.relative_to(folder).as_posix(), str(path), f"{said.st_size} {said.st_mtime_ns}")


def _remote(folder: str) -> Iterator[Found]:
    files, root = system(folder)
    files.invalidate_cache()
    for path, said in files.find(root, detail=True).items():
        name = str(path).removeprefix(root).lstrip("/")
        mark = said.get("ETag") or said.get("etag") or said.get("LastModified") or said.get("created")
        yield Found(name, below(folder, name), f"{said.get('size')} {mark}")
