"""Commands for what is done again and again: scheduled releases, and how long versions and access records are kept."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import as_json_option, print_result, progress
from sfumato.cli.vault_options import local_vault, vault_options


@click.group()
def schedule() -> None:
    """Release new versions regularly, and erase earlier ones in time: a timer runs `sfumato schedule run`."""


@schedule.command("release")
@click.argument("recipient")
@click.argument("dataset")
@click.option(
    "--every",
    type=click.Choice(("version", "day", "week", "month")),
    required=True,
    help="At once for each version, or at most once in each day, week or month.",
)
@click.option(
    "--to",
    required=True,
    help="The output, a file or a URL, with {version}, {date}, {dataset} and {recipient} where they belong.",
)
@click.option("--new-rows", is_flag=True, help="Only the rows that were appended since the release before.")
@vault_options
@as_json_option
def schedule_release(
    recipient: str,
    dataset: str,
    every: str,
    to: str,
    new_rows: bool,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Release each new version of a DATASET to a RECIPIENT, as its grant says."""
    from sfumato.vault.messages import sentence
    from sfumato.vault.schedules import schedule as record

    entry = record(local_vault(location, key_path), recipient, dataset, every, to, new_rows=new_rows)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato schedule run, by a timer, such as cron's")


@schedule.command("keep")
@click.argument("dataset", required=False, default="")
@click.option("--versions", type=click.IntRange(1), help="The number of versions to keep, the current one included.")
@click.option("--days", type=click.IntRange(1), help="How long to keep a version after it was replaced, or a record.")
@click.option("--forever", is_flag=True, help="Keep all, as without a rule.")
@vault_options
@as_json_option
def keep(
    dataset: str,
    versions: int | None,
    days: int | None,
    forever: bool,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Set the retention of earlier versions of a DATASET or, without one, of the records of the access log.

    Without a version that was erased nobody can trace a leak of its copies. What later versions are made of is kept.
    """
    from sfumato.vault.messages import sentence
    from sfumato.vault.schedules import retain

    entry = retain(local_vault(location, key_path), dataset, versions=versions, days=days, forever=forever)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato schedule run, by a timer, such as cron's")


@schedule.command("remove")
@click.argument("recipient")
@click.argument("dataset")
@vault_options
@as_json_option
def remove(recipient: str, dataset: str, location: str, key_path: Path | None, as_json: bool) -> None:
    """End the schedule of a DATASET for a RECIPIENT; its grant stays."""
    from sfumato.vault.messages import sentence
    from sfumato.vault.schedules import unschedule

    entry = unschedule(local_vault(location, key_path), recipient, dataset)
    print_result(entry.__dict__, as_json, sentence(entry), "sfumato schedule list")


@schedule.command("list")
@vault_options
@as_json_option
def list_schedules(location: str, key_path: Path | None, as_json: bool) -> None:
    """Show what is scheduled, when it ran last, and how long what is kept."""
    from sfumato.vault.messages import sentence
    from sfumato.vault.schedules import retentions, schedules

    vault = local_vault(location, key_path)
    with vault.ledger.reading(vault.keys()) as reading:
        planned, rules = schedules(reading), retentions(reading)
    lines = [
        f"{one.dataset} to {one.recipient}, every {one.every}, to {one.to}{', new rows only' if one.new_rows else ''}: "
        f"{f'version {one.version} on {str(one.ran)[:10]}' if one.ran else 'not yet'}"
        for one in planned
    ]
    lines += map(sentence, rules)
    data = {"releases": [one.__dict__ for one in planned], "kept": [rule.__dict__ for rule in rules]}
    print_result(data, as_json, "\n".join(lines) or "Nothing is scheduled.", "sfumato schedule run")


@schedule.command("run")
@vault_options
@as_json_option
def run(location: str, key_path: Path | None, as_json: bool) -> None:
    """Release what is due, and erase what is kept no longer; with exit code 1 if something failed.

    Running it again changes nothing until a new version, day, week or month.
    """
    from sfumato.vault.schedules import run_due

    vault = local_vault(location, key_path)
    with progress(quiet=as_json, unit="") as (stage, _):
        found = run_due(vault, stage)
    lines = [
        f"{'FAILED ' if one.failed else ''}{one.what}: {one.text}" for one in sorted(found, key=lambda o: not o.failed)
    ]
    data = {"done": [one.__dict__ for one in found]}
    print_result(data, as_json, "\n".join(lines) or "Nothing is due.", "sfumato log")
    if any(one.failed for one in found):
        raise click.exceptions.Exit(1)
