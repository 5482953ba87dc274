"""Output of all commands: results as text or JSON, progress bars, and refusals in one sentence."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from sfumato.errors import ReleaseError, SfumatoError
from sfumato.serialization import json_safe

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class TableName(click.ParamType[Any]):
    """A table: the path of a file or a folder, or a URL of either or of a table in a database."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:  # noqa: ARG002
        """Keep a URL as it is."""
        return str(value) if "://" in str(value) else Path(value)


def shown(table: Path | str) -> str:
    """A table as it may be printed: without the password of a database."""
    from sfumato.tables.database import without_password

    return without_password(table) if isinstance(table, str) and "://" in table else str(table)


def table_stem(table: Path | str) -> str:
    """A name for the dataset of a table: that of its file, or of its table in a database."""
    if isinstance(table, Path):
        return table.stem
    return Path(table.rpartition("table=")[2].rpartition("/")[2]).stem or "table"


def named_tables(tables: Sequence[str]) -> dict[str, Path | str] | None:
    """The tables of a dataset of several by their names, as in patients=patients.csv, or by those of their files.

    Nothing for a single table without a name.
    """
    found = [re.fullmatch(r"([\w-]+)=(.+)", table) for table in tables]
    if len(tables) == 1 and (found[0] is None or Path(tables[0]).exists()):
        return None
    pairs = [(match[1], match[2]) if match else ("", table) for match, table in zip(found, tables, strict=True)]
    converted = [(name, TableName().convert(table, None, None)) for name, table in pairs]
    named = {name or table_stem(table): table for name, table in converted}
    if len(named) < len(tables):
        raise click.UsageError("each table has a name of its own, as in patients=patients.csv visits=visits.csv.")
    return named


class Group(click.Group):
    """A group of commands that reports a refusal in one sentence, with exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SfumatoError as error:
            click.echo(f"sfumato: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            name = error.filename or "the output"
            click.echo(f"sfumato: {name} could not be used: {error.strerror or error}", err=True)
            ctx.exit(1)
        except Exception as error:  # Arrow's errors are about data that none of our checks covers
            if not type(error).__module__.startswith("pyarrow") and not isinstance(error, UnicodeDecodeError):
                raise
            click.echo(f"sfumato: the table could not be processed: {str(error).splitlines()[0]}", err=True)
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("sfumato: interrupted; no file was changed, run the same command again to finish", err=True)
            ctx.exit(130)


class Stage(Protocol):
    """A function that begins a stage of a long task."""

    def __call__(self, text: str, total: int | None = None) -> None:
        """Show the name of the stage, and its total number of units if it is known."""


@contextlib.contextmanager
def progress(*, quiet: bool, unit: str = "rows") -> Iterator[tuple[Stage, Callable[[int], None]]]:
    """A progress bar on standard error: a function that begins a stage, and one that advances it by some units.

    Without a unit, stages are named but nothing is counted.
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

        yield stage, lambda units: bar.advance(task, units)


def check_new_file(path: Path, endings: tuple[str, ...], replaceable: str | None = None) -> None:
    """Refuse an output file with a wrong ending, in a missing folder, or that exists and may not be replaced.

    Args:
        replaceable: a text in the first lines of an earlier result of the command, which may be replaced.

    """
    if path.suffix.lower() not in endings:
        raise ReleaseError(f"the name of this file must end in {' or '.join(endings)}, got {path.name!r}")
    if not path.parent.is_dir():
        raise ReleaseError(f"the output must be in a folder that exists, and {str(path.parent)!r} does not; create it")
    if path.exists() and (replaceable is None or replaceable not in _head(path)):
        raise ReleaseError(f"existing files are not overwritten, and {path} exists; choose another name")


def _head(path: Path) -> str:
    return path.read_bytes()[:2000].decode("utf-8", "replace")


def print_result(data: dict[str, Any], as_json: bool, text: str, next_step: str) -> None:
    """Print the result as JSON, or as text with a next step."""
    click.echo(json.dumps(json_safe(data), indent=2, allow_nan=False) if as_json else f"{text}\n\nNext: {next_step}")
