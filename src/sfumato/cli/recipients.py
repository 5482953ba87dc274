"""Commands for recipients and their grants: `recipient`, `grant` and `revoke`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, print_result
from sfumato.cli.vault_options import open_vault, vault_options

if TYPE_CHECKING:
    from sfumato.ledger.chain import Entry


_MOST = 0.9
"""Above this level most of every column is readable."""

_READABLE = (
    f"NOTE: above fidelity {_MOST:g} a copy is meant to show most of every column; the audit lists what it shows."
)


@click.group()
def recipient() -> None:
    """Register, list, disable and enable recipients."""


@recipient.command("add")
@click.argument("name")
@click.option("--note", default="", help="A description of the recipient.")
@vault_options
@as_json_option
def recipient_add(name: str, note: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Register a recipient."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).recipient(name, note=note)
    print_result(entry.__dict__, as_json, sentence(entry), f"sfumato grant {name} DATASET --level LEVEL")


@recipient.command("list")
@vault_options
@as_json_option
def recipient_list(location: str, key_path: Path | None, as_json: bool) -> None:
    """List all recipients and their grants."""
    from sfumato.vault.overview import overview_text

    vault = open_vault(location, key_path)
    grants: dict[str, list[str]] = {}
    for one in vault.grants():
        grants.setdefault(one.recipient, []).append(f"{one.dataset}: {one.level}")
    rows = [
        {
            "recipient": one.recipient,
            "note": one.note,
            "enabled": "yes" if one.enabled else "no",
            "grants": ", ".join(grants.get(one.recipient, [])),
        }
        for one in vault.recipients()
    ]
    found = {"recipients": len(rows), "table": rows}
    print_result(found, as_json, overview_text(found), "sfumato grant RECIPIENT DATASET --level LEVEL")


@recipient.command("disable")
@click.argument("name")
@vault_options
@as_json_option
def recipient_disable(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Disable a recipient: no more copies are released to it."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).disable(name)
    print_result(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {name}")


@recipient.command("enable")
@click.argument("name")
@vault_options
@as_json_option
def recipient_enable(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Enable a disabled recipient."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).enable(name)
    print_result(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {name}")


@click.command()
@click.argument("recipient")
@click.argument("dataset")
@click.option("--level", help="The name of a declared level, or a fidelity between 0 and 1.")
@click.option("--columns", help="The columns of the copy, separated by commas; by default all.")
@click.option("--where", help="A condition on the rows, such as \"region == 'north'\", with public columns only.")
@click.option("--until", help="The last day of the grant, such as 2026-12-31.")
@vault_options
@as_json_option
def grant(
    recipient: str,
    dataset: str,
    level: str | None,
    columns: str | None,
    where: str | None,
    until: str | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Grant a RECIPIENT a DATASET at a level."""
    from sfumato.vault.messages import sentence
    from sfumato.vault.names import tables_of

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    vault = open_vault(location, key_path)
    names = tables_of(vault, dataset)
    if level is None:
        known = ", ".join(f"{name} ({fidelity:g})" for name, fidelity in vault.dataset(names[0]).levels.items())
        raise click.UsageError(f"Missing option '--level': {known}, or a fidelity between 0 and 1.")
    if names != [dataset] and (chosen or where):
        raise click.UsageError(f"--columns and --where are about one table; name it, as in {names[0]}.")
    entries = [vault.grant(recipient, one, level, columns=chosen, where=where, until=until) for one in names]
    next_step = f"sfumato audit {names[0]}, then sfumato release {recipient} {dataset}"
    text = [*map(sentence, entries), *([_READABLE] if entries[0].body["fidelity"] > _MOST else [])]
    print_result(_result(entries), as_json, "\n".join(text), next_step)


@click.command()
@click.argument("recipient")
@click.argument("dataset")
@vault_options
@as_json_option
def revoke(recipient: str, dataset: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Revoke the grant of a DATASET to a RECIPIENT. Copies that were released before cannot be taken back."""
    from sfumato.vault.messages import sentence
    from sfumato.vault.names import tables_of

    vault = open_vault(location, key_path)
    entries = [vault.revoke(recipient, one) for one in tables_of(vault, dataset)]
    print_result(_result(entries), as_json, "\n".join(map(sentence, entries)), f"sfumato log --recipient {recipient}")


def _result(entries: Sequence[Entry]) -> dict[str, Any]:
    """An entry, or those of all tables of a dataset, as JSON."""
    return entries[0].__dict__ if len(entries) == 1 else {"entries": [entry.__dict__ for entry in entries]}
