"""What a vault holds, at a glance."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from sfumato.errors import TamperedError
from sfumato.ledger.chain import Entry
from sfumato.ledger.ledger import LedgerReader
from sfumato.vault.grants import known
from sfumato.vault.names import last_moment
from sfumato.vault.record_changes import exposure
from sfumato.vault.releases import held
from sfumato.vault.vault import Vault

_SHOWN = 20
"""Rows of a table that are read for a glance."""


def of_vault(vault: Vault) -> dict[str, Any]:
    """The vault as a whole, and its first datasets; it takes no longer for a large vault."""
    with vault.ledger.reading() as reading:
        head, generations = reading.head(), reading.generations()
        datasets = reading.current("dataset", first=_SHOWN)
    return {
        "vault": vault.ledger.database.name,
        "store": head.store,
        "opens with": vault.opens_with,
        "public key": generations[-1].public,
        "entries": head.entries,
        "last entry": head.head,
        **{f"{kind}s": head.counts.get(kind, 0) for kind in ("dataset", "recipient", "grant", "release")},
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
    }


def readable(found: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """An overview, refused if some entry is not as the vault writes them."""
    try:
        return found()
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TamperedError("the ledger holds entries that no vault wrote; run `sfumato verify`") from None


def of_dataset(vault: Vault, name: str) -> dict[str, Any]:
    """One dataset: who has which level, and what averaging over versions would tell each of them, and all together."""
    with vault.ledger.reading() as reading:
        entry = known(reading, "dataset", name)
        grants = reading.current("grant", dataset=name)
        rows = [_holder(reading, grant) for grant in grants]
        copies = held(reading, name)
    numbers = "gaussian" in entry.body["columns"].values()
    together = exposure(vault.store, copies, numbers=numbers)["error"] if copies else None
    turned = [column for column, role in entry.body["columns"].items() if role in ("rotation", "projection")]
    return {
        "dataset": name,
        "version": entry.body["version"],
        "rows": entry.body["rows"],
        "columns": ", ".join(f"{column} ({role})" for column, role in entry.body["columns"].items()),
        "left to all together": "" if together is None else f"{together:.1%} of the variance of the worst record",
        **({"turned, and not counted here": f"{', '.join(turned)}; see sfumato audit {name}"} if turned else {}),
        "table": rows,
    }


def of_recipients(vault: Vault) -> dict[str, Any]:
    """All recipients."""
    with vault.ledger.reading() as reading:
        entries = reading.current("recipient")
        grants: dict[str, list[str]] = {}
        for grant in reading.current("grant"):
            if grant.action == "granted":
                grants.setdefault(grant.recipient, []).append(f"{grant.dataset}: {grant.body['level']}")
    return {
        "recipients": len(entries),
        "table": [
            {
                "recipient": entry.recipient,
                "note": entry.body["note"],
                "may receive": "no" if entry.action == "disabled" else "yes",
                "grants": ", ".join(grants.get(entry.recipient, [])),
            }
            for entry in entries
        ],
    }


def _holder(reading: LedgerReader, grant: Entry) -> dict[str, Any]:
    latest = reading.latest("release", grant.dataset, grant.recipient)
    until = "" if grant.body["until"] is None else last_moment(grant.body["until"])
    row = {
        "recipient": grant.recipient,
        "level": str(grant.body["level"]) if grant.action == "granted" else "revoked",
        "fidelity": round(grant.body["fidelity"], 6),
        "until": until,
        "part": "; ".join(filter(None, [", ".join(grant.body["columns"] or ()), grant.body["where"]])) or "all",
    }
    if latest is None:
        return row | {"last release": "", "draws of a record": "", "left to average": ""}
    said = latest.body
    return row | {
        "last release": f"version {said['version']}, {latest.at[:10]}",
        "draws of a record": "up to " + max(said["exposure"]["draws"], key=int, default="1"),
        "left to average": "" if said["exposure"]["error"] is None else f"{said['exposure']['error']:.1%}",
    }


def shown(found: dict[str, Any]) -> str:
    """The same for a terminal."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.table import Table  # noqa: PLC0415

    width = max((len(name) for name in found if name != "table"), default=0)
    text = [f"{name:<{width}}  {value}" for name, value in found.items() if name != "table"]
    if not found["table"]:
        return "\n".join(text)
    table = Table()
    for name, value in found["table"][0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right", overflow="fold")
    for row in found["table"]:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    out = io.StringIO()
    Console(file=out, width=120).print(table)
    return "\n".join(text) + "\n" + out.getvalue().rstrip()
