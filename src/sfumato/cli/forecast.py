"""The `attack --predict` command: disclosure risk of copies in closed form, without running an attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import print_result
from sfumato.cli.vault_options import local_vault
from sfumato.errors import AttackError

if TYPE_CHECKING:
    from sfumato.audit.forecast import Forecast


def print_forecast(forecast: Forecast, as_json: bool) -> None:
    """Print the disclosure risk of a coalition."""
    next_step = "sfumato audit DATASET, which runs the attacks on the data"
    print_result(asdict(forecast), as_json, _text(forecast), next_step)


def of_dataset(name: str, levels: Sequence[str], location: str, key_path: Path | None) -> Forecast:
    """The disclosure risk of a coalition that holds copies of a dataset at some levels, or at all."""
    from sfumato.audit.forecast import of_models

    dataset = local_vault(location, key_path).dataset(name)
    ladder = dataset.scheme.policy.ladder
    chosen = [ladder.level(level) for level in levels or ladder.levels]
    return of_models([dataset.scheme.models(dataset.schema, level) for level in chosen])


def of_coalition(files: Sequence[Path | str], levels: Sequence[str], domain: int) -> Forecast:
    """The disclosure risk of a coalition that holds these copies, or copies at these levels."""
    from sfumato.audit.forecast import of_copies, of_levels
    from sfumato.levels import Level
    from sfumato.release.manifest import Manifest

    if files and levels:
        raise click.UsageError("--predict takes copies or --level, and got both; leave one out")
    if not files and not levels:
        raise click.UsageError("--predict needs copies, --level or --dataset, as in --predict --level 0.6 --level 0.5")
    if files:
        return of_copies([Manifest.of(path) for path in files])
    return of_levels([Level(_fidelity(level)) for level in levels], domain)


def _fidelity(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise AttackError(f"a level must be a fidelity between 0 and 1, got {text!r}; see `sfumato level`") from None


def _text(forecast: Forecast) -> str:
    lines = []
    if forecast.numbers:
        lines.append(_heading("numbers: residual error of the best linear attack"))
        lines += [
            f"  {one.column:<50}{one.residual_error:>14.2%}{one.independent_residual_error:>14.2%}"
            for one in forecast.numbers
        ]
        lines.append(_heading("numbers: root mean square error of that attack"))
        lines += [f"  {one.column:<50}{short(one.rmse[0]):>14}{short(one.rmse[1]):>14}" for one in forecast.numbers]
    if forecast.categories:
        lines.append(_heading("categories: epsilon"))
        lines += [f"  {_name(c):<50}{c.epsilon:>14.4g}{c.independent_epsilon:>14.4g}" for c in forecast.categories]
        lines.append(_heading("categories: largest posterior, from a uniform prior"))
        lines += [f"  {_name(c):<50}{c.posterior:>14.2%}{c.independent_posterior:>14.2%}" for c in forecast.categories]
    lines.append("By a linear attacker, at least: other attacks may leave less; `sfumato audit` runs them all.")
    return "\n".join(lines)


def _heading(label: str) -> str:
    return f"{label:<52}{'these copies':>14}{'independent':>14}"


def _name(category: Any) -> str:
    return f"{category.column} ({category.size:,} values)"


def short(value: float) -> str:
    """A number to four significant digits."""
    return f"{float(f'{value:.4g}'):,.10g}"
