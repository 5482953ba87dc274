"""Commands about tables and levels: what can be done without a vault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.output import as_json_option, progress, say
from sfumato.errors import PolicyError

if TYPE_CHECKING:
    from sfumato.audit.calibration import Calibrated
    from sfumato.policy.document import Policy


@click.group()
def key() -> None:
    """Make key files."""


@key.command("new")
@click.argument("path", type=click.Path(path_type=Path), default="sfumato.key")
@as_json_option
def key_new(path: Path, as_json: bool) -> None:
    """Make a key file that only you can read. Keep it safe: without it no further copy fits the ones already given."""
    from sfumato.keys.key import Key

    made = Key.generate()
    made.save(path)
    say(
        {"path": str(path), "fingerprint": made.fingerprint()},
        as_json,
        f"Wrote {path} (fingerprint {made.fingerprint()}). Back it up: a lost key cannot be made again.",
        "sfumato suggest TABLE -o policy.toml",
    )


@click.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the draft here instead of printing it.")
@click.option("--dataset", help="The dataset's name; by default the file's.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help='What no attack may do better than, as in "income: rmse >= 5000"; repeat it. It sets the highest level.',
)
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help="Calibrate this policy, not a draft.")
@as_json_option
def suggest(
    table: Path,
    output: Path | None,
    dataset: str | None,
    targets: tuple[str, ...],
    policy_path: Path | None,
    as_json: bool,
) -> None:
    """Draft a commented policy from a table, with levels that keep a target if one is named."""
    from sfumato.policy.document import Policy
    from sfumato.policy.suggest import draft
    from sfumato.tables.atomic import replace_text

    if output is not None and output.exists():
        raise PolicyError(f"a draft never replaces a policy, and {output} exists; choose another name")
    if policy_path is not None and not targets:
        raise click.UsageError("--policy is calibrated to a --target; name one")
    text = draft(table, dataset=dataset or table.stem)
    found: list[Calibrated] = []
    if targets:
        policy = Policy.loads(text) if policy_path is None else Policy.load(policy_path)
        found = _calibrated(policy, table, targets, as_json)
        if policy_path is not None:
            _say_levels(found, as_json)
            return
        text = draft(table, dataset=dataset or table.stem, kept=[(c.fidelity, c.reached.target) for c in found])
    roles = {name: column.role for name, column in Policy.loads(text).columns.items()}
    if output is None and not as_json:
        click.echo(text, nl=False)
        return
    if output is not None:
        replace_text(output, text)
    said = [f"Wrote {output}: {len(roles)} columns. Read it and correct it.", *map(_level_line, found)]
    say(
        {
            "policy": text,
            "roles": roles,
            "path": str(output) if output else None,
            **({"levels": _levels_json(found)} if found else {}),
        },
        as_json,
        "\n".join(said),
        f"sfumato add {table} --policy {output}, in a vault made with sfumato init",
    )


def _calibrated(policy: Policy, table: Path, targets: tuple[str, ...], as_json: bool) -> list[Calibrated]:
    from sfumato.audit.calibration import TURNS, calibrate
    from sfumato.policy.targets import Target

    with progress(quiet=as_json, unit="levels tried") as (stage, advance):
        stage("looking for the highest level", TURNS * len(targets))
        return calibrate(policy, table, [Target.parse(target) for target in targets], progress=advance)


def _say_levels(found: list[Calibrated], as_json: bool) -> None:
    lowest = min(one.fidelity for one in found)
    following = f"declare no level above {lowest:g}, and write the targets under [audit] in the policy"
    say({"levels": _levels_json(found)}, as_json, "\n".join(map(_level_line, found)), following)


def _levels_json(found: list[Calibrated]) -> list[dict[str, Any]]:
    return [
        {
            "target": str(one.reached.target),
            "fidelity": one.fidelity,
            "attack": one.reached.attack,
            "reaches": one.reached.value,
        }
        for one in found
    ]


def _level_line(one: Calibrated) -> str:
    best = f"the best attack, {one.reached.attack}, reaches {one.reached.value:.4g} there"
    return f"{one.reached.target} holds up to fidelity {one.fidelity:g}: {best}."


@click.command()
@click.argument("fidelity", type=float)
@click.option("--domain", type=click.IntRange(min=2), default=10, show_default=True, help="Number of categories.")
@as_json_option
def level(fidelity: float, domain: int, as_json: bool) -> None:
    """Say one level in every unit."""
    from sfumato.levels import Level

    chosen = Level(fidelity)
    units = {
        "fidelity": chosen.fidelity,
        "noise variance": chosen.noise,
        "noise standard deviation": chosen.noise**0.5,
        "best linear attacker's error": chosen.error,
        "retention probability": chosen.retention,
        f"epsilon, {domain} categories": chosen.epsilon(domain),
        f"belief of 10 % rises to at most, {domain} categories": chosen.rho2(0.1, domain),
        f"largest rise of any belief, {domain} categories": chosen.growth(domain),
    }
    text = "\n".join(f"{name:<52}{value:.8g}" for name, value in units.items())
    note = "(noise in units of the column's own standard deviation or variance)"
    say(units, as_json, f"{text}\n{note}", "write it under [levels] in a policy")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default="sfumato-demo")
@click.option("--rows", type=click.IntRange(min=1000), default=100_000, show_default=True)
@as_json_option
def demo(folder: Path, rows: int, as_json: bool) -> None:
    """Make a clinic's table, give three recipients copies, and see what they can reconstruct together."""
    from sfumato.demo.walkthrough import tell

    with progress(quiet=as_json) as (stage, _):
        story = tell(folder, rows, stage)
    say(story.summary(), as_json, story.text(), f"open {folder}/picture.png, then cd {folder} and read README.md")
