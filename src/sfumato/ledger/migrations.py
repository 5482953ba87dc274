"""The tables of the ledger, as a sequence of migrations: a new vault runs all of them, an earlier one the rest.

Each is a list of statements for both databases, or for one of them. A test compares what they build with a description
of the tables.
"""

from __future__ import annotations

from sfumato.ledger.connection import Connection

VERSIONS = "sfumato_schema"
"""The table that holds the revision of the schema."""

_REFUSAL = "the ledger is append-only"

_CHAIN = """(
    number INTEGER NOT NULL, at VARCHAR(32) NOT NULL, actor TEXT NOT NULL, action VARCHAR(32) NOT NULL,
    kind VARCHAR(16) NOT NULL, dataset VARCHAR(100) NOT NULL, recipient VARCHAR(100) NOT NULL, body TEXT NOT NULL,
    generation INTEGER NOT NULL, hash VARCHAR(64) NOT NULL, mac VARCHAR(64) NOT NULL, PRIMARY KEY (number)
)"""
"""The columns of a hash chain of entries."""

_ENTRIES = f"""
CREATE TABLE sfumato_vault (
    id {{serial}} NOT NULL, name VARCHAR(32) NOT NULL, store TEXT NOT NULL, generation INTEGER NOT NULL,
    entries INTEGER NOT NULL, head VARCHAR(64) NOT NULL, counts TEXT NOT NULL, seal VARCHAR(64) NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE sfumato_generations (
    number {{serial}} NOT NULL, fingerprint VARCHAR(16) NOT NULL, public VARCHAR(64) NOT NULL, lock TEXT NOT NULL,
    lost INTEGER NOT NULL, PRIMARY KEY (number)
);
CREATE TABLE sfumato_entries {_CHAIN};
CREATE INDEX sfumato_entries_by_subject ON sfumato_entries (kind, dataset, recipient, number);
CREATE INDEX sfumato_entries_by_dataset ON sfumato_entries (dataset, number);
CREATE INDEX sfumato_entries_by_recipient ON sfumato_entries (recipient, number);
CREATE INDEX sfumato_entries_by_action ON sfumato_entries (action, number);
"""

_SUBJECTS = """
ALTER TABLE sfumato_vault ADD COLUMN root VARCHAR(64) DEFAULT '' NOT NULL;
CREATE TABLE sfumato_subjects (
    kind VARCHAR(16) NOT NULL, dataset VARCHAR(100) NOT NULL, recipient VARCHAR(100) NOT NULL,
    entry INTEGER NOT NULL REFERENCES sfumato_entries (number), hash VARCHAR(64) NOT NULL, entries INTEGER NOT NULL,
    subjects INTEGER NOT NULL, digest VARCHAR(64) NOT NULL, bucket INTEGER NOT NULL,
    PRIMARY KEY (kind, dataset, recipient)
);
CREATE INDEX sfumato_subjects_by_recipient ON sfumato_subjects (recipient, kind);
CREATE INDEX sfumato_subjects_by_bucket ON sfumato_subjects (bucket);
CREATE TABLE sfumato_subject_nodes (number INTEGER NOT NULL, hash VARCHAR(64) NOT NULL, PRIMARY KEY (number));
"""
"""The authenticated index of subjects, which is computed when the vault is next written to."""

_DATA_KEYS = "CREATE TABLE sfumato_data_keys (scope VARCHAR(120) NOT NULL, wrapped TEXT NOT NULL, PRIMARY KEY (scope));"

_ACCESSES = f"""
ALTER TABLE sfumato_vault ADD COLUMN accesses INTEGER DEFAULT '0' NOT NULL;
ALTER TABLE sfumato_vault ADD COLUMN access_head VARCHAR(64) DEFAULT '' NOT NULL;
CREATE TABLE sfumato_accesses {_CHAIN};
CREATE INDEX sfumato_accesses_by_actor ON sfumato_accesses (actor, number);
CREATE INDEX sfumato_accesses_by_dataset ON sfumato_accesses (dataset, number);
CREATE INDEX sfumato_accesses_by_recipient ON sfumato_accesses (recipient, number);
"""
"""The access log, and its last record in the head."""

_FIXED = " OR ".join(f"OLD.{name} <> NEW.{name}" for name in ("number", "at", "generation", "hash", "mac"))
"""What cannot be changed in an entry; its texts may be encrypted anew."""

_APPEND_ONLY = {
    True: [
        *(f"DROP TRIGGER IF EXISTS sfumato_entries_no_{verb}" for verb in ("update", "delete")),
        "CREATE TRIGGER sfumato_entries_no_delete BEFORE DELETE ON sfumato_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
        f"CREATE TRIGGER sfumato_entries_no_update BEFORE UPDATE ON sfumato_entries WHEN {_FIXED} "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    ],
    False: [
        "CREATE OR REPLACE FUNCTION sfumato_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
        "DROP TRIGGER IF EXISTS sfumato_entries_append_only ON sfumato_entries",
        "CREATE TRIGGER sfumato_entries_append_only BEFORE DELETE OR TRUNCATE ON sfumato_entries "
        "EXECUTE FUNCTION sfumato_refuse()",
        "CREATE TRIGGER sfumato_entries_no_update BEFORE UPDATE ON sfumato_entries FOR EACH ROW "
        f"WHEN ({_FIXED}) EXECUTE FUNCTION sfumato_refuse()",
    ],
}
"""Triggers that refuse changes of entries, in SQLite and in PostgreSQL."""

_FIRST = "0001"
"""The revision of version 0.2, the earliest that can be migrated."""

EARLIER = (_FIRST,)
"""The revisions that can be migrated."""

REVISION = "0005"
"""The revision of the last migration."""


def revision(connection: Connection) -> str | None:
    """The revision of the schema; `None` where there is no schema."""
    if VERSIONS not in connection.tables():
        return None
    found: str | None = connection.value("SELECT version_num FROM sfumato_schema")
    return found


def migrate(connection: Connection) -> None:
    """Create the tables of a new vault, or migrate those of an earlier version, within a transaction."""
    found = revision(connection)
    if found is None:
        serial = "INTEGER" if connection.is_file else "SERIAL"
        connection.define(_statements(_ENTRIES.format(serial=serial)))
        connection.define([f"CREATE TABLE {VERSIONS} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"])
        connection.insert(VERSIONS, {"version_num": REVISION})
    elif found == _FIRST:
        connection.define(["DROP TABLE sfumato_subjects"])  # it had no digests
        connection.update(VERSIONS, {"version_num": REVISION})
    else:
        return
    connection.define(_statements(_SUBJECTS + _DATA_KEYS + _ACCESSES))
    connection.define(_APPEND_ONLY[connection.is_file])


def _statements(text: str) -> list[str]:
    return [statement for statement in text.split(";") if statement.strip()]
