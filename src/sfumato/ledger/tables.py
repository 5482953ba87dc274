"""The tables, one schema for SQLite and PostgreSQL. `migrations/` builds them; a test compares the two."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text

REVISION = "0001"
"""The migration that these tables correspond to."""

VERSIONS = "sfumato_schema"
"""The table in which Alembic keeps the revision."""

METADATA = MetaData()

VAULT = Table(
    "sfumato_vault",
    METADATA,
    Column("id", Integer, primary_key=True),  # always 1: there is one vault in a database
    Column("name", String(32), nullable=False),
    Column("store", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("counts", Text, nullable=False),
    Column("seal", String(64), nullable=False),
)

GENERATIONS = Table(
    "sfumato_generations",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String(16), nullable=False),
    Column("public", String(64), nullable=False),
    Column("lock", Text, nullable=False),
    Column("lost", Integer, nullable=False),  # 1 where nobody can open the lock any more
)

ENTRIES = Table(
    "sfumato_entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", String(32), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("dataset", String(100), nullable=False),
    Column("recipient", String(100), nullable=False),
    Column("body", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("mac", String(64), nullable=False),
    Index("sfumato_entries_by_subject", "kind", "dataset", "recipient", "number"),
    Index("sfumato_entries_by_dataset", "dataset", "number"),
    Index("sfumato_entries_by_recipient", "recipient", "number"),
    Index("sfumato_entries_by_action", "action", "number"),
)

SUBJECTS = Table(
    "sfumato_subjects",
    METADATA,
    Column("kind", String(16), nullable=False),
    Column("dataset", String(100), nullable=False),
    Column("recipient", String(100), nullable=False),
    Column("entry", Integer, ForeignKey("sfumato_entries.number"), nullable=False),
    PrimaryKeyConstraint("kind", "dataset", "recipient"),
    Index("sfumato_subjects_by_recipient", "recipient", "kind"),
)
