"""Commands about recipients: who they are, and what they may have."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import as_json_option, say
from sfumato.cli.vault_options import connected, is_service, location_option, open_vault, vault_options


@click.group()
def recipient() -> None:
    """Register and disable recipients."""


@recipient.command("add")
@click.argument("name")
@click.option("--note", default="", help="Who that is.")
@vault_options
@as_json_option
def recipient_add(name: str, note: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Register a recipient."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).recipient(name, note=note)
    say(entry.__dict__, as_json, sentence(entry), f"sfumato grant {name} DATASET --level LEVEL")


@recipient.command("list")
@location_option
@as_json_option
def recipient_list(location: str, as_json: bool) -> None:
    """List all recipients and their grants."""
    from sfumato.vault import Vault
    from sfumato.vault.overview import of_recipients, readable, shown

    if is_service(location):
        rows = connected(location).recipients()
        found = {"recipients": len(rows), "table": rows}
    else:
        found = readable(lambda: of_recipients(Vault.open(location)))
    say(found, as_json, shown(found), "sfumato grant RECIPIENT DATASET --level LEVEL")


@recipient.command("disable")
@click.argument("name")
@vault_options
@as_json_option
def recipient_disable(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let a recipient receive nothing more."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).disable(name)
    say(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {name}")


@recipient.command("enable")
@click.argument("name")
@vault_options
@as_json_option
def recipient_enable(name: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let a disabled recipient receive copies again."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).enable(name)
    say(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {name}")


@click.command()
@click.argument("recipient")
@click.argument("dataset")
@click.option("--level", required=True, help="A declared level's name, or a fidelity between 0 and 1.")
@click.option("--columns", help="Only these columns, with commas between them.")
@click.option("--where", help="Only rows for which this holds, as in \"region == 'north'\"; public columns only.")
@click.option("--until", help="The last day of the grant, as in 2026-12-31.")
@vault_options
@as_json_option
def grant(
    recipient: str,
    dataset: str,
    level: str,
    columns: str | None,
    where: str | None,
    until: str | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Let a RECIPIENT have a DATASET at a level."""
    from sfumato.vault.messages import sentence

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    entry = open_vault(location, key_path).grant(recipient, dataset, level, columns=chosen, where=where, until=until)
    say(
        entry.__dict__, as_json, sentence(entry), f"sfumato audit {dataset}, then sfumato release {recipient} {dataset}"
    )


@click.command()
@click.argument("recipient")
@click.argument("dataset")
@vault_options
@as_json_option
def revoke(recipient: str, dataset: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Let a RECIPIENT have a DATASET no more. What was given cannot be taken back."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).revoke(recipient, dataset)
    say(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {recipient}")
