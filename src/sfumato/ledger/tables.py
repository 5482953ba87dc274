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

SURVEYS = MetaData()
"""What surveys received; made with a vault's first survey. No column says who answered, when, or in which order."""

ANSWERS = Table(
    "sfumato_survey_answers",
    SURVEYS,
    Column("key", String(32), primary_key=True),
    Column("survey", String(100), nullable=False),
    Column("batch", Integer, nullable=False),
    Column("level", Integer, nullable=False),
    Column("label", Integer, nullable=False),
    Column("row", Text, nullable=False),
    Index("sfumato_survey_answers_by_batch", "survey", "batch"),
    sqlite_with_rowid=False,
)
"""Blurred rows. `level` is the stop of the slider, or the number of directions that were followed."""

CLEAR = Table(
    "sfumato_survey_clear",
    SURVEYS,
    Column("key", String(32), primary_key=True),
    Column("survey", String(100), nullable=False, index=True),
    Column("label", Integer, nullable=False),
    Column("row", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Unblurred rows of people who consented, to begin a guided survey with; never trained on."""


def _hashes(name: str) -> Table:
    """Hashes of tickets, in no order of time."""
    survey, mark = Column("survey", String(100), nullable=False), Column("hash", String(64), nullable=False)
    return Table(name, SURVEYS, survey, mark, PrimaryKeyConstraint("survey", "hash"), sqlite_with_rowid=False)


TICKETS = _hashes("sfumato_survey_tickets")
"""Tickets that were used up; no column leads from a ticket to its answer."""

INVITED = _hashes("sfumato_survey_invited")
"""Tickets that may be used, where a survey is for invited people only."""

GUIDANCES = Table(
    "sfumato_survey_guidances",
    SURVEYS,
    Column("survey", String(100), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("matrix", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("tally", Text, nullable=False),
    Column("alarms", Text, nullable=False),
    PrimaryKeyConstraint("survey", "epoch"),
)
"""What guided surveys asked for, epoch by epoch, with the sums that the next one is made from."""
