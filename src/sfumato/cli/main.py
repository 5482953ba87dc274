"""All commands, by their names."""

from __future__ import annotations

import click

from sfumato.cli import (
    advising,
    attacking,
    auditing,
    copies,
    mining,
    owner,
    releasing,
    reproducing,
    serving,
    sharing,
    surveying,
    tables,
)
from sfumato.cli.frame import Group


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sfumato")
def main() -> None:
    """Release one table at many trust levels; recipients who pool their copies learn no more than from the best."""


for command in (
    tables.demo,
    tables.suggest,
    tables.level,
    tables.key,
    owner.init,
    owner.add,
    owner.update,
    owner.status,
    sharing.recipient,
    sharing.grant,
    sharing.revoke,
    serving.token,
    releasing.release,
    copies.fetch,
    copies.show,
    copies.check,
    mining.mine,
    advising.advise,
    attacking.attack,
    auditing.audit,
    auditing.log,
    auditing.verify,
    auditing.trace,
    serving.serve,
    serving.operator,
    surveying.survey,
    reproducing.reproduce,
    owner.backup,
    owner.restore,
    owner.passphrase,
    owner.rekey,
):
    main.add_command(command)
