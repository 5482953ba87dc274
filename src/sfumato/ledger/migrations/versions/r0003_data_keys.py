"""The wrapped keys under which stored files are encrypted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "sfumato_data_keys",
        sa.Column("scope", sa.String(120), primary_key=True),
        sa.Column("wrapped", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("sfumato_data_keys")
