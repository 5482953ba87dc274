"""A copy from a service as a file, the same as a release from the vault writes it, byte for byte."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from sfumato.client.connection import Connection, Progress
from sfumato.release.encoders import encoder
from sfumato.release.manifest import METADATA, Manifest, sidecar
from sfumato.tables.atomic import replace_text, replacing
from sfumato.tables.readers import format_of

FORMS = {"parquet": "parquet", "csv": "csv.gz", "arrow": "arrows"}
"""In what form a file of each format travels."""


def download(
    connection: Connection, dataset: str, query: dict[str, str], out: Path, progress: Progress | None
) -> Manifest:
    """Fetch a copy and its manifest, check them, and let both appear whole or not at all."""
    form = format_of(out)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".sfumato-") as folder:
        raw, made = Path(folder) / "raw", Path(folder) / f"copy{out.suffix}"
        connection.fetch(f"/copies/{dataset}", {**query, "format": FORMS[form]}, raw, progress)
        if form == "parquet":
            raw.rename(made)
            manifest = Manifest.of(made)
        elif form == "csv":
            manifest = Manifest.loads(json.dumps(connection.ask("GET", f"/copies/{dataset}/manifest", params=query)))
            with gzip.open(raw) as content, made.open("wb") as file:
                shutil.copyfileobj(content, file)
        else:
            manifest = _filed(raw, made)
        manifest.verify(str(made))
        with replacing(out) as part:
            made.rename(part)
            replace_text(sidecar(out), manifest.dumps() + "\n")  # first, so that a copy never lacks it
    return manifest


def _filed(raw: Path, made: Path) -> Manifest:
    """An Arrow stream as an Arrow file."""
    manifest = _last_word(raw)
    with pa.OSFile(str(raw)) as stream, made.open("wb") as file:
        reader = pa.ipc.open_stream(stream)
        writer = encoder("arrow", reader.schema, manifest)
        file.writelines(writer.write(batch) for batch in reader if batch.num_rows)
        file.write(writer.close(manifest))
    writer.mend(made, manifest)
    return manifest


def _last_word(raw: Path) -> Manifest:
    """The manifest, which the last batch of the stream carries."""
    with pa.OSFile(str(raw)) as stream:
        *_, (_, said) = pa.ipc.open_stream(stream).iter_batches_with_custom_metadata()
        return Manifest.loads(said[METADATA])
