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
        "Every command exits with 0 on success, 1 on a refusal (one sentence on standard error, nothing changed) and 2 "
        "on wrong usage. `--json` prints the result for programs.",
    ]
    parts += _sections(main, "sfumato")
    return "\n\n".join(parts) + "\n"


def _sections(command: click.Command, name: str) -> list[str]:
    if isinstance(command, click.Group):
        return [part for word, inner in command.commands.items() for part in _sections(inner, f"{name} {word}")]
    options: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100, **main.context_settings}
    with click.Context(command, info_name=name, **options) as context:
        return [f"## {name}", f"```text\n{command.get_help(context)}\n```"]


if __name__ == "__main__":
    PAGE.write_text(page())
