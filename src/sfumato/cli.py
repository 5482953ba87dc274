"""The command line: thin. Every command prints a next step, has `--json`, and never shows a traceback for a mistake."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import click

from sfumato.errors import PolicyError, SfumatoError

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Group(click.Group):
    """Turns a refusal into one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SfumatoError as error:
            click.echo(f"sfumato: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            click.echo(
                f"sfumato: {error.filename or 'the output'} could not be used: {error.strerror or error}", err=True
            )
            ctx.exit(1)
        except Exception as error:  # Arrow's errors are about data that no check of ours foresaw
            if not type(error).__module__.startswith("pyarrow"):
                raise
            click.echo(f"sfumato: the table could not be handled: {str(error).splitlines()[0]}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("sfumato: interrupted; no file was changed, run the same command again to finish", err=True)
            ctx.exit(130)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sfumato")
def main() -> None:
    """Release one table at many trust levels; recipients who pool their copies learn no more than from the best."""


@main.group()
def key() -> None:
    """Make key files."""


@key.command("new")
@click.argument("path", type=click.Path(path_type=Path), default="sfumato.key")
@_JSON
def key_new(path: Path, as_json: bool) -> None:
    """Make a key file that only you can read. Keep it safe: without it no further copy fits the ones already given."""
    from sfumato.keys.key import Key

    made = Key.generate()
    made.save(path)
    _say(
        {"path": str(path), "fingerprint": made.fingerprint()},
        as_json,
        f"Wrote {path} (fingerprint {made.fingerprint()}). Back it up: a lost key cannot be made again.",
        "sfumato suggest TABLE -o policy.toml",
    )


@main.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the draft here instead of printing it.")
@click.option("--dataset", help="The dataset's name; by default the file's.")
@_JSON
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
    _say(
        {"policy": text, "roles": roles, "path": str(output) if output else None},
        as_json,
        f"Wrote {output}: {len(roles)} columns. Read it and correct it.",
        f"sfumato release --policy {output} --scheme scheme.json --key-file sfumato.key --level partner {table} "
        "partner.parquet",
    )


@main.command()
@click.argument("table", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--policy", "policy_path", type=click.Path(path_type=Path), help="The policy file.")
@click.option(
    "--scheme",
    "scheme_path",
    type=click.Path(path_type=Path),
    help="A fitted scheme: read if it exists, else fitted and kept here for later versions of the table.",
)
@click.option("--key-file", "key_path", type=click.Path(path_type=Path), required=True, help="The key file.")
@click.option("--level", required=True, help="A declared level's name, or a fidelity between 0 and 1.")
@click.option("--threads", type=click.IntRange(min=1), help="How many cores to use; by default all.")
@_JSON
def release(
    table: Path,
    out: Path,
    policy_path: Path | None,
    scheme_path: Path | None,
    key_path: Path,
    level: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Make a copy of TABLE at a trust level and write it to OUT (Parquet, CSV or Arrow, by its ending)."""
    from sfumato.keys.key import Key
    from sfumato.release.run import release_file
    from sfumato.schema.table import Source

    if policy_path is None and (scheme_path is None or not scheme_path.exists()):
        raise click.UsageError("a release needs --policy, or --scheme with a scheme that exists.")
    secret = Key.load(key_path)
    source = Source.of(table)
    with _progress(quiet=as_json) as (stage, advance):
        stage("measuring")
        scheme, fresh = _scheme(source, policy_path, scheme_path, threads, advance)
        stage("blurring", source.rows)
        manifest = release_file(scheme, source, out, level, secret, threads=threads, progress=advance)
    if scheme_path is not None and fresh:
        scheme.save(scheme_path)
    name = f" ({manifest.level})" if manifest.level else ""
    rounded = "" if manifest.given == manifest.asked else f", rounded down from {manifest.asked:.10g}"
    text = f"Wrote {out}: {manifest.rows:,} rows at fidelity {manifest.given:.10g}{name}{rounded}."
    if scheme_path is None:
        text += (
            "\nThe noise has the shape of this table as it is now. With `--scheme scheme.json` the shape is kept, and "
            "a later\nversion of the table gets the same noise; without it, the noise would be independent and could "
            "be averaged."
        )
    _say({"path": str(out), "manifest": json.loads(manifest.dumps())}, as_json, text, f"sfumato show {out}")


def _scheme(
    source: Any,
    policy_path: Path | None,
    scheme_path: Path | None,
    threads: int | None,
    advance: Callable[[int], None],
) -> tuple[Any, bool]:
    """The scheme to use, the kept one or else one fitted now, and whether it is fresh."""
    from sfumato.release.plan import TableScheme
    from sfumato.schema.policy import Policy

    policy = None if policy_path is None else Policy.load(policy_path)
    if policy is not None and (scheme_path is None or not scheme_path.exists()):
        return policy.fit(source, threads=threads, progress=advance), True
    scheme = TableScheme.load(str(scheme_path))
    if policy is not None and policy.digest() != scheme.policy.digest():
        raise PolicyError(
            f"the scheme {scheme_path} was fitted with another policy; leave out --policy to use it, or name a new "
            "file to fit again"
        )
    return scheme, False


@main.command()
@click.argument("copy", type=click.Path(path_type=Path))
@_JSON
def show(copy: Path, as_json: bool) -> None:
    """Say in plain words what a copy is, check that it is whole, and what it promises."""
    from sfumato.release.manifest import Manifest

    manifest = Manifest.of(copy)
    manifest.verify(copy)
    name = f", level {manifest.level}" if manifest.level else ""
    text = [f"{manifest.dataset}{name}: {manifest.rows:,} rows, {len(manifest.columns)} columns, unaltered.", ""]
    text += [f"  {column}: {_describe(column, kind, manifest.models)}" for column, kind in manifest.columns]
    signs = ["+" if promise[1].islower() else "!" for promise in manifest.promises]  # a warning begins in capitals
    text += ["", *[f"{sign} {promise}" for sign, promise in zip(signs, manifest.promises, strict=True)]]
    text += [f"- {limit}" for limit in manifest.limits]
    _say(json.loads(manifest.dumps()), as_json, "\n".join(text), "sfumato.read_copy(path) in Python")


def _describe(column: str, kind: str, models: Any) -> str:
    from sfumato.models import GaussianNoise, UniformReplacement

    model = next(model for model in models if column in model.columns)
    if isinstance(model, GaussianNoise):
        place = model.columns.index(column)
        deviation = model.covariance[place][place] ** 0.5
        return f"noise of standard deviation {_amount(deviation, kind)}, in steps of {_amount(model.step[place], kind)}"
    if isinstance(model, UniformReplacement):
        count = model.domains[model.columns.index(column)]["count"]
        together = f", together with {len(model.columns) - 1} more" if len(model.columns) > 1 else ""
        return f"retained with probability {model.retention:.4g}, else one of {count:,} at random{together}"
    return "as it is"


def _amount(value: float, kind: str) -> str:
    """A number to four digits, times in days or seconds."""
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    unit = next((size for name, size in units.items() if f"[{name}" in kind), None)
    if unit is not None and not kind.startswith("date"):
        days = value * unit / 86_400
        return f"{_short(days)} days" if days >= 1 else f"{_short(value * unit)} s"
    return f"{_short(value)}{' days' if kind.startswith('date32') else ''}"


def _short(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"


@main.command()
@click.argument("fidelity", type=float)
@click.option("--domain", type=click.IntRange(min=2), default=10, show_default=True, help="Number of categories.")
@_JSON
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
    _say(units, as_json, f"{text}\n{note}", "write it under [levels] in a policy")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path), default="sfumato-demo")
@click.option("--rows", type=click.IntRange(min=1000), default=100_000, show_default=True)
@_JSON
def demo(folder: Path, rows: int, as_json: bool) -> None:
    """Make a clinic's table, give three recipients copies, and see what they can reconstruct together."""
    from sfumato.demo.story import tell

    with _progress(quiet=as_json) as (stage, _):
        story = tell(folder, rows, stage)
    _say(story.summary(), as_json, story.text(), f"open {folder}/picture.png, then read {folder}/README.md")


class _Stage(Protocol):
    def __call__(self, text: str, total: int | None = None) -> None: ...


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[tuple[_Stage, Callable[[int], None]]]:
    """A progress bar on standard error: a function that begins a stage, and one that advances it by some rows."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    count = TextColumn("{task.completed:,.0f} rows")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def stage(text: str, total: int | None = None) -> None:
            bar.reset(task, description=text, total=total)

        yield stage, lambda rows: bar.advance(task, rows)


def _say(data: dict[str, Any], as_json: bool, text: str, following: str) -> None:
    """The result, as JSON or as words with a next step."""
    click.echo(json.dumps(data, indent=2) if as_json else f"{text}\n\nNext: {following}")


if __name__ == "__main__":
    main()
