"""Downloads of copies from a service, with the same bytes as a release from the vault."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from sfumato.client.connection import Connection, Progress
from sfumato.release.encoders import check_written, encoder
from sfumato.release.manifest import METADATA, Manifest, sidecar
from sfumato.tables.atomic import atomic_path, write_text
from sfumato.tables.readers import format_of

TRANSFER_FORMATS = {"parquet": "parquet", "csv": "csv.gz"}
"""The transfer format of each file format; others are made from an Arrow stream."""


def download(
    connection: Connection, dataset: str, query: dict[str, str], out: Path, progress: Progress | None
) -> Manifest:
    """Download a copy and its manifest, verify them, and write both atomically."""
    file_format = format_of(out)
    check_written(file_format)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".sfumato-") as folder:
        raw, decoded = Path(folder) / "raw", Path(folder) / f"copy{out.suffix}"
        transfer = TRANSFER_FORMATS.get(file_format, "arrows")
        connection.fetch(f"/copies/{dataset}", {**query, "format": transfer}, raw, progress)
        if file_format == "parquet":
            raw.rename(decoded)
            manifest = Manifest.of(decoded)
        elif file_format == "csv":
            manifest = Manifest.loads(
                json.dumps(connection.request("GET", f"/copies/{dataset}/manifest", params=query))
            )
            with gzip.open(raw) as content, decoded.open("wb") as file:
                shutil.copyfileobj(content, file)
        else:
            manifest = _stream_to_file(raw, decoded, file_format)
        manifest.verify(str(decoded))
        with atomic_path(out) as part:
            decoded.rename(part)
            write_text(sidecar(out), manifest.dumps() + "\n")  # before the copy, which is never without it
    return manifest


def _stream_to_file(raw: Path, decoded: Path, file_format: str) -> Manifest:
    """Convert an Arrow stream to a file of another format, and return its manifest."""
    manifest = _stream_manifest(raw)
    with pa.OSFile(str(raw)) as stream, decoded.open("wb") as file:
        reader = pa.ipc.open_stream(stream)
        writer = encoder(file_format, reader.schema, manifest)
        file.writelines(writer.write(batch) for batch in reader if batch.num_rows)
        file.write(writer.close(manifest))
    writer.insert_manifest(decoded, manifest)
    return manifest


def _stream_manifest(raw: Path) -> Manifest:
    """The manifest in the metadata of the last batch of a stream."""
    with pa.OSFile(str(raw)) as stream:
        *_, (_, metadata) = pa.ipc.open_stream(stream).iter_batches_with_custom_metadata()
        return Manifest.loads(metadata[METADATA])
