"""The `sfumato` command with all its subcommands."""

from __future__ import annotations

import click

from sfumato.cli import (
    advise,
    attack,
    audit,
    config,
    copies,
    erase,
    mine,
    recipients,
    release,
    reproduce,
    schedule,
    serve,
    suggest,
    survey,
    tables,
    vault,
)
from sfumato.cli.output import Group, quiet_option

_SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Start": (tables.demo, suggest.suggest, tables.level),
    "The vault and its datasets": (vault.init, vault.add, vault.update, vault.append, vault.status),
    "Recipients and releases": (
        recipients.recipient,
        recipients.grant,
        recipients.revoke,
        release.release,
        schedule.schedule,
    ),
    "Audits and the ledger": (audit.audit, audit.approve, audit.log, audit.verify, audit.trace),
    "For recipients": (copies.fetch, copies.check, copies.show, mine.mine),
    "Surveys and services": (survey.survey, serve.serve, serve.operator, serve.token, config.config),
    "Keys, backups and erasure": (
        *(vault.backup, vault.restore, vault.passphrase, vault.rekey, vault.encrypt, tables.key),
        erase.erase,
    ),
    "Attacks, other tools' copies, and research": (
        *(attack.attack, advise.advise, copies.declare, copies.adopt, reproduce.reproduce),
    ),
}
"""All commands, as the help lists them: in the order in which people need them."""


class _Sections(Group):
    """The group of all commands, whose help has a section for each part of the work."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands by section."""
        names = [command.name or "" for commands in _SECTIONS.values() for command in commands]
        limit = formatter.width - 6 - max(map(len, names))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(one.name or "", one.get_short_help_str(limit)) for one in commands], max(map(len, names))
                )


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="sfumato")
def main() -> None:
    """Release one table at many trust levels; recipients who collude learn no more than the best level allows."""


for section in _SECTIONS.values():
    for command in section:
        main.add_command(quiet_option(command))
