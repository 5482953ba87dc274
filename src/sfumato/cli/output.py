"""What all commands share: one sentence for a refusal, a progress bar, and a result in words or JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import click

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.serialization import plain

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class Group(click.Group):
    """Turns a refusal into one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
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
            if not type(error).__module__.startswith("pyarrow") and not isinstance(error, UnicodeDecodeError):
                raise
            click.echo(f"sfumato: the table could not be handled: {str(error).splitlines()[0]}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("sfumato: interrupted; no file was changed, run the same command again to finish", err=True)
            ctx.exit(130)


class Stage(Protocol):
    """Begins a stage of long work."""

    def __call__(self, text: str, total: int | None = None) -> None:
        """Name the stage, and how much there is to do."""


@contextlib.contextmanager
def progress(*, quiet: bool, unit: str = "rows") -> Iterator[tuple[Stage, Callable[[int], None]]]:
    """A progress bar on standard error: a function that begins a stage, and one that advances it by some units.

    Without a unit, stages are named and nothing is counted.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    count = [TextColumn("{task.completed:,.0f} " + unit), TimeRemainingColumn()] if unit else [TimeElapsedColumn()]
    columns = (TextColumn("{task.description}"), BarColumn(), *count)
    console = Console(stderr=True, quiet=quiet or not sys.stderr.isatty())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def stage(text: str, total: int | None = None) -> None:
            bar.reset(task, description=text, total=total)

        yield stage, lambda rows: bar.advance(task, rows)


def new_file(path: Path, endings: tuple[str, ...], ours: str | None = None) -> None:
    """Refuse to write over what is not ours, into a folder that is not there, or under a misleading name.

    Args:
        ours: what an earlier result, which may be replaced, has in its first lines.

    """
    if path.suffix.lower() not in endings:
        raise ReleaseError(f"the name of this file must end in {' or '.join(endings)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise ReleaseError(f"a file must go to a folder that exists, and {str(path.parent)!r} does not; make it")
    if path.exists() and (ours is None or ours not in path.read_bytes()[:2000].decode("utf-8", "replace")):
        raise ReleaseError(f"no file is written over another, and {path} exists; choose another name")


def say(data: dict[str, Any], as_json: bool, text: str, following: str) -> None:
    """The result, as JSON or as words with a next step."""
    click.echo(json.dumps(plain(data), indent=2, allow_nan=False) if as_json else f"{text}\n\nNext: {following}")
