"""Copies of tables in many files: a folder to a folder, a file to a file, by any engine.

A copy has the files of its source under the same names, each whole or not there, and is whole once its manifest is.
Beside each finished file lies a receipt until then, so that who is killed goes on at the file where it was; its mark is
keyed, and says that this very file was made from that very one on this very request.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sfumato.engines import Engine, Secret
from sfumato.engines.local import Local
from sfumato.errors import PolicyError, ReleaseError
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.release.copying import Copying, Progress
from sfumato.release.manifest import FOLDER, Manifest
from sfumato.release.partition_checks import ensure_named, taking
from sfumato.release.scheme import SOFTWARE, TableScheme
from sfumato.tables.filesystem import below, is_file, is_folder, is_remote, listed
from sfumato.tables.partitioned import Part
from sfumato.tables.source import Source
from sfumato.tables.storing import remove, store_text, stored_text, storing
from sfumato.tables.view import View

_RECEIPTS = "_sfumato"


def release_folder(
    scheme: TableScheme,
    table: Any,
    target: str | Path,
    level: Level | float | str,
    key: Key,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Manifest:
    """Write a copy of a folder of files to another folder, with one manifest for all of them.

    The same request gives the same bytes in the same files, whatever the engine, and an interrupted one is finished by
    making it again: files that are done are not done again.

    Args:
        engine: where the work is done; on this machine, if none is said.

    """
    source, where = Source.of(table), engine or Local()
    target = str(target) if is_remote(target) else str(Path(target).absolute())
    _check_places(source, target)
    asked = scheme.policy.ladder.level(level)
    scheme.check_schema(source.schema, key)
    _check_layout(scheme, source)
    with where.shared_key(key) as secret:
        ensure_named(scheme, source, where, secret)
        some = taking(scheme, source, where)
        scheme.check_motion(source, some)
        scheme.check_targets(source, [asked], key, taking=some)
        _begin(target)
        # one machine shares out the batches of a file, a cluster the files
        outer, threads = (Local(1), where.threads) if isinstance(where, Local) else (where, 1)
        copier = _Copier(scheme, asked, target, secret, threads)
        receipts = []
        for receipt in outer.map(copier, source.parts):
            receipts.append(receipt)
            if progress:
                progress(receipt.rows)
    return _finish(scheme.manifest(source.schema, asked, key), target, receipts)


@dataclass(frozen=True)
class Receipt:
    """Says that a file of a copy is there."""

    name: str
    rows: int
    digest: str
    mark: str


@dataclass(frozen=True)
class _Copier:
    """Makes one file of a copy, wherever it is called."""

    scheme: TableScheme
    level: Level
    target: str
    secret: Secret
    threads: int

    def __call__(self, part: Part) -> Receipt:
        name, key = copied_name(part.name), self.secret()
        place, slip = below(self.target, name), below(self.target, f"{_RECEIPTS}/{name}.json")
        mark = self._mark(part, key)
        told = stored_text(slip)
        if told is not None and json.loads(told)["mark"] == mark and is_file(place):
            return Receipt(**json.loads(told))
        copying = Copying(self._shown(part), Source.of(part), "parquet", self.level, key, threads=self.threads)
        with storing(place) as file:
            file.writelines(copying)
        receipt = Receipt(name, copying.manifest.rows, copying.manifest.digest, mark)
        store_text(slip, json.dumps(asdict(receipt)))
        return receipt

    def _shown(self, part: Part) -> TableScheme:
        """What a folder's name tells is not told again in the file, as is the custom."""
        if not part.fixed:
            return self.scheme
        told, view = dict(part.fixed), self.scheme.view
        names = [name for name in self.scheme.schema(part.schema).names if name not in told]
        return self.scheme.seen(View(tuple(names), view.where))

    def _mark(self, part: Part, key: Key) -> str:
        said = [part.name, part.stamp, self.scheme.digest(), str(self.scheme.view), self.level.fidelity, SOFTWARE]
        return hmac.digest(key.derive("receipts").expose(), json.dumps(said).encode(), "sha256").hex()


def copied_name(name: str) -> str:
    """The name of a file's copy: copies in folders are Parquet."""
    return str(PurePosixPath(name).with_suffix(".parquet"))


def _check_places(source: Source, target: str) -> None:
    if not source.parts:
        raise ReleaseError(
            f"a copy in a folder is made of a table in a folder, and {source.place or 'this table'} is none; name a "
            "file to write to, or put the table into a folder"
        )
    here, there = (below(place if is_remote(place) else Path(place).resolve(), "") for place in (target, source.place))
    if here.startswith(there) or there.startswith(here):
        raise ReleaseError(f"a copy must lie apart from its source {source.place}; choose another folder than {target}")
    if not is_remote(target) and Path(target).exists() and not Path(target).is_dir():
        raise ReleaseError(f"a copy of a folder needs a folder, and {target} is a file; choose another name")
    names = [copied_name(part.name) for part in source.parts]
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise ReleaseError(f"files need different names but for their endings, and two would be {twice[0]}; rename one")
    found = listed(target) if is_folder(target) else []
    ours = any(file.name == FOLDER or file.name.startswith(f"{_RECEIPTS}/") for file in found)
    if found and not ours:
        raise ReleaseError(
            f"a copy replaces nothing but an earlier one, and {target} holds {found[0].name!r}; name a new folder"
        )


def _check_layout(scheme: TableScheme, source: Source) -> None:
    """Refuse to blur or hide what the names of folders tell."""
    shown = scheme.schema(source.schema).names
    plain = {name for name, _ in source.parts[0].fixed if scheme.role(name) in ("keep", "id") and name in shown}
    hidden = [name for name, _ in source.parts[0].fixed if name not in plain]
    if hidden:
        raise PolicyError(
            f"the names of folders are shown in a copy, and tell {hidden[0]!r}, which the policy does not keep; keep "
            "it, or write the table without that partition"
        )


def _begin(target: str) -> None:
    """From now on the folder is known to be ours, and the copy not to be whole."""
    store_text(below(target, f"{_RECEIPTS}/begun"), "")
    if is_file(below(target, FOLDER)):
        remove([below(target, FOLDER)])


def _finish(draft: Manifest, target: str, receipts: Iterable[Receipt]) -> Manifest:
    """Remove what an earlier copy had and this one has not, and the receipts; the manifest comes last."""
    done = sorted(receipts, key=lambda receipt: receipt.name)
    names = {receipt.name for receipt in done}
    manifest = draft.filled(sum(r.rows for r in done), [bytes.fromhex(r.digest) for r in done])
    stale = [file.place for file in listed(target) if file.name not in names]
    remove([place for place in stale if f"/{_RECEIPTS}/" not in place])
    store_text(below(target, FOLDER), manifest.dumps() + "\n")
    remove([place for place in stale if f"/{_RECEIPTS}/" in place])
    return manifest
