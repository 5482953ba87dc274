"""Commands for recipients and their grants: `recipient`, `grant` and `revoke`."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import as_json_option, print_result
from sfumato.cli.vault_options import open_vault, vault_options


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
@click.option("--level", required=True, help="The name of a declared level, or a fidelity between 0 and 1.")
@click.option("--columns", help="The columns of the copy, separated by commas; by default all.")
@click.option("--where", help="A condition on the rows, such as \"region == 'north'\", with public columns only.")
@click.option("--until", help="The last day of the grant, such as 2026-12-31.")
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
    """Grant a RECIPIENT a DATASET at a level."""
    from sfumato.vault.messages import sentence

    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    entry = open_vault(location, key_path).grant(recipient, dataset, level, columns=chosen, where=where, until=until)
    print_result(
        entry.__dict__, as_json, sentence(entry), f"sfumato audit {dataset}, then sfumato release {recipient} {dataset}"
    )


@click.command()
@click.argument("recipient")
@click.argument("dataset")
@vault_options
@as_json_option
def revoke(recipient: str, dataset: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Revoke the grant of a DATASET to a RECIPIENT. Copies that were released before cannot be taken back."""
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).revoke(recipient, dataset)
    print_result(entry.__dict__, as_json, sentence(entry), f"sfumato log --recipient {recipient}")
