"""The `suggest` command: a draft of a policy, with levels that meet targets and what an attacker would gain."""

from __future__ import annotations

from dataclasses import dataclass
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

if TYPE_CHECKING:
    from sfumato.audit.calibration import CalibratedLevel
    from sfumato.release.policy import Policy


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
@click.option(
    "--role",
    "stated_roles",
    multiple=True,
    metavar="COLUMN=ROLE",
    help="The role of a column, with which the others are drafted anew: household=entity; repeatable.",
)
@click.option("--ask", is_flag=True, help="Ask about each column: Enter accepts what is suggested.")
@click.option(
    "--map", "map_path", type=click.Path(path_type=Path), help="Write a risk-utility map of the draft, an HTML page."
)
@click.option("--quick", is_flag=True, help="Attack no sample, and leave out what an attacker would gain.")
@as_json_option
def suggest(tables: tuple[str, ...], output: Path | None, as_json: bool, **asked: Any) -> None:
    """Draft a commented policy for TABLE, with levels that meet the targets or the limit, if any.

    For several tables of one dataset, name each: sfumato suggest patients=patients.csv visits=visits.csv
    """
    if output is not None and output.exists():
        raise PolicyError(f"a draft never replaces a policy, and {output} exists; choose another name")
    choices, linked = _Choices(**asked), named_tables(tables)
    if linked is not None:
        choices.check_for_several()
        _suggest_tables(linked, output, choices, as_json)
        return
    table = TableName().convert(tables[0], None, None)
    if choices.policy_path is not None:
        _calibrate_policy(choices, table, as_json)
        return
    text, levels = _drafted(table, choices, as_json)
    if choices.map_path is not None:
        _write_map(text, table, choices.map_path, as_json)
    if output is None and not as_json:
        click.echo(text, nl=False)
        return
    _print_draft(table, text, output, levels, as_json)


@dataclass(frozen=True)
class _Choices:
    """What was asked for."""

    dataset: str | None
    targets: tuple[str, ...]
    stated: tuple[str, ...]
    stated_roles: tuple[str, ...]
    plain_noise: bool
    policy_path: Path | None
    limit: float | None
    ask: bool
    map_path: Path | None
    quick: bool

    def check_for_several(self) -> None:
        """Refuse what is for a single table."""
        if (
            self.targets
            or self.ask
            or self.stated_roles
            or (self.policy_path, self.limit, self.map_path) != (None, None, None)
        ):
            raise click.UsageError(
                "several tables are drafted as they are; leave out --target, --limit, --role, --ask, --map."
            )


def _calibrate_policy(choices: _Choices, table: Path | str, as_json: bool) -> None:
    from sfumato.release.policy import Policy

    if not choices.targets or (choices.limit, choices.map_path) != (None, None):
        raise click.UsageError("--policy is calibrated to a --target; name one, and leave out --limit and --map")
    policy = Policy.load(str(choices.policy_path))
    _print_levels(_calibrated(policy, table, choices.targets, as_json), as_json)


def _drafted(table: Path | str, choices: _Choices, as_json: bool) -> tuple[str, list[CalibratedLevel]]:
    """The draft for a table, and its calibrated levels."""
    from sfumato.policy.suggest import draft
    from sfumato.release.policy import Policy
    from sfumato.tables.file_options import FileOptions

    name, plain = choices.dataset or table_stem(table), choices.plain_noise or _plain_columns(choices.targets)
    drafted = partial(draft, table, dataset=name, plain_noise=plain, file=FileOptions.parse(choices.stated))
    text = drafted()
    chosen = _stated_roles(text, choices.stated_roles)
    if chosen:
        text = drafted(roles=chosen)
    if choices.ask:
        chosen |= _asked(text)
    if chosen:
        drafted = partial(drafted, roles=chosen)
        text = drafted()
    levels = _levels(Policy.loads(text), table, choices.targets, choices.limit, as_json)
    drafted = partial(drafted, calibrated=[(one.fidelity, one.result.target) for one in levels])
    text = drafted() if levels else text
    return text if choices.quick else drafted(gains=_gains(Policy.loads(text), table, as_json)), levels


def _suggest_tables(tables: dict[str, Path | str], output: Path | None, choices: _Choices, as_json: bool) -> None:
    """Draft a policy for several tables."""
    from sfumato.policy.suggest_tables import draft_tables
    from sfumato.policy.tables import tables_in
    from sfumato.release.policy import Policy
    from sfumato.tables.atomic import write_text
    from sfumato.tables.file_options import FileOptions

    name, file = choices.dataset or "dataset", FileOptions.parse(choices.stated)
    drafted = partial(draft_tables, tables, dataset=name, plain_noise=choices.plain_noise, file=file)
    text = drafted()
    policies = {name: Policy.loads(own) for name, own in tables_in(text).items()}
    if not choices.quick:
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


def _stated_roles(text: str, stated: tuple[str, ...]) -> dict[str, str]:
    """The roles that are stated for some columns of a draft."""
    from sfumato.errors import nearest
    from sfumato.release.policy import Policy

    columns, roles, chosen = list(Policy.loads(text).columns), _roles(), {}
    for one in stated:
        name, _, role = one.rpartition("=")
        if role not in roles:
            raise click.UsageError(f"--role needs COLUMN=ROLE with a role of {', '.join(roles)}, got {one!r}")
        if name not in columns:
            raise click.UsageError(f"--role names no column of the table: {name!r}; {nearest(name, columns)}")
        chosen[name] = role
    return chosen


def _roles() -> list[str]:
    """The roles that one column can have by itself."""
    from sfumato.policy.roles import all_roles

    return [role for role in all_roles() if role not in ("adopted", "rotation", "projection")]


def _asked(text: str) -> dict[str, str]:
    """The roles that somebody chooses at the terminal, column by column, with what is suggested and why."""
    from sfumato.release.policy import Policy

    comments = {line.partition(":")[0][2:].strip('"'): line for line in text.splitlines() if line.startswith("# ")}
    roles, chosen = _roles(), {}
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
