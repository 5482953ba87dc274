"""Commands that destroy content for good: `erase dataset`, `erase recipient`, `erase survey` and `erase accesses`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli.output import as_json_option, print_result
from sfumato.cli.vault_options import open_surveys, open_vault, vault_options

if TYPE_CHECKING:
    from sfumato.ledger.chain import Entry

_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_BACKUPS = "Backups that were written before still have it: delete them, and write a new one."


@click.group()
def erase() -> None:
    """Destroy a dataset, a recipient, a survey or old access records for good; the ledger keeps that it was done."""


@erase.command()
@click.argument("name")
@click.option("--version", type=click.IntRange(1), help="Erase only this version, which is not the current one.")
@_YES
@vault_options
@as_json_option
def dataset(name: str, version: int | None, yes: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Erase the dataset NAME, or one version of it: its tables, and the keys without which nobody can read them.

    Copies that recipients hold remain with them. Without the erased records, nobody can trace a leak of these copies,
    nor recognise the records if they are added again under another name, with noise that could be averaged with them.
    """
    vault = open_vault(location, key_path)
    what = f"the dataset {name}" if version is None else f"version {version} of {name}"
    _confirm(what, yes)
    _print(vault.erase(name, version=version), as_json, _BACKUPS)


@erase.command()
@click.argument("name")
@_YES
@vault_options
@as_json_option
def recipient(name: str, yes: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Erase the recipient NAME: its grants and its tokens end. The ledger keeps which copies it received."""
    vault = open_vault(location, key_path)
    _confirm(f"the recipient {name}", yes)
    _print(vault.erase_recipient(name), as_json, "Copies that it holds remain with it, and still count.")


@erase.command()
@click.argument("name")
@_YES
@vault_options
@as_json_option
def survey(name: str, yes: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Erase the survey NAME, which must be closed: all its answers and its tickets."""
    surveys = open_surveys(location, key_path)
    _confirm(f"all answers to the survey {name}", yes)
    _print(surveys.erase(name), as_json, _BACKUPS)


@erase.command()
@click.option("--before", required=True, help="The first day to keep, such as 2026-01-31.")
@_YES
@vault_options
@as_json_option
def accesses(before: str, yes: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Erase the records of the access log before a day, with the addresses in them."""
    vault = open_vault(location, key_path)
    _confirm(f"the access log before {before}", yes)
    entry = vault.erase_accesses(before)
    if entry is None:
        print_result({"erased": 0}, as_json, f"There is no record before {before}.", "sfumato log --accesses")
    else:
        _print(entry, as_json, "")


def _confirm(what: str, yes: bool) -> None:
    if not yes:
        click.confirm(f"Erase {what} for good?", abort=True, err=True)


def _print(entry: Entry, as_json: bool, more: str) -> None:
    from sfumato.vault.messages import sentence

    text = "\n".join(filter(None, [sentence(entry), more]))
    print_result(entry.__dict__, as_json, text, "sfumato status, which says what is still held")
