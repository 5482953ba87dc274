"""Output of all commands: results as text or JSON, progress bars, and refusals in one sentence."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import click

from sfumato.errors import ReleaseError, SfumatoError, SourceError, Unavailable
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


_JSON, _QUIET = "sfumato.json", "sfumato.quiet"
"""What a command was told about its output, in the context of all of them."""


def quiet_option(command: click.Command) -> click.Command:
    """Add `--quiet` to a command, or to all commands of a group."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            quiet_option(inner)
    else:
        told = click.Option(
            ["--quiet"],
            is_flag=True,
            expose_value=False,
            envvar="SFUMATO_QUIET",
            help="Show no progress and no next step.",
            callback=lambda ctx, _, value: ctx.meta.__setitem__(_QUIET, value),
        )
        command.params.append(told)
    return command


def _is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


class Group(click.Group):
    """A group of commands that reports a refusal in one sentence, or as JSON, with the exit code of its class."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether the output is for a program, before anything can be wrong."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except SfumatoError as error:
            _fail(ctx, type(error).__name__, str(error), error.exit_code)
        except click.UsageError as error:
            if not ctx.meta[_JSON]:
                raise
            _fail(ctx, "UsageError", error.format_message(), 2)
        except OSError as error:
            name = error.filename or "the output"
            _fail(ctx, "OSError", f"{name} could not be used: {error.strerror or error}", Unavailable.exit_code)
        except Exception as error:  # Arrow's errors are about data that none of our checks covers
            if not type(error).__module__.startswith("pyarrow") and not isinstance(error, UnicodeDecodeError):
                raise
            reason = f"the table could not be processed: {str(error).splitlines()[0]}"
            _fail(ctx, SourceError.__name__, reason, SourceError.exit_code)
        except KeyboardInterrupt:
            _fail(ctx, "Interrupted", "interrupted; no file was changed, run the same command again", 130)


def _fail(ctx: click.Context, kind: str, message: str, code: int) -> NoReturn:
    """Say why a command failed: to a person on standard error, to a program as JSON where it expects the result."""
    if ctx.meta[_JSON]:
        click.echo(json.dumps({"error": {"class": kind, "message": message, "exit_code": code}}, indent=2))
    else:
        click.echo(f"sfumato: {message}", err=True)
    ctx.exit(code)


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
    console = Console(stderr=True, quiet=quiet or _is_quiet() or not sys.stderr.isatty())
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
    told = text if _is_quiet() else f"{text}\n\nNext: {next_step}"
    click.echo(json.dumps(json_safe(data), indent=2, allow_nan=False) if as_json else told)
