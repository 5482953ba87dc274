"""Rows are encrypted; those of an earlier version are with the next entry, since that needs the key.

Tokens and encrypted texts fit into the columns of names and bodies. The texts of an entry may be encrypted anew; its
number, time and hash still cannot be changed.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

_REFUSAL = "the ledger is append-only"
_FIXED = " OR ".join(f"OLD.{name} <> NEW.{name}" for name in ("number", "at", "generation", "hash", "mac"))
_STATEMENTS = {
    "sqlite": [
        "DROP TRIGGER sfumato_entries_no_update",
        f"CREATE TRIGGER sfumato_entries_no_update BEFORE UPDATE ON sfumato_entries WHEN {_FIXED} "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    ],
    "postgresql": [
        "DROP TRIGGER sfumato_entries_append_only ON sfumato_entries",
        "CREATE TRIGGER sfumato_entries_append_only BEFORE DELETE OR TRUNCATE ON sfumato_entries "
        "EXECUTE FUNCTION sfumato_refuse()",
        "CREATE TRIGGER sfumato_entries_no_update BEFORE UPDATE ON sfumato_entries FOR EACH ROW "
        f"WHEN ({_FIXED}) EXECUTE FUNCTION sfumato_refuse()",
    ],
}


def upgrade() -> None:
    """Let the texts of entries be encrypted anew."""
    for statement in _STATEMENTS[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    """Keep the triggers, which go with their table."""
