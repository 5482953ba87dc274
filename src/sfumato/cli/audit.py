"""Commands for auditors: `log`, `verify`, `trace` and `audit`."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress, shown
from sfumato.cli.vault_options import is_service, open_vault, vault_options

if TYPE_CHECKING:
    from sfumato.vault.protocol import AuditReport


@click.command()
@click.option("--last", type=click.IntRange(1, 10**9), default=20, show_default=True, help="The number of entries.")
@click.option("--all", "everything", is_flag=True, help="All entries.")
@click.option("--dataset", help="Only entries about this dataset.")
@click.option("--recipient", help="Only entries about this recipient.")
@click.option("--action", help="Only entries with this action: added, updated, granted, revoked, released, ...")
@click.option("--since", help="The first day, such as 2026-01-31.")
@click.option("--until", help="The last day.")
@click.option("--accesses", is_flag=True, help="The access log too; with --recipient always.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the entries as CSV.")
@vault_options
@as_json_option
def log(
    last: int,
    everything: bool,
    dataset: str | None,
    recipient: str | None,
    action: str | None,
    since: str | None,
    until: str | None,
    accesses: bool,
    as_csv: bool,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Show the ledger: what was released to whom, and when.

    With --recipient NAME it also shows the access log: every delivery of a copy, or of a part of one, to NAME, with
    token and address.
    """
    from sfumato.vault.log_query import parse_query
    from sfumato.vault.messages import log_line

    query = parse_query(dataset, recipient, action, since, until, None if everything else last)
    vault = open_vault(location, key_path)
    entries = vault.log(query)
    if accesses or recipient is not None:
        entries = sorted([*entries, *vault.accesses(query)], key=lambda entry: entry.at)[-(query.last or 0) :]
    if as_csv:
        click.echo(_csv([{**entry.__dict__, "body": json.dumps(entry.body)} for entry in entries]), nl=False)
        return
    text = "\n".join(map(log_line, entries)) or "No entry matches."
    print_result({"entries": [entry.__dict__ for entry in entries]}, as_json, text, "sfumato verify")


def _csv(rows: list[dict[str, object]]) -> str:
    from sfumato.ledger.chain import Entry

    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in dataclasses.fields(Entry)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@click.command()
@click.option(
    "--contains", metavar="HASH", help="The hash of an entry, noted earlier, that the ledger must still contain."
)
@click.option("--quick", is_flag=True, help="Verify only the ledger, not tables and copies.")
@vault_options
@as_json_option
def verify(contains: str | None, quick: bool, location: str, key_path: Path | None, as_json: bool) -> None:
    """Verify the integrity of the vault: edited, removed or reordered entries, and altered files and copies."""
    vault = open_vault(location, key_path)
    with progress(quiet=as_json, unit="items") as (stage, advance):
        stage("verifying")
        report = vault.verify(contains=contains, files=not quick, progress=advance)
    counts = (
        f"{report.entries:,} entries, {report.accesses:,} accesses, {report.files:,} files, {report.copies:,} copies"
    )
    text = [f"The vault is intact: {counts}." if report.sound else f"VERIFICATION FAILED ({counts}):"]
    text += [f"! {problem}" for problem in report.problems] + [f"- {note}" for note in report.notes]
    next_step = "sfumato log" if report.sound else "keep this vault as evidence, and restore a backup elsewhere"
    print_result({**dataclasses.asdict(report), "sound": report.sound}, as_json, "\n".join(text), next_step)
    if not report.sound:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("dataset")
@click.argument("leaked", type=TableName())
@vault_options
@as_json_option
def trace(dataset: str, leaked: Path | str, location: str, key_path: Path | None, as_json: bool) -> None:
    """Find the recipients whose copy of a DATASET a LEAKED file is, or was made from."""
    from sfumato.vault.messages import trace_text

    vault = open_vault(location, key_path)
    with progress(quiet=as_json, unit="copies") as (stage, advance):
        stage("comparing")
        found = vault.trace(dataset, leaked, progress=advance)
    print_result(found.as_json(), as_json, trace_text(found, shown(leaked)), f"sfumato log --dataset {dataset}")


@click.command()
@click.argument("subjects", nargs=-1, required=True, metavar="DATASET | COPY...")
@click.option("--colluders", help="The recipients who combine their copies, separated by commas; by default all.")
@click.option("--original", type=TableName(), help="Audit files: the table of which they are copies.")
@click.option("--attack", "attacks", multiple=True, help="Run only this attack; may be repeated. By default all.")
@click.option(
    "--rows",
    type=click.IntRange(100),
    default=100_000,
    show_default=True,
    help="The maximum number of records to attack.",
)
@click.option(
    "--without", multiple=True, type=click.Choice(("measures", "utility")), help="Leave out this part; may be repeated."
)
@click.option("--map", "risk_utility", is_flag=True, help="Map what each level would risk and preserve, in the report.")
@click.option(
    "--quasi", multiple=True, help="Columns that a public table about the same persons has, separated by commas."
)
@click.option("--public", type=TableName(), help="The public table itself: its columns are the quasi-identifiers.")
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    help="Write a signed sign-off pack for officers, PDF or HTML, and record it in the ledger.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the report, an HTML page with figures, to this file."
)
@vault_options
@as_json_option
def audit(
    subjects: tuple[str, ...],
    colluders: str | None,
    original: Path | str | None,
    attacks: tuple[str, ...],
    rows: int,
    without: tuple[str, ...],
    risk_utility: bool,
    quasi: tuple[str, ...],
    public: Path | str | None,
    report: Path | None,
    output: Path | None,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Attack the copies of a DATASET that recipients hold or may receive, alone and together.

    The exit code is 0 if the copies are collusion-resistant and exceed no limit, 3 if they are collusion-resistant
    but columns are readable or records can be singled out, and 4 if they are unsound.

    With --original, audit files instead: each COPY is a copy of that table.
    """
    from sfumato.audit.states import State
    from sfumato.tables.atomic import write_text

    _check_outputs(report, output, subjects, original, location, risk_utility=risk_utility)
    known = tuple(_names(",".join(quasi) or None, "quasi") or ())
    if public is not None:
        known += _shared_columns(public, original, subjects[0], location, key_path)
    named = _names(colluders, "colluders")
    chosen = _Chosen(subjects[0], named, attacks or None, rows, without, known, risk_utility)
    with progress(quiet=as_json, unit="") as (stage, _):
        if original is not None:
            found: AuditReport = _audit_files(original, subjects, chosen, stage)
        else:
            vault = open_vault(location, key_path)
            found = vault.audit(chosen.dataset, report=report, stage=stage, **chosen.options())
        if output is not None:
            stage("writing the report")
            write_text(output, found.page())
    assumed = original is None and colluders is None and not vault.grants(chosen.dataset)
    nobody = "Nobody has a grant: one recipient is assumed at each declared level.\n\n" if assumed else ""
    print_result(found.summary(), as_json, f"{nobody}{found.text()}", _next_step(subjects[0], report, output))
    if code := State(found.summary()["state"]).exit_code:
        raise click.exceptions.Exit(code)


@dataclasses.dataclass(frozen=True)
class _Chosen:
    """What is audited, and how."""

    dataset: str
    colluders: list[str] | None
    attacks: tuple[str, ...] | None
    rows: int
    without: tuple[str, ...]
    quasi: tuple[str, ...]
    risk_utility: bool

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "dataset"}


def _next_step(dataset: str, report: Path | None, output: Path | None) -> str:
    if report is not None:
        return f"open {report}; an officer decides with `sfumato approve {dataset} --by NAME`"
    return f"open {output}" if output else "the same with -o report.html, for a page with figures"


def _check_outputs(
    report: Path | None,
    output: Path | None,
    subjects: tuple[str, ...],
    original: Path | str | None,
    location: str,
    *,
    risk_utility: bool,
) -> None:
    """Refuse what cannot be made, before any work is done."""
    if original is None and len(subjects) > 1:
        raise click.UsageError("audit one dataset at a time; to audit files, name their --original")
    if original is not None and risk_utility:
        raise click.UsageError("--map needs the policy: audit a dataset of a vault, or use suggest --map")
    if report is not None:
        _check_report(report, subjects, original, location)
    if output is not None:
        check_new_file(output, (".html", ".htm"), replaceable="<title>Audit of ")


def _check_report(report: Path, subjects: tuple[str, ...], original: Path | str | None, location: str) -> None:
    """Refuse a sign-off pack that cannot be made, before any work is done."""
    from sfumato.vault.sign_off import check_format, check_suffix

    if original is not None:
        raise click.UsageError(
            f"--report signs with the vault's key and records the pack in its ledger, and {subjects[0]} is a file; -o "
            "writes a report without signature"
        )
    check = check_suffix if is_service(location) else check_format
    check(report)


@click.command()
@click.argument("dataset")
@click.option("--by", "officer", required=True, help="The name of the officer who decides.")
@click.option("--role", default="", help="The officer's role, such as 'data protection officer'.")
@click.option("--reason", default="", help="Why; it is recorded with the decision.")
@click.option("--reject", is_flag=True, help="Record that the version must not be released.")
@vault_options
@as_json_option
def approve(
    dataset: str,
    officer: str,
    role: str,
    reason: str,
    reject: bool,
    location: str,
    key_path: Path | None,
    as_json: bool,
) -> None:
    """Record an officer's decision about the latest sign-off pack of a DATASET.

    With `require_approval = true` in its policy, a version is released only after it was approved.
    """
    from sfumato.vault.messages import sentence

    entry = open_vault(location, key_path).approve(dataset, officer, role=role, reason=reason, approved=not reject)
    print_result(entry.__dict__, as_json, sentence(entry), f"sfumato log --dataset {dataset}")


def _shared_columns(
    public: Path | str, original: Path | str | None, subject: str, location: str, key_path: Path | None
) -> tuple[str, ...]:
    """The columns of a public table that copies of the audited table have too."""
    from sfumato.tables.source import Source

    if original is not None:
        own = Source.of(original).schema.names
    else:
        roles = open_vault(location, key_path).dataset(subject).columns
        own = [name for name, role in roles.items() if role not in ("id", "drop")]
    shared = tuple(name for name in Source.of(public).schema.names if name in own)
    if not shared:
        raise click.UsageError(f"a public table must share a column with {subject}, and {public} shares none")
    return shared


def _names(listed: str | None, option: str) -> list[str] | None:
    if listed is None:
        return None
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names:
        raise click.UsageError(f"--{option} needs names, as in --{option} one,two")
    return names


def _audit_files(
    original: Path | str, copies: tuple[str, ...], chosen: _Chosen, stage: Callable[[str], None]
) -> AuditReport:
    from sfumato.audit.file_audit import audit_files
    from sfumato.vault.audits import ReportedAudit

    options = {name: getattr(chosen, name) for name in ("attacks", "rows", "without", "quasi")}
    return ReportedAudit.of(audit_files(original, copies, stage=stage, **options))
