"""The command on turned copies."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import as_json_option, new_file, progress, say


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), required=True, help="With turned columns.")
@click.option("--picture", type=click.Path(path_type=Path), help="Draw the danger here, as SVG.")
@as_json_option
def advise(table: Path, policy_path: Path, picture: Path | None, as_json: bool) -> None:
    """Say what known records and samples would undo of a rotated or projected copy of TABLE, before any is given."""
    from sfumato.audit.linear_map_risk import advise as work_out
    from sfumato.audit.linear_map_risk import text
    from sfumato.policy.document import Policy
    from sfumato.tables.atomic import replace_text

    policy = Policy.load(policy_path)
    if picture is not None:
        new_file(picture, (".svg",), "<svg")
    with progress(quiet=as_json, unit="") as (stage, _):
        found = work_out(policy, table, stage=stage)
    if picture is not None:
        from sfumato.audit.figures import danger

        replace_text(picture, danger(found))
    drawn = f"\n\nWrote {picture}." if picture else ""
    following = f"turn more columns together, set `noise = true` in [{found.role}], or `accept` the risk with a reason"
    if not found.refused:
        following = f"sfumato add {table} --policy {policy_path}, in a vault made with sfumato init"
    say(found.summary(), as_json, text(found) + drawn, following)
    if found.refused:
        raise SystemExit(1)
