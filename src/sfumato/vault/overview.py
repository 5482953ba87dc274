"""Overviews of a vault: its datasets, the recipients of a dataset, and the residual error if they collude."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TypeVar

from sfumato.errors import SfumatoError, TamperedError
from sfumato.ledger.chain import ERASED, Entry
from sfumato.ledger.reader import LedgerReader, Query
from sfumato.vault.encryption import outdated_datasets
from sfumato.vault.erasure import held_content
from sfumato.vault.grants import require
from sfumato.vault.lifecycle import VaultLifecycle
from sfumato.vault.names import format_end

T = TypeVar("T")

_MAX_DATASETS = 20
"""The most datasets in the overview of a vault."""

_RECEIVED = "residual error of all copies received"
"""What a recipient can find out from what was released to it, whatever its grant is now."""

_TABLES = ("table", "held")
"""The keys of the tables in an overview."""


def vault_overview(vault: VaultLifecycle) -> dict[str, Any]:
    """The vault, the datasets that changed last, and what it still holds of them; no table is read."""
    with vault.ledger.reading(vault.keys()) as reading:
        head, generations = reading.head(), reading.generations()
        counts = {f"{kind}s": _existing(reading, kind) for kind in ("dataset", "recipient")}
        counts |= {f"{kind}s": reading.subjects(kind) for kind in ("grant", "release")}
        latest = [entry for entry in reading.recent("dataset", _MAX_DATASETS) if entry.action != ERASED]
        datasets = sorted(latest, key=lambda entry: entry.dataset)
        plain, earlier = outdated_datasets(reading, datasets)
        held = held_content(reading, datasets, vault.store, vault.outbox)
    return {
        "vault": vault.ledger.database.name,
        "store": head.store,
        "opens with": vault.opens_with,
        "public key": generations[-1].public,
        "entries": head.entries,
        "last entry": head.head,
        **counts,
        **({"not encrypted": f"{', '.join(plain)}; run sfumato encrypt"} if plain else {}),
        **({"encrypted with an earlier key": f"{', '.join(earlier)}; run sfumato encrypt"} if earlier else {}),
        "table": [
            {
                "dataset": entry.dataset,
                "version": entry.body["version"],
                "rows": entry.body["rows"],
                "levels": ", ".join(f"{name} {value:g}" for name, value in entry.body["levels"]),
                "traced": "yes" if entry.body["traced"] else "no",
                "last change": entry.at[:16].replace("T", " "),
            }
            for entry in datasets
        ],
        "held": held,
    }


def _existing(reading: LedgerReader, kind: str) -> int:
    """The number of subjects of a kind that were not erased; only those that were are read."""
    erased = reading.entries(Query(kind=kind, action=ERASED))
    return reading.subjects(kind) - len({(entry.dataset, entry.recipient) for entry in erased})


def dataset_overview(vault: VaultLifecycle, name: str) -> dict[str, Any]:
    """The recipients of a dataset with their levels, and the residual error of each, and if all of them collude."""
    from sfumato.vault.datasets import adds_noise, is_linear_map
    from sfumato.vault.overlaps import overlapping
    from sfumato.vault.record_changes import exposure
    from sfumato.vault.releases import held_copies, held_elsewhere

    with vault.ledger.reading(vault.keys()) as reading:
        entry = require(reading, "dataset", name)
        rows = [_recipient_row(reading, grant) for grant in reading.current("grant", dataset=name)]
        copies, elsewhere = held_copies(reading, name), held_elsewhere(reading, name)
        shared, decided = overlapping(reading, name), _sign_off(reading, name)
    roles = entry.body["columns"]
    numbers = any(map(adds_noise, roles.values()))
    error = exposure(vault.store, copies, numbers=numbers, elsewhere=elsewhere)["error"] if copies else None
    mapped = [column for column, role in roles.items() if is_linear_map(role)]
    return {
        "dataset": name,
        "version": entry.body["version"],
        "rows": entry.body["rows"],
        "columns": ", ".join(f"{column} ({role})" for column, role in roles.items()),
        "residual error of the best linear attack if all recipients collude": "" if error is None else f"{error:.1%}",
        **({"linear maps, not included": f"{', '.join(mapped)}; see sfumato audit {name}"} if mapped else {}),
        **({"shares records with, which is included": ", ".join(shared)} if shared else {}),
        **decided,
        "table": rows,
    }


def _sign_off(reading: LedgerReader, name: str) -> dict[str, str]:
    """The verdict of the latest sign-off pack of a dataset, and the latest decision about one."""
    found = {}
    report, decision = reading.latest("report", name), reading.latest("approval", name)
    if report is not None:
        found["sign-off pack"] = f"{report.body['state']}, version {report.body['version']}, {report.at[:10]}"
    if decision is not None:
        body = decision.body
        found["decision"] = f"{decision.action} by {body['officer']}, version {body['version']}, {decision.at[:10]}"
    return found


def _recipient_row(reading: LedgerReader, grant: Entry) -> dict[str, Any]:
    """The row of a recipient in the overview of a dataset."""
    latest = reading.latest("release", grant.dataset, grant.recipient)
    until = "" if grant.body["until"] is None else format_end(grant.body["until"])
    row = {
        "recipient": grant.recipient,
        "level": str(grant.body["level"]) if grant.action == "granted" else "revoked",
        "fidelity": round(grant.body["fidelity"], 6),
        "until": until,
        "part": "; ".join(filter(None, [", ".join(grant.body["columns"] or ()), grant.body["where"]])) or "all",
    }
    if latest is None:
        return row | dict.fromkeys(("last release", "noise draws per record", _RECEIVED), "")
    release, exposed = latest.body, latest.body["exposure"]
    at = f"version {release['version']}, {latest.at[:10]}"
    is_granted = grant.action == "granted" and release["fidelity"] == grant.body["fidelity"]
    return row | {
        "last release": at if is_granted else f"{at}, at {release['level']}",
        "noise draws per record": "up to " + max(exposed["draws"], key=int, default="1"),
        _RECEIVED: "" if exposed["error"] is None else f"{exposed['error']:.1%}",
    }


def checked_overview(overview: Callable[[], T]) -> T:
    """An overview of some entries; raises `TamperedError` if one of them was not written by a vault."""
    try:
        return overview()
    except SfumatoError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TamperedError(
            "the ledger must have only entries that the vault wrote, and some were altered; run `sfumato verify`"
        ) from None


def overview_text(overview: dict[str, Any]) -> str:
    """An overview as text for a terminal: its values, and its tables."""
    from rich.console import Console
    from rich.table import Table

    values = {name: value for name, value in overview.items() if name not in _TABLES}
    width = max(map(len, values), default=0)
    text = [f"{name:<{width}}  {value}" for name, value in values.items()]
    for rows in filter(None, map(overview.get, _TABLES)):
        table = Table()
        for name, value in rows[0].items():
            table.add_column(name, justify="left" if isinstance(value, str) else "right", overflow="fold")
        for row in rows:
            table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
        out = io.StringIO()
        Console(file=out, width=120).print(table)
        text.append(out.getvalue().rstrip())
    return "\n".join(text)
