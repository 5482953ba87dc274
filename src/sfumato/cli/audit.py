"""Commands for auditors: reading the ledger, checking it, tracing a leak, and attacking what was given."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, new_file, progress, say
from sfumato.cli.vault_options import connected, is_service, location_option, open_vault, vault_options

if TYPE_CHECKING:
    from sfumato.audit.result import Audit


@click.command()
@click.option("--last", type=click.IntRange(1, 10**9), default=20, show_default=True, help="How many entries.")
@click.option("--all", "everything", is_flag=True, help="All entries.")
@click.option("--dataset", help="Only of this dataset.")
@click.option("--recipient", help="Only of this recipient.")
@click.option("--action", help="Only these: added, updated, granted, revoked, released, ...")
@click.option("--since", help="From this day on, as in 2026-01-31.")
@click.option("--until", help="Up to the end of this day.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the entries as CSV.")
@location_option
@as_json_option
def log(
    last: int,
    everything: bool,
    dataset: str | None,
    recipient: str | None,
    action: str | None,
    since: str | None,
    until: str | None,
    as_csv: bool,
    location: str,
    as_json: bool,
) -> None:
    """Read the ledger: what was given to whom, and when."""
    from sfumato.vault import Vault
    from sfumato.vault.log_query import asked
    from sfumato.vault.messages import line

    query = asked(dataset, recipient, action, since, until, None if everything else last)
    entries = connected(location).log(query) if is_service(location) else Vault.open(location).log(query)
    if as_csv:
        click.echo(_csv([{**entry.__dict__, "body": json.dumps(entry.body)} for entry in entries]), nl=False)
        return
    text = "\n".join(map(line, entries)) or "No entry fits."
    say({"entries": [entry.__dict__ for entry in entries]}, as_json, text, "sfumato verify")


def _csv(rows: list[dict[str, object]]) -> str:
    from sfumato.ledger.chain import Entry

    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in dataclasses.fields(Entry)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@click.command()
@click.option("--contains", metavar="HASH", help="The hash of an entry, written down earlier, that must be there.")
@click.option("--quick", is_flag=True, help="Check the ledger only, not tables and copies.")
@vault_options
@as_json_option
def verify(contains: str | None, quick: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Find any edited, removed or reordered entry, any altered file, and any copy that is not as it was released."""
    vault = open_vault(location, key_path)
    with progress(quiet=as_json, unit="checked") as (stage, advance):
        stage("verifying")
        report = vault.verify(contains=contains, files=not quick, progress=advance)
    head = f"{report.entries:,} entries, {report.files:,} files, {report.copies:,} copies"
    text = [f"All is well: {head}." if report.sound else f"NOT AS IT SHOULD BE ({head}):"]
    text += [f"! {problem}" for problem in report.problems] + [f"- {note}" for note in report.notes]
    following = "sfumato log" if report.sound else "keep this vault as evidence, and restore a backup beside it"
    say({**dataclasses.asdict(report), "sound": report.sound}, as_json, "\n".join(text), following)
    if not report.sound:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("dataset")
@click.argument("leaked", type=click.Path(path_type=Path))
@vault_options
@as_json_option
def trace(dataset: str, leaked: Path, location: str, key_path: Path | None, as_json: bool) -> None:
    """Say whose copy of a DATASET a LEAKED file is, or was made from; nobody's, when it is not ours."""
    from sfumato.vault.messages import trace_as_json, trace_in_words

    vault = open_vault(location, key_path)
    with progress(quiet=as_json, unit="copies") as (stage, advance):
        stage("comparing")
        found = vault.trace(dataset, leaked, progress=advance)
    if isinstance(found, dict):
        said, text = found, str(found["text"])
    else:
        said, text = trace_as_json(found), trace_in_words(found, str(leaked))
    say(said, as_json, text, f"sfumato log --dataset {dataset}")


@click.command()
@click.argument("subjects", nargs=-1, required=True, metavar="DATASET | COPY...")
@click.option("--colluders", help="Who pools their copies, separated by commas; by default all who have one.")
@click.option("--original", type=click.Path(path_type=Path), help="Audit files instead: the table they are copies of.")
@click.option("--attack", "attacks", multiple=True, help="Try only this attack; repeat it. By default all.")
@click.option("--rows", type=click.IntRange(100), default=100_000, show_default=True, help="Attack at most so many.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the report, a page with pictures, here.")
@vault_options
@as_json_option
def audit(
    subjects: tuple[str, ...],
    colluders: str | None,
    original: Path | None,
    attacks: tuple[str, ...],
    rows: int,
    output: Path | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Try all attacks on what recipients hold of a DATASET, alone and together, before it leaves the house.

    With --original, the subjects are files: copies of that table.
    """
    if output is not None:
        new_file(output, (".html", ".htm"), ours="<title>Audit of ")
    with progress(quiet=as_json, unit="") as (stage, _):
        if original is not None:
            from sfumato.audit.file_audit import audit_files

            found: Audit | dict[str, Any] = audit_files(
                original, subjects, attacks=attacks or None, rows=rows, stage=stage
            )
        else:
            if len(subjects) > 1:
                raise click.UsageError("one dataset is audited at a time; to audit files, name their --original")
            names = _names(colluders)
            vault = open_vault(location, key_path)
            found = vault.audit(subjects[0], colluders=names, attacks=attacks or None, rows=rows, stage=stage)
        if output is not None:
            stage("drawing the report")
            _report(found, output)
    following = f"open {output}" if output else "the same with -o report.html, for a page with pictures"
    summary, text, passed = _told(found)
    say(summary, as_json, text, following)
    if not passed:
        raise click.exceptions.Exit(1)


def _names(colluders: str | None) -> list[str] | None:
    if colluders is None:
        return None
    names = [name.strip() for name in colluders.split(",") if name.strip()]
    if not names:
        raise click.UsageError("--colluders needs names, as in --colluders university,insurer")
    return names


def _told(found: Audit | dict[str, Any]) -> tuple[dict[str, Any], str, bool]:
    """An audit as JSON and in words, and whether it passed; one by a service is told already."""
    if isinstance(found, dict):
        return found["summary"], found["text"], found["passed"]
    from sfumato.audit.messages import text

    return found.summary(), text(found), found.passed


def _report(found: Audit | dict[str, Any], output: Path) -> None:
    from sfumato.audit.report import page
    from sfumato.tables.atomic import replace_text

    replace_text(output, found["page"] if isinstance(found, dict) else page(found))
