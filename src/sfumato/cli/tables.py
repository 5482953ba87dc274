"""Commands about tables and levels: what can be done without a vault."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.frame import as_json_option, progress, say
from sfumato.errors import PolicyError


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
@as_json_option
def suggest(table: Path, output: Path | None, dataset: str | None, as_json: bool) -> None:
    """Draft a commented policy from a table."""
    from sfumato.release.atomic import replace_text
    from sfumato.schema.policy import Policy
    from sfumato.schema.suggest import draft

    if output is not None and output.exists():
        raise PolicyError(f"a draft never replaces a policy, and {output} exists; choose another name")
    text = draft(table, dataset=dataset or table.stem)
    roles = {name: column.role for name, column in Policy.loads(text).columns.items()}
    if output is None and not as_json:
        click.echo(text, nl=False)
        return
    if output is not None:
        replace_text(output, text)
    say(
        {"policy": text, "roles": roles, "path": str(output) if output else None},
        as_json,
        f"Wrote {output}: {len(roles)} columns. Read it and correct it.",
        f"sfumato add {table} --policy {output}, in a vault made with sfumato init",
    )


@click.command()
@click.argument("fidelity", type=float)
@click.option("--domain", type=click.IntRange(min=2), default=10, show_default=True, help="Number of categories.")
@as_json_option
def level(fidelity: float, domain: int, as_json: bool) -> None:
    """Say one level in every unit."""
    from sfumato.schema.levels import Level

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
    from sfumato.demo.story import tell

    with progress(quiet=as_json) as (stage, _):
        story = tell(folder, rows, stage)
    say(story.summary(), as_json, story.text(), f"open {folder}/picture.png, then cd {folder} and read README.md")
