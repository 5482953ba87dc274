"""The `advise` command: disclosure risk of rotated and projected copies, before any is released."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import TableName, as_json_option, check_new_file, print_result, progress


@click.command()
@click.argument("table", type=TableName())
@click.option(
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path),
    required=True,
    help="A policy with rotated or projected columns.",
)
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the risk as a figure in this file (.svg).")
@as_json_option
def advise(table: Path | str, policy_path: Path, picture: Path | None, as_json: bool) -> None:
    """Assess the re-identification risk of a rotated or projected copy of TABLE before it is released.

    The attacker knows some original records, or has a sample of the same population.
    """
    from sfumato.audit.linear_map_risk import assess_linear_map, text
    from sfumato.release.policy import Policy
    from sfumato.tables.atomic import write_text

    policy = Policy.load(policy_path)
    if picture is not None:
        check_new_file(picture, (".svg",), "<svg")
    with progress(quiet=as_json, unit="") as (stage, _):
        found = assess_linear_map(policy, table, stage=stage)
    if picture is not None:
        from sfumato.audit.figures import breach_curves

        write_text(picture, breach_curves(found))
    written = f"\n\nWrote {picture}." if picture else ""
    next_step = f"map more columns together, set `noise = true` in [{found.role}], or `accept` the risk with a reason"
    if not found.refused:
        next_step = f"sfumato add {table} --policy {policy_path}, in a vault created with sfumato init"
    print_result(found.summary(), as_json, text(found) + written, next_step)
    if found.refused:
        raise click.exceptions.Exit(1)
