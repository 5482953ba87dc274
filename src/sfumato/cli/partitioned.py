"""What commands do with copies in folders: they are read by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sfumato.cli.engines import Where
from sfumato.cli.output import progress, say


def attack_folders(
    name: str, copies: Sequence[Path], truth: Path | None, options: dict[str, Any], where: Where, as_json: bool
) -> None:
    """Attack copies in folders, and say how right the attack was."""
    if truth is None:
        raise click.UsageError("copies in folders are attacked with --truth, and no other knowledge or output.")
    from sfumato.audit.distributed_attack import attack_folder
    from sfumato.audit.messages import table

    with where.open() as engine, progress(quiet=as_json) as (stage, advance):
        stage(f"attacking with {name}")
        found = attack_folder(name, copies, truth, engine=engine, progress=advance, **options)
    rows = [[f"{column}: root mean square error", f"{value:.6g}"] for column, value in found.rmse.items()]
    rows += [[f"{column}: error left, of its variance", f"{value:.2%}"] for column, value in found.error.items()]
    rows += [[f"{column}: guessed right", f"{value:.2%}"] for column, value in found.success.items()]
    rows += [[f"{column}: probability given to the truth", f"{v:.2%}"] for column, v in found.reconstruction.items()]
    text = table("", [f"{found.attack}, {found.rows:,} records", "reached"], rows, texts=1)
    say(found.summary(), as_json, text, f"sfumato show {copies[0]}")
