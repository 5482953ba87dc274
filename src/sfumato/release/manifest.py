"""Manifests: what a copy is, how it was made, what it promises and what it does not.

A manifest travels inside the file and beside it, and contains nothing secret: with it, anyone who has the copy can
mine and attack it as well as it can be done.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.ipc

from sfumato import models
from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.errors import ManifestError
from sfumato.models import Model
from sfumato.pages.described import Described, Description, counted
from sfumato.release.manifest_format_1 import from_format_1
from sfumato.serialization import check_types
from sfumato.tables import content_digest
from sfumato.tables.content_digest import BLAKE3
from sfumato.tables.database import is_database, read_manifest
from sfumato.tables.filesystem import is_file, is_folder, join, open_file
from sfumato.tables.lake import committed_note, is_lake
from sfumato.tables.partitioned import Part
from sfumato.tables.readers import format_of
from sfumato.tables.row_order import KEEP
from sfumato.tables.source import Source

METADATA = b"sfumato"
"""The key of the manifest in the metadata of an Arrow schema or a Parquet file."""

FOLDER = "_sfumato.manifest.json"
"""The name of the manifest of a copy that is a folder of files."""

FORMAT = 3
"""The format that is written; format 1, of version 0.1, and format 2, whose digests are of SHA-256, are still read."""

_OF_VAULTS = ("recipient", "version", "since", "signer", "signature")
"""Left out where they are empty: a signature stays valid when a later format has more such fields."""


@dataclass(frozen=True, repr=False)
class Manifest(Described):
    """All that is public about one copy."""

    dataset: str
    policy: str
    """Digest of the policy, which is the owner's statement and contains nothing of the data."""
    scheme: str
    """Names the fitted scheme and the key: copies that share it lie on one path. It is keyed, so that an
    attacker who knows all records but one cannot test guesses of the last one against it."""
    key: str
    """Fingerprint of the key."""
    level: str | None
    """The declared name of the level, if it has one."""
    requested_fidelity: float
    fidelity: float
    """The fidelity of the copy: never higher than requested."""
    columns: tuple[tuple[str, str], ...]
    """Names and types, for people to read."""
    schema: str
    """Names and types as an Arrow schema in base64, for formats that keep no types."""
    models: tuple[Model, ...]
    promises: tuple[str, ...]
    warnings: tuple[str, ...]
    """What the owner had to read before the copy left: that it is unsafe, or that nothing is perturbed."""
    limits: tuple[str, ...]
    software: str
    order: str = KEEP
    """Whether the rows are in a secret order, in one within each file, or in that of the table."""
    rows: int = 0
    digest: str = ""
    recipient: str = ""
    """The recipient, if a vault made the copy."""
    version: int = 0
    """The version of the dataset, if a vault made the copy."""
    since: int = 0
    """The version after which the rows of the copy were appended; 0 for a copy of all rows."""
    signer: str = ""
    """The public key of the vault that signed the manifest: see `certificate`."""
    signature: str = ""
    earlier: Mapping[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    """The manifest as it was written, if that was in an earlier format: what its signature covers.

    It is no field of the format, and set by `loads` alone: else a manifest could bring a signed text of another one.
    """

    def description(self) -> Description:
        """What notebooks and prompts show."""
        level = f"level {self.level}, " if self.level else ""
        facts = (f"{level}fidelity {self.fidelity:.4g}", f"{self.rows:,} rows", counted(len(self.columns), "column"))
        rows = [
            (name, kind, models.model_of(self.models, name).describe(name, lambda value: f"{value:,.4g}"))
            for name, kind in self.columns
        ]
        notes = (*self.warnings, *self.promises, *self.limits)
        title = f"Copy of {self.dataset!r}{f' for {self.recipient!r}' if self.recipient else ''}"
        return Description(title, facts, ("column", "type", "in this copy"), rows, notes=notes)

    @classmethod
    def of(cls, copy: Any) -> Manifest:
        """The manifest of a copy: a table, a schema, a data frame of `to_pandas`, a path, or a database's URL."""
        if is_database(copy):
            return cls._of_database(copy)
        if isinstance(copy, str | Path):
            if is_lake(copy):
                return cls._of_lake(str(copy))
            return cls._of_folder(str(copy)) if is_folder(copy) else cls._of_file(copy)
        schema, attributes = getattr(copy, "schema", copy), getattr(copy, "attrs", None)
        found = (getattr(schema, "metadata", None) or {}).get(METADATA)
        if found is None and isinstance(attributes, Mapping):
            found = attributes.get(METADATA.decode())
        if found is None:
            raise ManifestError(
                "a copy must carry its manifest in its metadata, and this table has none; give the file or the pyarrow "
                "table as it was released (`sfumato.to_pandas` keeps it in a data frame), or ask for the manifest"
            )
        return cls.loads(found)

    @classmethod
    def _of_database(cls, uri: str) -> Manifest:
        found = read_manifest(uri)
        if found is None:
            raise ManifestError(
                "a copy in a database must have its manifest in the table sfumato_manifests; ask for it"
            )
        return cls.loads(found)

    @classmethod
    def _of_lake(cls, uri: str) -> Manifest:
        found = committed_note(uri)
        if found is None:
            raise ManifestError(
                f"a copy in a table of Delta Lake must have its manifest in its commit, and {uri} has none; ask for it"
            )
        return cls.loads(found)

    @classmethod
    def _of_folder(cls, uri: str) -> Manifest:
        if not is_file(join(uri, FOLDER)):
            raise ManifestError(
                f"a copy in a folder must have its manifest in it, and {uri} has no {FOLDER}; if you make it, run "
                "the same command again to finish it, else ask for it again"
            )
        with open_file(join(uri, FOLDER)) as file:
            return cls.loads(file.read())

    @classmethod
    def _of_file(cls, uri: str | Path) -> Manifest:
        if not is_file(uri) or format_of(uri) in ("parquet", "arrow"):  # other formats have no room for it
            schema = Source.of(uri).schema
            if METADATA in (schema.metadata or {}):
                return cls.of(schema)
        beside = sidecar(str(uri))
        if not is_file(beside):
            raise ManifestError(
                f"{uri} must carry its manifest inside or beside it, and {Path(beside).name} is not there; ask for "
                "the copy again"
            )
        with open_file(beside) as file:
            return cls.loads(file.read())

    @classmethod
    def loads(cls, text: str | bytes) -> Manifest:
        """Read a manifest."""
        try:
            data = json.loads(text)
            written = data.pop("sfumato")
            if written not in (1, 2, FORMAT):
                raise ManifestError(
                    f"this version reads manifests up to format {FORMAT}, got {written}; upgrade sfumato"
                )
            original = {"sfumato": written, **data}
            data = from_format_1(data) if written == 1 else data
            data["models"] = tuple(models.decode(model) for model in data["models"])
            data["columns"] = tuple((name, kind) for name, kind in data["columns"])
            for key in ("promises", "warnings", "limits"):
                data[key] = tuple(map(str, data[key]))
            read = cls(**data)
            if written != FORMAT:
                object.__setattr__(read, "earlier", original)
            check_types(read)
            read.signed_content()  # it must be valid Unicode
            content_digest.algorithm_of(read.digest)
            shown = {name for model in read.models for name in model.columns}
            if {name for name, _ in read.columns} - shown or not read._types():
                raise ValueError("columns or types do not fit")
            return read
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError, pa.ArrowException):
            raise ManifestError("the manifest is malformed; ask for the copy again") from None

    def dumps(self) -> str:
        """The manifest as JSON."""
        if self.earlier is not None:
            return json.dumps(dict(self.earlier), ensure_ascii=False)
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "earlier"}
        fields["models"] = [models.encode(model) for model in self.models]
        for name in _OF_VAULTS:
            if not fields[name]:
                del fields[name]
        return json.dumps({"sfumato": FORMAT, **fields}, ensure_ascii=False)

    def signed_content(self) -> bytes:
        """What a signature covers: everything but itself."""
        content = json.loads(self.dumps())
        content.pop("signature", None)
        return b"sfumato manifest\0" + json.dumps(content, ensure_ascii=False).encode()

    def path_identity(self, model: Model) -> str:
        """Names the path that a model's columns lie on: copies of equal identity are points of one path."""
        return models.path_identity(self.scheme, self.key, model, self.fidelity)

    def filled(self, rows: int, digests: list[bytes], algorithm: str = BLAKE3) -> Manifest:
        """This manifest, for a copy that has now been made."""
        return dataclasses.replace(self, rows=rows, digest=content_digest.of_batches(digests, algorithm))

    def source(self, copy: Any) -> Source:
        """The copy, a table or a file, with the types it was released with."""
        return Source.of(copy, self._types())

    def _types(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema)))

    def verify(self, copy: Any, engine: Engine | None = None) -> None:
        """Refuse a copy that is not the one this manifest was made for; one in many files is read by an engine."""
        source = self.source(copy)
        algorithm = content_digest.algorithm_of(self.digest)
        if source.parts:
            rows, digests = digested_parts(source.parts, engine, algorithm)
        else:
            rows, digests = digested(source, algorithm=algorithm)
        if rows != self.rows or content_digest.of_batches(digests, algorithm) != self.digest:
            shown = content_digest.as_bytes(self.digest).hex()[:12]
            raise ManifestError(
                f"the copy must be as it was released, {self.rows:,} rows with digest {shown}…, and it has "
                "been changed; ask for it again"
            )


def digested_parts(parts: tuple[Part, ...], engine: Engine | None, algorithm: str = BLAKE3) -> tuple[int, list[bytes]]:
    """The number of rows of a copy in many files, and the digest of each."""
    found = list((engine or Local()).map(partial(_digested_part, algorithm), parts))
    return sum(rows for rows, _ in found), [one for _, one in found]


def _digested_part(algorithm: str, part: Part) -> tuple[int, bytes]:
    names = [name for name in part.schema.names if name not in dict(part.fixed)]
    rows, digests = digested(Source.of(part), names, algorithm)
    return rows, content_digest.as_bytes(content_digest.of_batches(digests, algorithm))


def digested(source: Source, columns: list[str] | None = None, algorithm: str = BLAKE3) -> tuple[int, list[bytes]]:
    """The number of rows of a table, and the digest of each of its batches."""
    rows, digests = 0, []
    for batch in source.batches(columns):
        rows += batch.num_rows
        digests.append(content_digest.of_batch(batch, algorithm))
    return rows, digests


_Name = TypeVar("_Name", str, Path)


def sidecar(path: _Name) -> _Name:
    """The path or the URL of the manifest beside a copy."""
    return type(path)(f"{path}.manifest.json")


def attach(table: pa.Table, manifest: Manifest) -> pa.Table:
    """The table with its manifest in its metadata."""
    return table.replace_schema_metadata({METADATA: manifest.dumps().encode()})
