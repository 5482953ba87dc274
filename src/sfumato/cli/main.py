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


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sfumato")
def main() -> None:
    """Release one table at many trust levels; recipients who collude learn no more than the best level allows."""


for command in (
    tables.demo,
    suggest.suggest,
    tables.level,
    tables.key,
    vault.init,
    vault.add,
    vault.update,
    vault.append,
    vault.status,
    recipients.recipient,
    recipients.grant,
    recipients.revoke,
    serve.token,
    release.release,
    schedule.schedule,
    copies.fetch,
    copies.declare,
    copies.adopt,
    copies.show,
    copies.check,
    mine.mine,
    advise.advise,
    attack.attack,
    audit.audit,
    audit.approve,
    audit.log,
    audit.verify,
    audit.trace,
    serve.serve,
    serve.operator,
    config.config,
    survey.survey,
    reproduce.reproduce,
    vault.backup,
    vault.restore,
    vault.encrypt,
    vault.passphrase,
    vault.rekey,
    erase.erase,
):
    main.add_command(quiet_option(command))
