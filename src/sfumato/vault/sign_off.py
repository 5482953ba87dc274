"""Sign-off packs of a vault: an audit as a signed document, recorded in the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.audit.pdf import pdf, require_pdf
from sfumato.audit.result import Audit
from sfumato.audit.sign_off import Provenance, html
from sfumato.errors import VaultError
from sfumato.keys.key import Key
from sfumato.keys.signature import public_key
from sfumato.ledger.ledger import Ledger
from sfumato.levels import Level
from sfumato.models import Model
from sfumato.release.certificate import REPORTS, report_signature, signature_path
from sfumato.tables.atomic import write_bytes
from sfumato.tables.view import View
from sfumato.vault.datasets import Dataset
from sfumato.vault.grants import require


def is_pdf(path: Path) -> bool:
    """Whether a pack is written as PDF."""
    return path.suffix.lower() == ".pdf"


def check_suffix(path: Path) -> None:
    """Refuse a pack that is neither PDF nor HTML."""
    if path.suffix.lower() not in REPORTS:
        raise VaultError(f"a report must end in {', '.join(REPORTS)}, got {path.name!r}")


def check_format(path: Path) -> None:
    """Refuse a pack that cannot be written, before any work is done."""
    check_suffix(path)
    if is_pdf(path):
        require_pdf()


@dataclass(frozen=True)
class Pack:
    """A signed sign-off pack; its signature is beside it, in a file `.sig`."""

    content: bytes
    signature: bytes

    def write(self, path: Path) -> None:
        """Write the pack and its signature."""
        write_bytes(path, self.content)
        write_bytes(signature_path(path), self.signature)


def signed_pack(
    ledger: Ledger,
    keys: Mapping[int, Key],
    dataset: Dataset,
    audit: Audit,
    views: Mapping[str, View],
    now: datetime,
    *,
    as_pdf: bool,
) -> Pack:
    """A signed sign-off pack of an audit of copies with some views; it is recorded before anybody sees it."""
    with ledger.reading(keys) as reading:
        head = reading.head()
    master = keys[head.generation]
    made = Provenance(
        vault=public_key(master),
        version=dataset.version,
        policy=dataset.scheme.policy.digest(),
        scheme=dataset.scheme.digest(),
        ledger=head.head,
        entries=head.entries,
        actor=ledger.actor,
        made=f"{now.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        roles=tuple(_treatment(dataset, audit)),
    )
    content = pdf(audit, made) if as_pdf else html(audit, made).encode()
    digest = hashlib.sha256(content).hexdigest()
    body = {
        "version": dataset.version,
        "digest": digest,
        "state": audit.state.value,
        "findings": len(audit.findings),
        "fidelity": max(copy.fidelity for copy in audit.copies),
        "copies": [copy.name for copy in audit.copies],
        "assessed": [{"fidelity": copy.fidelity, **_shown(views[copy.name])} for copy in audit.copies],
    }
    with ledger.writing(keys) as writing:
        if require(writing, "dataset", dataset.name).body != dataset.body:
            raise VaultError(f"{dataset.name} changed while it was audited; audit it again")
        writing.append("reported", "report", body, dataset=dataset.name)
    return Pack(content, report_signature(master, digest))


def _shown(view: View) -> dict[str, Any]:
    """The columns and rows of an assessed copy, where they are not all."""
    columns = None if view.columns is None else list(view.columns)
    return {name: value for name, value in (("columns", columns), ("where", view.where)) if value is not None}


def _treatment(dataset: Dataset, audit: Audit) -> list[tuple[str, str]]:
    """What is done to each column, in the words of the manifest of the best copy."""
    level = Level(max(copy.fidelity for copy in audit.copies))
    models: list[Model] = list(dataset.scheme.models(dataset.schema, level))
    shown = [(name, model.describe(name, lambda value: f"{value:,.4g}")) for model in models for name in model.columns]
    dropped = [name for name in dataset.schema.names if name not in {column for column, _ in shown}]
    return [*shown, *((name, "not released") for name in dropped)]
