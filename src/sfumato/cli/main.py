"""The `sfumato` command with all its subcommands, each of which is imported when it runs."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import cast

import click

from sfumato.cli.output import Group, quiet_option

_SECTIONS = {
    "Start": {"demo": "tables", "suggest": "suggest", "level": "tables"},
    "The vault and its datasets": dict.fromkeys(("init", "add", "update", "append", "status"), "vault"),
    "Recipients and releases": {
        **dict.fromkeys(("recipient", "grant", "revoke"), "recipients"),
        "release": "release",
        "schedule": "schedule",
    },
    "Audits and the ledger": dict.fromkeys(("audit", "approve", "log", "verify", "trace"), "audit"),
    "For recipients": {**dict.fromkeys(("fetch", "check", "show"), "copies"), "mine": "mine"},
    "Surveys and services": {
        "survey": "survey",
        "config": "config",
        **dict.fromkeys(("serve", "operator", "token"), "serve"),
    },
    "Keys, backups and erasure": {
        **dict.fromkeys(("backup", "restore", "passphrase", "rekey", "encrypt"), "vault"),
        "key": "tables",
        "erase": "erase",
    },
    "Attacks, other tools' copies, and research": {
        "attack": "attack",
        "advise": "advise",
        "reproduce": "reproduce",
        **dict.fromkeys(("declare", "adopt"), "copies"),
    },
}
"""All commands with their modules, as the help lists them: in the order in which people need them."""

_MODULES = {name: module for commands in _SECTIONS.values() for name, module in commands.items()}


@functools.cache
def _command(name: str) -> click.Command:
    """A command, imported from its module, in which it has its own name."""
    return quiet_option(cast("click.Command", getattr(importlib.import_module(f"sfumato.cli.{_MODULES[name]}"), name)))


class _Sections(Group):
    """The group of all commands, whose help has a section for each part of the work."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of all commands."""
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command with a name."""
        return _command(cmd_name) if cmd_name in _MODULES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by section."""
        limit = formatter.width - 6 - max(map(len, _MODULES))
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                rows = [(name, _command(name).get_short_help_str(limit)) for name in names]
                formatter.write_dl(rows, max(map(len, _MODULES)))


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sfumato")
def main() -> None:
    """Release one table at many trust levels; recipients who collude learn no more than the best level allows."""
    # For the whole process: Python has one list of filters for all threads, and a thread that leaves its own sets back
    # what it found, amid the fit of another.
    warnings.filterwarnings("ignore", module=r"(scipy|sklearn)\.")
