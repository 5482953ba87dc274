"""File systems: files and folders on this machine, or in any object store that fsspec knows (`s3://bucket/folder`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import SourceError, install_hint

if TYPE_CHECKING:
    import pyarrow as pa

_STAMPS = ("ETag", "etag", "LastModified", "last_modified", "Last-Modified", "mtime", "created")
"""Where stores say that a file has changed."""

_CLIENTS = ("botocore", "aiobotocore", "aiohttp", "azure", "adlfs", "gcsfs", "google", "requests")
"""The packages whose errors are about reaching a store."""


@dataclass(frozen=True)
class FileInfo:
    """A file in a folder."""

    name: str
    """Its path below the folder, with slashes."""
    uri: str
    stamp: str
    """Changes when the file does: its size, and its time or the store's own entity tag."""


def is_remote(uri: str | Path) -> bool:
    """Whether this is a URL rather than a path."""
    return isinstance(uri, str) and "://" in uri


def filesystem_of(uri: str) -> tuple[Any, str]:
    """The file system of a URL, and the path there."""
    try:
        import fsspec  # noqa: PLC0415 - an extra
    except ImportError:
        raise SourceError(f"{uri} needs fsspec; {install_hint('remote')}") from None
    try:
        found, path = fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise SourceError(f"{uri} must be a path, or a URL that fsspec knows: {error}") from None
    return found, str(path)


@contextlib.contextmanager
def _reaching(uri: str | Path) -> Iterator[None]:
    """Says in a sentence what a store's client raises; many of its errors, as those about credentials, are its own."""
    try:
        yield
    except (OSError, SourceError):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _CLIENTS:
            raise
        raise SourceError(
            f"{uri} could not be reached: {str(error).splitlines()[0]}; credentials and addresses come from the "
            "client's own configuration, such as AWS_ACCESS_KEY_ID or ~/.aws for s3://, GOOGLE_APPLICATION_CREDENTIALS "
            "for gs://, AZURE_STORAGE_CONNECTION_STRING for az://"
        ) from None


def open_file(uri: str | Path, *, mapped: bool = False) -> pa.NativeFile:
    """A file to read from; `mapped` into memory, where it is on this machine."""
    import pyarrow as pa  # noqa: PLC0415 - many commands read no table

    if not is_remote(uri):
        return pa.memory_map(str(uri)) if mapped else pa.OSFile(str(uri))
    files, path = filesystem_of(str(uri))
    with _reaching(uri):
        return pa.PythonFile(files.open(path, "rb"), mode="r")


def is_file(uri: str | Path) -> bool:
    """Whether there is a file of this name."""
    if not is_remote(uri):
        return Path(uri).is_file()
    files, path = filesystem_of(str(uri))
    with _reaching(uri):
        try:
            return bool(files.info(path)["type"] == "file")  # `isfile` says no where it may not look
        except FileNotFoundError:
            return False


def is_folder(uri: str | Path) -> bool:
    """Whether there is a folder of this name."""
    if not is_remote(uri):
        return Path(uri).is_dir()
    files, path = filesystem_of(str(uri))
    with _reaching(uri):
        return bool(files.isdir(path))


def join(folder: str | Path, name: str) -> str:
    """The URI of a file in a folder."""
    return f"{str(folder).rstrip('/')}/{name}"


def stamp_of(uri: str) -> str:
    """What changes when a file does; empty where a store does not tell."""
    if not is_remote(uri):
        return _stamp(Path(uri).stat())
    files, path = filesystem_of(uri)
    files.invalidate_cache()
    with _reaching(uri):
        return _remote_stamp(files.info(path))


def list_files(folder: str | Path) -> list[FileInfo]:
    """All files below a folder, sorted by name; their URIs hold on any machine that reaches the folder."""
    found = _remote(str(folder)) if is_remote(folder) else _local(Path(folder).absolute())
    return sorted(found, key=lambda file: file.name)


def _local(folder: Path) -> Iterator[FileInfo]:
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            yield FileInfo(path.relative_to(folder).as_posix(), str(path), _stamp(path.stat()))


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns}"


def _remote(folder: str) -> Iterator[FileInfo]:
    files, root = filesystem_of(folder)
    files.invalidate_cache()
    with _reaching(folder):
        found = files.find(root, detail=True)
    for path, info in found.items():
        name = str(path).removeprefix(root).lstrip("/")
        yield FileInfo(name, join(folder, name), _remote_stamp(info))


def _remote_stamp(info: Mapping[str, Any]) -> str:
    tag = next((info[name] for name in _STAMPS if info.get(name)), None)
    return "" if tag is None else f"{info.get('size')} {tag}"
