"""All commands, by their names."""

from __future__ import annotations

import click

from sfumato.cli import advise as advising
from sfumato.cli import attack as attacking
from sfumato.cli import audit as auditing
from sfumato.cli import copies, tables
from sfumato.cli import mine as mining
from sfumato.cli import recipients as sharing
from sfumato.cli import release as releasing
from sfumato.cli import reproduce as reproducing
from sfumato.cli import serve as serving
from sfumato.cli import survey as surveying
from sfumato.cli import vault as owner
from sfumato.cli.output import Group


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
