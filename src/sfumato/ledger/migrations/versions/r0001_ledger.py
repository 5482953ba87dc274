"""The first schema: the vault, its keys, the entries, and the subjects that the entries are about."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_REFUSAL = "the ledger is append-only"

_APPEND_ONLY = {
    "sqlite": [
        f"CREATE TRIGGER sfumato_entries_no_{verb.lower()} BEFORE {verb} ON sfumato_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        f"CREATE FUNCTION sfumato_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
        "CREATE TRIGGER sfumato_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON sfumato_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION sfumato_refuse()",
    ],
}


def upgrade() -> None:
    """Create the tables and triggers."""
    op.create_table(
        "sfumato_vault",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("store", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("seal", sa.String(64), nullable=False),
    )
    op.create_table(
        "sfumato_generations",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("fingerprint", sa.String(16), nullable=False),
        sa.Column("public", sa.String(64), nullable=False),
        sa.Column("lock", sa.Text, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
    )
    _entries()
    op.create_table(
        "sfumato_subjects",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("dataset", sa.String(100), nullable=False),
        sa.Column("recipient", sa.String(100), nullable=False),
        sa.Column("entry", sa.Integer, sa.ForeignKey("sfumato_entries.number"), nullable=False),
        sa.PrimaryKeyConstraint("kind", "dataset", "recipient"),
    )
    op.create_index("sfumato_subjects_by_recipient", "sfumato_subjects", ["recipient", "kind"])
    for statement in _APPEND_ONLY[op.get_bind().dialect.name]:
        op.execute(statement)


def _entries() -> None:
    op.create_table(
        "sfumato_entries",
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
    op.create_index(
        "sfumato_entries_by_subject", "sfumato_entries", ["kind", "dataset", "recipient", "number"], unique=False
    )
    for column in ("dataset", "recipient", "action"):
        op.create_index(f"sfumato_entries_by_{column}", "sfumato_entries", [column, "number"])


def downgrade() -> None:
    """Drop the tables and triggers."""
    for table in ("subjects", "entries", "generations", "vault"):
        op.drop_table(f"sfumato_{table}")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION sfumato_refuse()")
