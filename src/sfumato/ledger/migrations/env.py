"""Alembic runs this file: it migrates the connection that it is handed, within that connection's transaction."""

from __future__ import annotations

from alembic import context

from sfumato.ledger.tables import METADATA, VERSIONS

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSIONS,
    transactional_ddl=True,
)
context.run_migrations()
