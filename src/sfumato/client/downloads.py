"""A copy from a service as a file, the same as a release from the vault writes it, byte for byte."""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from sfumato.client.wire import Progress, Wire
from sfumato.release.atomic import replace_text, replacing
from sfumato.release.formats import encoder
from sfumato.release.manifest import METADATA, Manifest, sidecar
from sfumato.schema.table import format_of

FORMS = {"parquet": "parquet", "csv": "csv.gz", "arrow": "arrows"}
"""In what form a file of each format travels."""


def download(wire: Wire, dataset: str, query: dict[str, str], out: Path, progress: Progress | None) -> Manifest:
    """Fetch a copy and its manifest, and let both appear whole or not at all."""
    form = format_of(out)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".sfumato-") as folder:
        raw = Path(folder) / "copy"
        wire.fetch(f"/copies/{dataset}", {**query, "format": FORMS[form]}, raw, progress)
        with replacing(out) as part:
            if form == "parquet":
                shutil.copyfile(raw, part)
                manifest = Manifest.of(pa.parquet.read_schema(raw))
            elif form == "csv":
                manifest = Manifest.loads(json.dumps(wire.ask("GET", f"/copies/{dataset}/manifest", params=query)))
                with gzip.open(raw) as content, part.open("wb") as file:
                    shutil.copyfileobj(content, file)
            else:
                manifest = _filed(raw, part)
            replace_text(sidecar(out), manifest.dumps() + "\n")
    manifest.verify(str(out))
    return manifest


def _filed(raw: Path, part: Path) -> Manifest:
    """An Arrow stream as an Arrow file."""
    with pa.OSFile(str(raw)) as stream:
        reader = pa.ipc.open_stream(stream)
        manifest = _last_word(raw)
        writer = encoder("arrow", reader.schema, manifest)
        with part.open("wb") as file:
            file.writelines(writer.write(batch) for batch in reader if batch.num_rows)
            file.write(writer.close(manifest))
    writer.mend(part, manifest)
    return manifest


def _last_word(raw: Path) -> Manifest:
    """The manifest, which the last batch of the stream carries."""
    said = b""
    with pa.OSFile(str(raw)) as stream:
        for _, metadata in pa.ipc.open_stream(stream).iter_batches_with_custom_metadata():
            said = (metadata or {}).get(METADATA, said) if metadata is not None else said
    return Manifest.loads(said)
