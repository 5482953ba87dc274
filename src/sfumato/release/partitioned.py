"""Copies of partitioned tables: a folder of files becomes a folder of files, file by file, on any engine.

A copy has the files of its source under the same names, each whole or not there, and is complete once its manifest is
there. Until then a receipt is kept for each finished file, so that an interrupted release continues at the file where
it was; the receipt's tag is a message authentication code over the source file, the request and the software.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from sfumato.engines import Engine
from sfumato.engines.local import Local
from sfumato.errors import PolicyError, ReleaseError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC
from sfumato.release.copying import CopyStream, Progress
from sfumato.release.gate import Clearance, DatasetSecret, Request, clear
from sfumato.release.layout import SOFTWARE, TableLayout
from sfumato.release.manifest import FOLDER, FORMAT, Manifest
from sfumato.release.partition_checks import check_partition_ids, partition_sampler
from sfumato.tables import content_digest
from sfumato.tables.atomic import atomic_upload, read_text, remove, upload_text
from sfumato.tables.filesystem import is_file, is_folder, is_remote, join, list_files
from sfumato.tables.partitioned import Part
from sfumato.tables.row_order import KEEP, WITHIN_FILES
from sfumato.tables.source import Source
from sfumato.tables.view import View

_RECEIPTS = "_sfumato"

_ORDER_OF_PARTS = (
    "The order of rows is secret within each file of this copy. Its files are in the order of the table, so that the "
    "file of a row shows in which part of the table it was, of about a million rows."
)


def release_folder(
    scheme: TableLayout,
    table: Any,
    target: str | Path,
    level: Level | float | str,
    key: Key,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a copy of a folder of files to another folder, with one manifest for all of them.

    A large Parquet file is shared out by its row groups; each makes a file of the copy.

    The same request gives the same bytes in the same files, whatever the engine, and an interrupted one is finished by
    making it again: files that are done are not done again.

    Args:
        scheme: the fitted scheme.
        table: the folder, or a Parquet file, or its URL.
        target: the folder to write, or its URL.
        level: of the copy.
        key: of the owner.
        engine: where the work is done; this machine by default.
        progress: called with the rows of each finished file.

    """
    source, where = scheme.policy.source(table).by_row_groups(), engine or Local()
    target = str(target) if is_remote(target) else str(Path(target).absolute())
    _check_target(source, target)
    requested = scheme.policy.ladder.level(level)
    scheme.check_schema(source.schema, key)
    _check_partition_columns(scheme, source)
    with where.shared_key(scheme.dataset_key(key)) as shared:
        secret = DatasetSecret(shared)
        draft = _draft(scheme, source, requested, key)
        sampler = partition_sampler(scheme, source, where)
        unique = lambda: check_partition_ids(scheme, source, where, secret)  # noqa: E731
        request = Request(scheme, source, source.schema, sampler, unique)
        cleared = clear(request, [requested], key, secret=secret)
        _begin(target)
        # one machine shares out the batches of a file, a cluster the files
        outer = where if where.is_distributed else Local(1)
        receipts = []
        for receipt in outer.map(_CopyFile(cleared.for_workers(), draft, target, where.threads), source.parts):
            receipts.append(receipt)
            if progress:
                progress(receipt.rows)
    return _finish(draft, target, receipts)


def _draft(scheme: TableLayout, source: Source, level: Level, key: Key) -> Manifest:
    """The manifest of a folder, which says in which order its rows are."""
    draft = scheme.manifest(source.schema, level, key)
    if not scheme.shuffles:
        return replace(draft, order=KEEP)
    limits = (*draft.limits, _ORDER_OF_PARTS) if source.parts[0].row_groups else draft.limits
    return replace(draft, order=WITHIN_FILES, limits=limits)


@dataclass(frozen=True)
class Receipt:
    """A record that a file of a copy is finished."""

    name: str
    rows: int
    digest: str
    tag: str


@dataclass(frozen=True)
class _CopyFile:
    """Makes one file of a copy, on whichever worker it is called."""

    clearance: Clearance[None]
    draft: Manifest
    """The manifest of the whole copy, which has the names of the key and the scheme."""
    target: str
    threads: int

    def __call__(self, part: Part) -> Receipt:
        name, key = copied_name(part.name), self.clearance.secret()
        uri, receipt_uri = join(self.target, name), join(self.target, f"{_RECEIPTS}/{name}.json")
        tag = self._tag(part, key)
        written = read_text(receipt_uri)
        if part.stamp and written is not None and json.loads(written).get("tag") == tag and is_file(uri):
            return Receipt(**json.loads(written))
        cleared = self.clearance.for_part(part, self._layout(part))
        stream = CopyStream(cleared, "parquet", part_of=self.draft, threads=self.threads)
        with atomic_upload(uri) as file:
            file.writelines(stream)
        receipt = Receipt(name, stream.manifest.rows, stream.manifest.digest, tag)
        upload_text(receipt_uri, json.dumps(asdict(receipt)))
        return receipt

    def _layout(self, part: Part) -> TableLayout:
        """The layout of the file: columns whose values are in the names of folders are not repeated in it."""
        layout = self.clearance.layout
        if not part.fixed:
            return layout
        names = [name for name in layout.schema(part.schema).names if name not in dict(part.fixed)]
        return layout.with_view(View(tuple(names), layout.view.where))

    def _tag(self, part: Part, key: Key) -> str:
        layout, level = self.clearance.layout, self.clearance.level
        read = [part.name, part.uri, part.stamp, str(part.row_groups)]
        written = [layout.digest(), layout.order, str(layout.view), level.fidelity]
        content = [*read, *written, SOFTWARE, FORMAT, content_digest.BLAKE3]
        return hmac.digest(key.derive("receipts").expose(), json.dumps(content).encode(), "sha256").hex()


def copied_name(name: str) -> str:
    """The name of a file's copy: copies of partitioned tables are Parquet files."""
    return str(PurePosixPath(name).with_suffix(".parquet"))


def _check_target(source: Source, target: str) -> None:
    """Refuse a source that is no folder, and a target that is not a folder of its own."""
    if not source.parts:
        raise ReleaseError(
            f"a copy in a folder is made from a folder of files or a Parquet file, and {source.uri or 'this table'} is "
            "none; name a file to write to, or put the table into a folder"
        )
    here, there = (join(uri if is_remote(uri) else Path(uri).resolve(), "") for uri in (target, source.uri))
    if here.startswith(there) or there.startswith(here):
        raise ReleaseError(f"a copy must be outside of its source {source.uri}; choose another folder than {target}")
    if not is_remote(target) and Path(target).exists() and not Path(target).is_dir():
        raise ReleaseError(f"a copy of a folder needs a folder, and {target} is a file; choose another name")
    _check_names(source)
    _check_existing(target)


def _check_names(source: Source) -> None:
    """Refuse files whose copies would have the same name."""
    names = [copied_name(part.name) for part in source.parts]
    repeated = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if repeated:
        raise ReleaseError(
            f"files need different names apart from their suffixes, and two would be {repeated[0]}; rename one"
        )


def _check_existing(target: str) -> None:
    """Refuse a folder that holds something other than an earlier copy."""
    found = list_files(target) if is_folder(target) else []
    ours = any(file.name == FOLDER or file.name.startswith(f"{_RECEIPTS}/") for file in found)
    if found and not ours:
        raise ReleaseError(
            f"a copy replaces nothing but an earlier one, and {target} holds {found[0].name!r}; name a new folder"
        )


def _check_partition_columns(layout: TableLayout, source: Source) -> None:
    """Refuse to perturb or hide columns whose values are in the names of folders."""
    released = layout.schema(source.schema).names
    fixed = [name for name, _ in source.parts[0].fixed]
    hidden = [name for name in fixed if layout.role(name) not in (IDENTIFIER, ENTITY, PUBLIC) or name not in released]
    if hidden:
        raise PolicyError(
            f"the names of folders are released with a copy and disclose {hidden[0]!r}, which the policy does not "
            "keep; keep it, or write the table without that partition"
        )


def _begin(target: str) -> None:
    """From now on the folder is known to be ours, and the copy not to be complete."""
    upload_text(join(target, f"{_RECEIPTS}/begun"), "")
    if is_file(join(target, FOLDER)):
        remove([join(target, FOLDER)])


def _finish(draft: Manifest, target: str, receipts: Iterable[Receipt]) -> Manifest:
    """Remove files that only an earlier copy had, and the receipts; the manifest comes last."""
    done = sorted(receipts, key=lambda receipt: receipt.name)
    names = {receipt.name for receipt in done}
    manifest = draft.filled(sum(r.rows for r in done), [content_digest.as_bytes(r.digest) for r in done])
    stale = [file.uri for file in list_files(target) if file.name not in names]
    remove([uri for uri in stale if f"/{_RECEIPTS}/" not in uri])
    upload_text(join(target, FOLDER), manifest.dumps() + "\n")
    remove([uri for uri in stale if f"/{_RECEIPTS}/" in uri])
    return manifest
