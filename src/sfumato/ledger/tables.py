"""The names of the ledger's tables, and the tables of survey answers, one schema for SQLite and PostgreSQL."""

from __future__ import annotations

VAULT = "sfumato_vault"
"""The head of the ledger: one row, since a database holds one vault."""

GENERATIONS = "sfumato_generations"
"""The master keys, wrapped."""

ENTRIES = "sfumato_entries"
"""The ledger: a hash chain."""

ACCESSES = "sfumato_accesses"
"""The access log: who read what from the vault, and when; its last record is covered by the seal of the head."""

SUBJECTS = "sfumato_subjects"
"""The index of subjects: the leaves of its tree."""

NODES = "sfumato_subject_nodes"
"""The nodes of that tree."""

DATA_KEYS = "sfumato_data_keys"
"""The keys under which stored files are encrypted, wrapped with the current master key."""

ANSWERS = "sfumato_survey_answers"
"""Perturbed answers. `level` is the chosen privacy level, or the number of guidance directions that were followed."""

CLEAR = "sfumato_survey_clear"
"""Unperturbed answers of people who consented, which start a guided survey; models are never trained on them."""

GUIDANCES = "sfumato_survey_guidances"
"""The guidance matrices of guided surveys by epoch, with the sums from which the next one is computed."""

INVITED = "sfumato_survey_invited"
"""Tickets that may be used, where a survey is for invited people only."""

GROUPS = "sfumato_survey_groups"
"""Groups of invited people, each with its quota and the number of its people who answered."""

MEMBERS = "sfumato_survey_members"
"""The groups of tickets that may be used."""

TICKETS = "sfumato_survey_tickets"
"""Tickets that were used; no column links a ticket to its answer."""

KEYS = {
    VAULT: "id",
    GENERATIONS: "number",
    DATA_KEYS: "scope",
    ENTRIES: "number",
    ACCESSES: "number",
    ANSWERS: "key",
    CLEAR: "key",
    GUIDANCES: "survey, epoch",
    INVITED: "survey, hash",
    GROUPS: "survey, part",
    MEMBERS: "survey, hash",
    TICKETS: "survey, hash",
}
"""The primary keys of all tables that a backup holds."""

SURVEYS = (ANSWERS, CLEAR, GUIDANCES, INVITED, GROUPS, MEMBERS, TICKETS)
"""The tables of surveys, which are created with a vault's first one.

No column records who answered, when, or in which order.
"""

_HASHES = "(survey VARCHAR(100) NOT NULL, hash VARCHAR(64) NOT NULL, PRIMARY KEY (survey, hash)) WITHOUT ROWID"
"""A table of ticket hashes, whose order reveals no times."""

SURVEY_TABLES = (
    f"""CREATE TABLE IF NOT EXISTS {ANSWERS} (
        key VARCHAR(32) NOT NULL, survey VARCHAR(100) NOT NULL, batch INTEGER NOT NULL, level INTEGER NOT NULL,
        label INTEGER NOT NULL, "row" TEXT NOT NULL, PRIMARY KEY (key)) WITHOUT ROWID""",
    f"CREATE INDEX IF NOT EXISTS {ANSWERS}_by_batch ON {ANSWERS} (survey, batch)",
    f"""CREATE TABLE IF NOT EXISTS {CLEAR} (
        key VARCHAR(32) NOT NULL, survey VARCHAR(100) NOT NULL, label INTEGER NOT NULL, "row" TEXT NOT NULL,
        PRIMARY KEY (key)) WITHOUT ROWID""",
    f"CREATE INDEX IF NOT EXISTS ix_{CLEAR}_survey ON {CLEAR} (survey)",
    f"CREATE TABLE IF NOT EXISTS {TICKETS} {_HASHES}",
    f"CREATE TABLE IF NOT EXISTS {INVITED} {_HASHES}",
    f"""CREATE TABLE IF NOT EXISTS {GROUPS} (
        survey VARCHAR(100) NOT NULL, part VARCHAR(32) NOT NULL, name TEXT NOT NULL, invited INTEGER NOT NULL,
        quota INTEGER NOT NULL, answered INTEGER NOT NULL, PRIMARY KEY (survey, part)) WITHOUT ROWID""",
    f"""CREATE TABLE IF NOT EXISTS {MEMBERS} (
        survey VARCHAR(100) NOT NULL, hash VARCHAR(64) NOT NULL, part VARCHAR(32) NOT NULL,
        PRIMARY KEY (survey, hash)) WITHOUT ROWID""",
    f"""CREATE TABLE IF NOT EXISTS {GUIDANCES} (
        survey VARCHAR(100) NOT NULL, epoch INTEGER NOT NULL, digest VARCHAR(64) NOT NULL, matrix TEXT NOT NULL,
        "rows" INTEGER NOT NULL, tally TEXT NOT NULL, alarms TEXT NOT NULL, PRIMARY KEY (survey, epoch))""",
)
"""The statements that create them, where they do not exist."""
