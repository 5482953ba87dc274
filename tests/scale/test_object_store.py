"""An object store: a real server that speaks S3, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer
from tests import lakes, wards

import sfumato as sf
from sfumato.engines.local import Local
from sfumato.errors import ManifestError, ReleaseError, SourceError, VaultError
from sfumato.mining import Moments, with_engine
from sfumato.release import partitioned as folders
from sfumato.release.manifest import FOLDER, Manifest
from sfumato.release.partitioned import release_folder
from sfumato.tables import atomic
from sfumato.tables.filesystem import filesystem_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the store's client

WHOLE = lakes.table()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An empty bucket; where it is and how to enter is said where every client looks."""
    import s3fs

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    patch = pytest.MonkeyPatch()
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in {**settings, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
        patch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("lake")
    yield "s3://lake"
    s3fs.S3FileSystem.clear_instance_cache()
    patch.undo()
    server.stop()


def _put(folder: Path, url: str) -> str:
    files, path = filesystem_of(url)
    files.put(str(folder), path, recursive=True)
    return url


def _got(url: str, folder: Path) -> dict[str, bytes]:
    files, path = filesystem_of(url)
    files.get(path, str(folder), recursive=True)
    return lakes.files_of(folder)


@pytest.mark.parametrize("layout", lakes.LAYOUTS)
def test_a_copy_goes_from_store_to_store(layout: str, bucket: str, key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", layout)
    is_file = folder.is_file()
    url = _put(folder.parent if is_file else folder, f"{bucket}/{layout}/source")
    url = f"{url}/{folder.name}" if is_file else url
    policy = lakes.POLICIES["together"]
    scheme = policy.fit(url)
    assert scheme.digest() == policy.fit(folder).digest()
    release_folder(scheme, folder, tmp_path / "copy", "high", key)
    manifest = release_folder(scheme, url, f"{bucket}/{layout}/copy", "high", key)
    assert _got(f"{bucket}/{layout}/copy", tmp_path / "got") == lakes.files_of(tmp_path / "copy")
    assert Manifest.of(f"{bucket}/{layout}/copy") == manifest
    manifest.verify(f"{bucket}/{layout}/copy")
    there = Moments().fit(with_engine(Local(2), f"{bucket}/{layout}/copy"))
    assert (there.mean_ == Moments().fit(str(tmp_path / "copy")).mean_).all()


def test_an_interrupted_run_goes_on_there(
    bucket: str, key: sf.Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme, target, made = lakes.POLICIES["gaussian"].fit(folder), f"{bucket}/again/copy", []

    def stop(_: int) -> None:
        made.append(1)
        if len(made) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release_folder(scheme, folder, target, "high", key, progress=stop)
    with pytest.raises(ManifestError, match="run the same command again"):
        Manifest.of(target)
    written: list[str] = []

    def watched(path: str) -> Any:
        written.append(path)
        return atomic.atomic_upload(path)

    monkeypatch.setattr(folders, "atomic_upload", watched)
    release_folder(scheme, folder, target, "high", key)
    assert len(written) == 3  # of six
    release_folder(scheme, folder, tmp_path / "copy", "high", key)
    assert _got(target, tmp_path / "got") == lakes.files_of(tmp_path / "copy")


def test_a_file_is_whole_or_not_there(bucket: str, key: sf.Key) -> None:
    path = f"{bucket}/half/file"
    with pytest.raises(ZeroDivisionError), atomic.atomic_upload(path) as file:  # noqa: PT012 - the block is what is tested
        file.write(b"x" * 6_000_000)  # more than one piece of an upload
        raise ZeroDivisionError
    assert atomic.read_text(path) is None
    atomic.upload_text(path, "whole")
    assert atomic.read_text(path) == "whole"
    files, _ = filesystem_of(bucket)
    files.pipe_file("lake/foreign/thesis.parquet", b"mine")
    scheme = lakes.POLICIES["gaussian"].fit(WHOLE)
    with pytest.raises(ReleaseError, match="made from a folder of files or a Parquet file"):
        release_folder(scheme, WHOLE, f"{bucket}/foreign", "high", key)
    with pytest.raises(SourceError, match="a file or a folder that exists"):
        lakes.POLICIES["gaussian"].fit(f"{bucket}/nothing")
    assert FOLDER not in [Path(name).name for name in files.find("lake/foreign")]


def test_a_vault_stores_only_encrypted_files_there(bucket: str, tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault", store=f"{bucket}/vault")
    vault.add(wards.policy(), wards.table())
    vault.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    with vault.dataset("ward").source() as source:
        assert source.rows == wards.table().num_rows
    files, _ = filesystem_of(bucket)
    names = files.find("lake/vault")
    assert len(names) == 10
    assert all(name.endswith(".encrypted") for name in names)
    assert not [name for name in names if b"PAR1" in files.cat_file(name) or b"gaussian" in files.cat_file(name)]
    assert vault.verify().sound
    [scheme] = [name for name in names if "scheme-" in name]
    files.pipe_file(scheme, files.cat_file(scheme)[:-1])
    with pytest.raises(VaultError, match="was altered"):
        _ = vault.dataset("ward").scheme
