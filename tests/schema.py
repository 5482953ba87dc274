"""The tables of a vault's database, described once more, and a way to read and change them behind the vault's back.

Migrations must build exactly these tables. Tests that play somebody with access to the database use them, and none of
the vault's own statements.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, PrimaryKeyConstraint, String, Table, Text

from sfumato.ledger.database import Database


def engine(database: Database) -> sa.Engine:
    """An engine for a vault's database, without the vault's own settings."""
    url = sa.URL.create("sqlite", database=database._path) if database.is_file else "postgresql+psycopg://"
    return sa.create_engine(url, connect_args=database.parameters, poolclass=sa.pool.NullPool)


@contextlib.contextmanager
def tables_of(database: Database) -> Iterator[sa.Connection]:
    """A transaction on the tables as they are stored."""
    with engine(database).begin() as connection:
        yield connection


METADATA = MetaData()

VAULT = Table(
    "sfumato_vault",
    METADATA,
    Column("id", Integer, primary_key=True),  # always 1: a database holds one vault
    Column("name", String(32), nullable=False),
    Column("store", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("counts", Text, nullable=False),
    Column("root", String(64), nullable=False),  # of the tree over the subjects; empty before there was one
    Column("accesses", Integer, nullable=False),  # the number of the last record of the access log
    Column("access_head", String(64), nullable=False),  # its hash; empty before there was one
    Column("seal", String(64), nullable=False),
)

GENERATIONS = Table(
    "sfumato_generations",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("fingerprint", String(16), nullable=False),
    Column("public", String(64), nullable=False),
    Column("lock", Text, nullable=False),
    Column("lost", Integer, nullable=False),  # 1 if the secret that unlocks the key is lost
)


def _chain(name: str, *indices: Index) -> Table:
    """A table with a hash chain of entries."""
    return Table(
        name,
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
        *indices,
    )


ENTRIES = _chain(
    "sfumato_entries",
    Index("sfumato_entries_by_subject", "kind", "dataset", "recipient", "number"),
    Index("sfumato_entries_by_dataset", "dataset", "number"),
    Index("sfumato_entries_by_recipient", "recipient", "number"),
    Index("sfumato_entries_by_action", "action", "number"),
)

ACCESSES = _chain(
    "sfumato_accesses",
    Index("sfumato_accesses_by_actor", "actor", "number"),
    Index("sfumato_accesses_by_dataset", "dataset", "number"),
    Index("sfumato_accesses_by_recipient", "recipient", "number"),
)
"""The access log: who read what from the vault, and when; its last record is covered by the seal of the head."""

SUBJECTS = Table(
    "sfumato_subjects",
    METADATA,
    Column("kind", String(16), nullable=False),
    Column("dataset", String(100), nullable=False),
    Column("recipient", String(100), nullable=False),
    Column("entry", Integer, ForeignKey("sfumato_entries.number"), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("subjects", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("bucket", Integer, nullable=False),
    PrimaryKeyConstraint("kind", "dataset", "recipient"),
    Index("sfumato_subjects_by_recipient", "recipient", "kind"),
    Index("sfumato_subjects_by_bucket", "bucket"),
)

NODES = Table(
    "sfumato_subject_nodes",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("hash", String(64), nullable=False),
)

DATA_KEYS = Table(
    "sfumato_data_keys",
    METADATA,
    Column("scope", String(120), primary_key=True),
    Column("wrapped", Text, nullable=False),
)
"""The keys under which stored files are encrypted, wrapped with the current master key."""

SURVEYS = MetaData()
"""The tables of survey answers, created with a vault's first survey.

No column records who answered, when, or in which order.
"""

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
"""Perturbed answers. `level` is the chosen privacy level, or the number of guidance directions that were followed."""

CLEAR = Table(
    "sfumato_survey_clear",
    SURVEYS,
    Column("key", String(32), primary_key=True),
    Column("survey", String(100), nullable=False, index=True),
    Column("label", Integer, nullable=False),
    Column("row", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Unperturbed answers of people who consented, which start a guided survey; models are never trained on them."""


def _hashes(name: str) -> Table:
    """A table of ticket hashes, whose order reveals no times."""
    survey, digest = Column("survey", String(100), nullable=False), Column("hash", String(64), nullable=False)
    return Table(name, SURVEYS, survey, digest, PrimaryKeyConstraint("survey", "hash"), sqlite_with_rowid=False)


TICKETS = _hashes("sfumato_survey_tickets")
"""Tickets that were used; no column links a ticket to its answer."""

INVITED = _hashes("sfumato_survey_invited")

GROUPS = Table(
    "sfumato_survey_groups",
    SURVEYS,
    Column("survey", String(100), nullable=False),
    Column("part", String(32), nullable=False),
    Column("name", Text, nullable=False),  # encrypted
    Column("invited", Integer, nullable=False),
    Column("quota", Integer, nullable=False),
    Column("answered", Integer, nullable=False),
    PrimaryKeyConstraint("survey", "part"),
    sqlite_with_rowid=False,
)

MEMBERS = Table(
    "sfumato_survey_members",
    SURVEYS,
    Column("survey", String(100), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("part", String(32), nullable=False),
    PrimaryKeyConstraint("survey", "hash"),
    sqlite_with_rowid=False,
)
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
"""The guidance matrices of guided surveys by epoch, with the sums from which the next one is computed."""

JOBS = Table(
    "sfumato_background_jobs",
    MetaData(),
    *(Column(name, Text) for name in ("id", "kind", "dataset", "about", "state", "stage", "result", "report", "beat")),
)
"""The background jobs of a service."""
