"""Commands for tables and levels that need no vault: `demo`, `suggest`, `level` and `key`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import (
    TableName,
    as_json_option,
    check_new_file,
    named_tables,
    print_result,
    progress,
    shown,
    table_stem,
)
from sfumato.errors import PolicyError
from sfumato.pages.svg import figure_class

if TYPE_CHECKING:
    from sfumato.audit.calibration import CalibratedLevel
    from sfumato.release.policy import Policy
    from sfumato.tables.file_options import FileOptions


@click.group()
def key() -> None:
    """Generate key files."""


@key.command("new")
@click.argument("path", type=click.Path(path_type=Path), default="sfumato.key")
@as_json_option
def key_new(path: Path, as_json: bool) -> None:
    """Generate a key file that only you can read.

    Keep it safe: without it, no further copy can be made that is consistent with those already released.
    """
    from sfumato.keys.key import Key

    new_key = Key.generate()
    new_key.save(path)
    print_result(
        {"path": str(path), "fingerprint": new_key.fingerprint()},
        as_json,
        f"Wrote {path} (fingerprint {new_key.fingerprint()}). Back it up: a lost key cannot be recovered.",
        "sfumato suggest TABLE -o policy.toml",
    )


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the draft here instead of printing it.")
@click.option("--dataset", help="The name of the dataset; by default that of the file.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help='A limit on the success of all attacks, as in "income: rmse >= 5000"; repeatable. It sets the highest level.',
)
@click.option(
    "--file",
    "stated",
    multiple=True,
    metavar="KEY=VALUE",
    help="How the file is read, where its content does not tell: sheet=Patients, dates='day first'; repeatable.",
)
@click.option(
    "--plain-noise",
    is_flag=True,
    help="Noise in the values themselves, the roles gaussian and uniform; else copies look like the data.",
)
@click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="Calibrate this policy instead of a draft."
)
@click.option(
    "--limit",
    type=float,
    help="The largest share of any column that an attack may recover, such as 0.5: sets the levels.",
)
@click.option("--ask", is_flag=True, help="Ask about each column: Enter accepts what is suggested.")
@click.option(
    "--map", "map_path", type=click.Path(path_type=Path), help="Write a risk-utility map of the draft, an HTML page."
)
@click.option("--quick", is_flag=True, help="Attack no sample, and leave out what an attacker would gain.")
@as_json_option
def suggest(
    tables: tuple[str, ...],
    output: Path | None,
    dataset: str | None,
    targets: tuple[str, ...],
    stated: tuple[str, ...],
    plain_noise: bool,
    policy_path: Path | None,
    limit: float | None,
    ask: bool,
    map_path: Path | None,
    quick: bool,
    as_json: bool,
) -> None:
    """Draft a commented policy for TABLE, with levels that meet the targets or the limit, if any.

    For several tables of one dataset, name each: sfumato suggest patients=patients.csv visits=visits.csv
    """
    from sfumato.policy.suggest import draft
    from sfumato.release.policy import Policy
    from sfumato.tables.file_options import FileOptions

    if output is not None and output.exists():
        raise PolicyError(f"a draft never replaces a policy, and {output} exists; choose another name")
    linked, table = named_tables(tables), TableName().convert(tables[0], None, None)
    if linked is not None:
        if targets or policy_path is not None or limit is not None or ask or map_path is not None:
            raise click.UsageError("several tables are drafted as they are; leave out --target, --limit, --ask, --map.")
        _suggest_tables(linked, dataset, output, FileOptions.parse(stated), plain_noise, quick, as_json)
        return
    if policy_path is not None:
        if not targets or limit is not None or map_path is not None:
            raise click.UsageError("--policy is calibrated to a --target; name one, and leave out --limit and --map")
        _print_levels(_calibrated(Policy.load(policy_path), table, targets, as_json), as_json)
        return
    name = dataset or table_stem(table)
    file = FileOptions.parse(stated)
    drafted = partial(draft, table, dataset=name, plain_noise=plain_noise or _plain_columns(targets), file=file)
    text = drafted()
    if ask:
        drafted = partial(drafted, roles=_asked(text))
        text = drafted()
    levels = _levels(Policy.loads(text), table, targets, limit, as_json)
    if levels:
        text = drafted(calibrated=[(one.fidelity, one.result.target) for one in levels])
    if not quick:
        gained = _gains(Policy.loads(text), table, as_json)
        text = drafted(calibrated=[(one.fidelity, one.result.target) for one in levels], gains=gained)
    if map_path is not None:
        _write_map(text, table, map_path, as_json)
    if output is None and not as_json:
        click.echo(text, nl=False)
        return
    _print_draft(table, text, output, levels, as_json)


def _suggest_tables(
    tables: dict[str, Path | str],
    dataset: str | None,
    output: Path | None,
    file: FileOptions,
    plain_noise: bool,
    quick: bool,
    as_json: bool,
) -> None:
    """Draft a policy for several tables."""
    from sfumato.policy.suggest_tables import draft_tables
    from sfumato.policy.tables import tables_in
    from sfumato.release.policy import Policy
    from sfumato.tables.atomic import write_text

    drafted = partial(draft_tables, tables, dataset=dataset or "dataset", plain_noise=plain_noise, file=file)
    text = drafted()
    policies = {name: Policy.loads(own) for name, own in tables_in(text).items()}
    if not quick:
        text = drafted(gains={name: _gains(policies[name], table, as_json) for name, table in tables.items()})
    if output is None and not as_json:
        click.echo(text, nl=False)
        return
    if output is not None:
        write_text(output, text)
    roles = {name: {key: one.role for key, one in policy.columns.items()} for name, policy in policies.items()}
    data = {"policy": text, "roles": roles, "path": str(output) if output else None}
    named = " ".join(f"{name}={shown(table)}" for name, table in tables.items())
    written = f"Wrote {output}: {len(tables)} tables. Read it and correct it."
    print_result(data, as_json, written, f"sfumato add {named} --policy {output}, in a vault created with sfumato init")


def _gains(policy: Policy, table: Path | str, as_json: bool) -> dict[str, list[float]]:
    """What an attacker would gain of each column at each level; nothing for a table that cannot be tried."""
    from sfumato.audit.risk_utility import gains
    from sfumato.errors import SfumatoError

    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("attacking a sample (--quick leaves it out)", len(policy.ladder.levels))
        try:
            return gains(policy, table, progress=advance)
        except SfumatoError as error:
            click.echo(f"sfumato: what an attacker would gain is not said: {error}", err=True)
            return {}


def _asked(text: str) -> dict[str, str]:
    """The roles that somebody chooses at the terminal, column by column, with what is suggested and why."""
    from sfumato.policy.roles import all_roles
    from sfumato.release.policy import Policy

    comments = {line.partition(":")[0][2:].strip('"'): line for line in text.splitlines() if line.startswith("# ")}
    roles = [role for role in all_roles() if role not in ("adopted", "rotation", "projection")]
    chosen = {}
    for name, column in Policy.loads(text).columns.items():
        click.echo(comments.get(name, f"# {name}"), err=True)
        chosen[name] = click.prompt(name, default=column.role, type=click.Choice(roles), err=True)
    return chosen


def _levels(
    policy: Policy, table: Path | str, targets: tuple[str, ...], limit: float | None, as_json: bool
) -> list[CalibratedLevel]:
    """The highest level for each target, and for the limit."""
    levels = _calibrated(policy, table, targets, as_json) if targets else []
    return levels if limit is None else [*levels, _within_limit(policy, table, limit, as_json)]


def _within_limit(policy: Policy, table: Path | str, limit: float, as_json: bool) -> CalibratedLevel:
    """The highest level within a limit, as that of a target for the column that sets it."""
    from sfumato.audit.calibration import CalibratedLevel
    from sfumato.audit.risk_utility import STEPS, highest_within
    from sfumato.policy.targets import Target
    from sfumato.risk.thresholds import ThresholdResult

    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("finding the highest level within the limit", STEPS)
        point = highest_within(policy, table, limit, progress=advance)
    role = policy.columns[point.column].role if point.column in policy.columns else ""
    if role == "uniform":
        target = Target(point.column, "success", round(point.accuracy, 3))
        result = ThresholdResult(target, point.attack, point.accuracy)
        return CalibratedLevel(point.fidelity, result, point.sentence(limit))
    target = Target(point.column, "error", round(1 - limit, 3))
    result = ThresholdResult(target, point.attack, 1 - point.recovered)
    return CalibratedLevel(point.fidelity, result, point.sentence(limit))


def _write_map(text: str, table: Path | str, path: Path, as_json: bool) -> None:
    """Draw the draft beside the other way to perturb the same table."""
    from sfumato.audit.risk_utility import FIDELITIES, mechanisms, risk_utility_map
    from sfumato.audit.risk_utility_page import page
    from sfumato.release.policy import Policy
    from sfumato.tables.atomic import write_text

    check_new_file(path, (".html", ".htm"), replaceable="<title>Risk and utility of ")
    figure_class()  # refused before the work, not after it
    policy = Policy.loads(text)
    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("mapping risk and utility", 2 * len(FIDELITIES))
        points = risk_utility_map(mechanisms(policy, table), table, progress=advance)
    write_text(path, page(policy.dataset, points, [level.fidelity for level in policy.ladder]))


def _plain_columns(targets: tuple[str, ...]) -> set[str]:
    """The columns whose targets cannot be measured where margins are preserved."""
    from sfumato.mechanisms import MECHANISMS
    from sfumato.policy.targets import Target

    parsed = map(Target.parse, targets)
    return {target.column for target in parsed if target.measure not in MECHANISMS["copula"].measures}


def _print_draft(
    table: Path | str, text: str, output: Path | None, levels: list[CalibratedLevel], as_json: bool
) -> None:
    """Write a draft to its file, if there is one, and print what it contains."""
    from sfumato.release.policy import Policy
    from sfumato.tables.atomic import write_text

    if output is not None:
        write_text(output, text)
    roles = {name: column.role for name, column in Policy.loads(text).columns.items()}
    data: dict[str, Any] = {"policy": text, "roles": roles, "path": str(output) if output else None}
    if levels:
        data["levels"] = _levels_json(levels)
    lines = [f"Wrote {output}: {len(roles)} columns. Read it and correct it.", *map(_level_line, levels)]
    next_step = f"sfumato add {shown(table)} --policy {output}, in a vault created with sfumato init"
    print_result(data, as_json, "\n".join(lines), next_step)


def _calibrated(policy: Policy, table: Path | str, targets: tuple[str, ...], as_json: bool) -> list[CalibratedLevel]:
    """The highest level that meets each target."""
    from sfumato.audit.calibration import MAX_TRIALS, calibrate
    from sfumato.policy.targets import Target

    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("calibrating the highest level", MAX_TRIALS * len(targets))
        return calibrate(policy, table, [Target.parse(target) for target in targets], progress=advance)


def _print_levels(levels: list[CalibratedLevel], as_json: bool) -> None:
    lowest = min(one.fidelity for one in levels)
    next_step = f"declare no level above {lowest:g}, and write the targets under [audit] in the policy"
    print_result({"levels": _levels_json(levels)}, as_json, "\n".join(map(_level_line, levels)), next_step)


def _levels_json(levels: list[CalibratedLevel]) -> list[dict[str, Any]]:
    return [
        {
            "target": str(one.result.target),
            "fidelity": one.fidelity,
            "attack": one.result.attack,
            "reaches": one.result.value,
            **({"sentence": one.sentence} if one.sentence else {}),
        }
        for one in levels
    ]


def _level_line(one: CalibratedLevel) -> str:
    best = f"the best attack, {one.result.attack}, reaches {one.result.value:.4g} there"
    line = f"{one.result.target} holds up to fidelity {one.fidelity:g}: {best}."
    return f"{line}\n{one.sentence}" if one.sentence else line


@click.command()
@click.argument("fidelity", type=float, required=False)
@click.option("--error", type=float, help="Instead: the share of variance that a linear attacker is left with.")
@click.option("--epsilon", type=float, help="Instead: ε of local differential privacy of a category.")
@click.option("--rho", nargs=2, type=float, help="Instead: ρ1-ρ2 privacy, as --rho 0.1 0.5: a prior and the posterior.")
@click.option("--growth", type=float, help="Instead: δ-growth, the largest rise of a probability.")
@click.option("--domain", type=click.IntRange(min=2), default=10, show_default=True, help="Number of categories.")
@as_json_option
def level(
    fidelity: float | None,
    error: float | None,
    epsilon: float | None,
    rho: tuple[float, float] | None,
    growth: float | None,
    domain: int,
    as_json: bool,
) -> None:
    """Convert a level, given by its FIDELITY or by what it shall ensure, to every unit."""
    from sfumato.levels import Level

    given = [
        *([] if fidelity is None else [Level(fidelity)]),
        *([] if error is None else [Level.from_error(error)]),
        *([] if epsilon is None else [Level.from_epsilon(epsilon, domain=domain)]),
        *([] if rho is None else [Level.from_rho(*rho, domain=domain)]),
        *([] if growth is None else [Level.from_growth(growth, domain=domain)]),
    ]
    if not given:
        raise click.UsageError("give a fidelity, such as 0.5, or --error, --epsilon, --rho or --growth")
    chosen = min(given)  # the strictest of several
    units = {
        "fidelity": chosen.fidelity,
        "noise variance": chosen.noise,
        "noise standard deviation": chosen.noise**0.5,
        "residual error of the best linear attack": chosen.error,
        "retention probability": chosen.retention,
        f"epsilon, {domain} categories": chosen.epsilon(domain),
        f"largest posterior from a prior of 10 %, {domain} categories": chosen.rho2(0.1, domain),
        f"largest increase of a probability, {domain} categories": chosen.growth(domain),
    }
    width = max(map(len, units)) + 2
    text = "\n".join(f"{name:<{width}}{value:.8g}" for name, value in units.items())
    note = (
        "(noise and error relative to the column's own standard deviation or variance; by a linear attacker, at least: "
        "the audit runs stronger ones)"
    )
    print_result(units, as_json, f"{text}\n{note}", "write it under [levels] in a policy")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default="sfumato-demo")
@click.option(
    "--rows", type=click.IntRange(min=1000), default=100_000, show_default=True, help="The number of synthetic records."
)
@as_json_option
def demo(folder: Path, rows: int, as_json: bool) -> None:
    """Run a demonstration in FOLDER: three copies of a synthetic table, an audit of their collusion, a traced leak."""
    from sfumato.demo.walkthrough import run_demo

    with progress(quiet=as_json) as (stage, _):
        result = run_demo(folder, rows, stage)
    next_step = f"open {folder}/picture.png, then cd {folder} and read README.md"
    print_result(result.summary(), as_json, result.text(), next_step)
