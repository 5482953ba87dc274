"""The `attack` command for partitioned copies (folders of files), which are read by an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sfumato.cli.engines import EngineChoice
from sfumato.cli.output import print_result, progress


def attack_partitioned(
    name: str,
    copies: Sequence[Path | str],
    truth: Path | str | None,
    options: dict[str, Any],
    engine_choice: EngineChoice,
    as_json: bool,
) -> None:
    """Attack partitioned copies, and print how accurate the attack was."""
    if truth is None:
        raise click.UsageError("an attack on partitioned copies needs --truth, and takes no other knowledge or output.")
    from sfumato.audit.distributed_attack import attack_folder
    from sfumato.audit.messages import table

    with engine_choice.open() as engine, progress(quiet=as_json) as (stage, advance):
        stage(f"attacking with {name}")
        found = attack_folder(name, copies, truth, engine=engine, progress=advance, **options)
    rows = [[f"{column}: root mean square error", f"{value:.6g}"] for column, value in found.rmse.items()]
    rows += [[f"{column}: residual error, share of variance", f"{value:.2%}"] for column, value in found.error.items()]
    rows += [[f"{column}: accuracy", f"{value:.2%}"] for column, value in found.success.items()]
    rows += [[f"{column}: probability given to the truth", f"{v:.2%}"] for column, v in found.reconstruction.items()]
    text = table("", [f"{found.attack}, {found.rows:,} records", "attack"], rows, texts=1)
    print_result(found.summary(), as_json, text, f"sfumato show {copies[0]}")
