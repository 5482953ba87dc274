"""The access log, and its last record in the head."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table, and add the columns of its last record."""
    with op.batch_alter_table("sfumato_vault") as table:
        table.add_column(sa.Column("accesses", sa.Integer, nullable=False, server_default="0"))
        table.add_column(sa.Column("access_head", sa.String(64), nullable=False, server_default=""))
    op.create_table(
        "sfumato_accesses",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("dataset", sa.String(100), nullable=False),
        sa.Column("recipient", sa.String(100), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("mac", sa.String(64), nullable=False),
    )
    for column in ("actor", "dataset", "recipient"):
        op.create_index(f"sfumato_accesses_by_{column}", "sfumato_accesses", [column, "number"])


def downgrade() -> None:
    """Drop the table and the columns."""
    for column in ("actor", "dataset", "recipient"):
        op.drop_index(f"sfumato_accesses_by_{column}", "sfumato_accesses")
    op.drop_table("sfumato_accesses")
    with op.batch_alter_table("sfumato_vault") as table:
        table.drop_column("accesses")
        table.drop_column("access_head")
