"""Writes docs/commands.md from the commands' own help: `python docs/make_commands.py`."""

from pathlib import Path
from typing import Any

import click

from sfumato.cli import main

PAGE = Path(__file__).with_name("commands.md")


def page() -> str:
    """The reference of all commands."""
    parts = [
        "# Commands",
        "Written by `python docs/make_commands.py` from the commands' help; the tests fail when it is stale.",
        "A command that fails says why in one sentence on standard error, and changes nothing. With `--json` it prints "
        'its result, or the reason as `{"error": {"class": ..., "message": ..., "exit_code": ...}}`, on standard '
        "output. `--quiet` (or `SFUMATO_QUIET=1`) leaves out progress and next steps. Exit codes:",
        _exit_codes(),
    ]
    parts += _sections(main, "sfumato")
    return "\n\n".join(parts) + "\n"


MEANINGS = {
    0: "done",
    1: "refused: a release, an answer, an attack or a request that is not allowed or cannot be made",
    2: "wrong usage",
    3: "`audit`: at risk",
    4: "`audit`: unsound",
    10: "a policy or a level that cannot be used",
    11: "a table or a copy that cannot be used",
    12: "a key or passphrase that is missing or wrong",
    13: "a vault that cannot be opened, or a name that is not in it",
    14: "a vault that does not agree with its ledger: somebody altered it",
    15: "a database, store, service or cluster that cannot be reached or started",
    130: "interrupted",
}


def _exit_codes() -> str:
    lines = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---:|---|", *lines])


def _words(command: click.Group) -> list[str]:
    return list(command.commands) or command.list_commands(click.Context(command))


def _sections(command: click.Command, name: str) -> list[str]:
    if isinstance(command, click.Group):
        named = {word: command.get_command(click.Context(command), word) for word in _words(command)}
        return [part for word, inner in named.items() if inner for part in _sections(inner, f"{name} {word}")]
    options: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100, **main.context_settings}
    with click.Context(command, info_name=name, **options) as context:
        return [f"## {name}", f"```text\n{command.get_help(context)}\n```"]


if __name__ == "__main__":
    PAGE.write_text(page())
