"""The index of subjects: a running digest of each subject's entries, under a tree whose root is in the sealed head.

The index itself is computed when the vault is next written to, from the verified chain of entries.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Replace the table of subjects, and add that of the tree's nodes and the column of its root."""
    with op.batch_alter_table("sfumato_vault") as table:
        table.add_column(sa.Column("root", sa.String(64), nullable=False, server_default=""))
    op.drop_index("sfumato_subjects_by_recipient", "sfumato_subjects")
    op.drop_table("sfumato_subjects")
    op.create_table(
        "sfumato_subjects",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("dataset", sa.String(100), nullable=False),
        sa.Column("recipient", sa.String(100), nullable=False),
        sa.Column("entry", sa.Integer, sa.ForeignKey("sfumato_entries.number"), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("subjects", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("bucket", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("kind", "dataset", "recipient"),
    )
    op.create_index("sfumato_subjects_by_recipient", "sfumato_subjects", ["recipient", "kind"])
    op.create_index("sfumato_subjects_by_bucket", "sfumato_subjects", ["bucket"])
    op.create_table(
        "sfumato_subject_nodes",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )


def downgrade() -> None:
    """Go back to a table of subjects without digests, which is then empty."""
    op.drop_table("sfumato_subject_nodes")
    op.drop_index("sfumato_subjects_by_bucket", "sfumato_subjects")
    with op.batch_alter_table("sfumato_subjects") as table:
        for name in ("hash", "entries", "subjects", "digest", "bucket"):
            table.drop_column(name)
    with op.batch_alter_table("sfumato_vault") as table:
        table.drop_column("root")
