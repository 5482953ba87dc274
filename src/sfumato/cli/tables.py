"""Commands for tables and levels that need no vault: `demo`, `suggest`, `level` and `key`."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli.output import as_json_option, print_result, progress


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
