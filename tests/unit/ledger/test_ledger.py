"""The ledger: verification and migrations."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site
from tests.schema import ENTRIES, GENERATIONS, METADATA, SUBJECTS, SURVEYS, VAULT, tables_of

import sfumato as sf
from sfumato.errors import CustodyError, TamperedError, VaultError
from sfumato.ledger.chain import canonical
from sfumato.ledger.database import Database
from sfumato.ledger.migrations import REVISION, VERSIONS, revision
from sfumato.ledger.reader import Query
from sfumato.ledger.tables import SURVEY_TABLES


@pytest.fixture
def vault(site: Site) -> sf.Vault:
    """Two recipients, three grants, two releases and a revocation: 11 entries."""
    made = site.create()
    made.add(wards.policy(), wards.table())
    for name in ("clinic", "lab"):
        made.recipient(name)
        made.grant(name, "ward", "partner")
    for name in ("clinic", "lab"):
        made.release(name, "ward", Path(site.folder) / f"{name}.parquet")
    made.grant("lab", "ward", 0.3)
    made.revoke("clinic", "ward")
    made.update("ward", wards.changed(wards.table(), "age", slice(0, 7), 1.0))
    return made


def _tamper(vault: sf.Vault, *statements: sa.Executable) -> None:
    """Change the tables directly, as somebody with write access to the database can."""
    is_file = vault.ledger.database.is_file
    with tables_of(vault.ledger.database) as connection:
        if is_file:
            for verb in ("update", "delete"):
                connection.execute(sa.text(f"DROP TRIGGER IF EXISTS sfumato_entries_no_{verb}"))
        else:
            connection.execute(sa.text("ALTER TABLE sfumato_entries DISABLE TRIGGER ALL"))
            connection.execute(sa.text("ALTER TABLE sfumato_subjects DISABLE TRIGGER ALL"))
        for statement in statements:
            connection.execute(statement)


def _numbered(number: int) -> sa.ColumnElement[bool]:
    return ENTRIES.c.number == number


def _stored(vault: sf.Vault, number: int) -> dict[str, Any]:
    """The row of an entry, as it is in the database."""
    with tables_of(vault.ledger.database) as connection:
        return dict(connection.execute(sa.select(ENTRIES).where(_numbered(number))).one()._mapping)


def test_an_intact_vault_verifies(vault: sf.Vault) -> None:
    report = vault.verify()
    assert report.sound
    assert (report.entries, report.files) == (11, 10)


@pytest.mark.parametrize("column", [c.name for c in ENTRIES.columns])
def test_an_edited_entry_is_found(vault: sf.Vault, column: str) -> None:
    """A small change of any column is found."""
    for number in (1, 6, 11):
        old = _stored(vault, number)[column]
        new = old + 100 if isinstance(old, int) else f"{old}"[:-1] + "!"
        _tamper(vault, ENTRIES.update().where(_numbered(number)).values({column: new}))
        assert not vault.verify(files=False).sound, (column, number)
        now = 100 + number if column == "number" else number
        _tamper(vault, ENTRIES.update().where(_numbered(now)).values({column: old}))
        assert vault.verify(files=False).sound


def test_rows_cannot_be_exchanged_with_their_names(vault: sf.Vault) -> None:
    """Whole encrypted rows, as the vault itself wrote them, instead of others."""
    grants = [entry.number for entry in vault.log(Query(kind="grant"))]
    one, other = _stored(vault, grants[0]), _stored(vault, grants[1])
    text = {name: other[name] for name in ("actor", "action", "kind", "dataset", "recipient", "body")}
    _tamper(vault, ENTRIES.update().where(_numbered(one["number"])).values(text))
    assert not vault.verify(files=False).sound
    with pytest.raises(TamperedError):
        vault.grants()


@pytest.mark.parametrize("number", [1, 2, 6, 10, 11])
def test_a_removed_entry_is_found(vault: sf.Vault, number: int) -> None:
    _tamper(vault, SUBJECTS.delete().where(SUBJECTS.c.entry == number), ENTRIES.delete().where(_numbered(number)))
    problems = vault.verify(files=False).problems
    assert problems
    assert number == 11 or f"entry {number} is missing; the next one found is {number + 1}" in problems


@pytest.mark.parametrize("body", ["hello", "[1]", "{}"])
def test_an_unreadable_entry_is_found_and_reported(vault: sf.Vault, body: str) -> None:
    from sfumato.vault.overview import checked_overview, dataset_overview

    _tamper(vault, ENTRIES.update().where(_numbered(11)).values(body=body))
    report = vault.verify()
    assert any("entry 11" in problem for problem in report.problems)
    assert not [note for note in report.notes if "deleted" in note]  # an altered entry may have referred to the files
    with pytest.raises(TamperedError, match="run `sfumato verify`"):
        vault.log()
    with pytest.raises(TamperedError):
        checked_overview(lambda: dataset_overview(vault, "ward"))
    with pytest.raises(TamperedError):
        vault.grant("lab", "ward", "partner")


def test_reordered_entries_are_found(vault: sf.Vault) -> None:
    swap = [ENTRIES.update().where(_numbered(a)).values(number=b) for a, b in ((7, 99), (8, 7), (99, 8))]
    _tamper(vault, *swap)
    assert not vault.verify(files=False).sound


def test_a_rewritten_history_is_found_without_the_key(vault: sf.Vault) -> None:
    """Somebody recomputes all hashes after an edit, without the key of the authentication codes."""
    from sfumato.ledger.chain import START, canonical

    previous = START
    statements: list[sa.Executable] = []
    for entry in vault.log(Query()):
        body = {**entry.body, "level": "internal"} if entry.number == 6 else entry.body
        forged = type(entry)(**{**entry.__dict__, "body": body})
        previous = forged.digest(previous)
        values = {"body": canonical(body), "hash": previous}
        statements.append(ENTRIES.update().where(_numbered(entry.number)).values(values))
    statements.append(VAULT.update().values(head=previous))
    _tamper(vault, *statements)
    problems = vault.verify(files=False).problems
    assert any("not written by this vault" in problem for problem in problems)
    assert any("not sealed" in problem for problem in problems)
    with pytest.raises(TamperedError, match="seal"):
        vault.recipient("another")


@pytest.mark.parametrize(
    "statement",
    [
        SUBJECTS.update().where(SUBJECTS.c.entry == 10).values(entry=4),
        SUBJECTS.delete().where(SUBJECTS.c.entry == 10),
        SUBJECTS.insert().values(
            kind="grant",
            dataset="ward",
            recipient="thief",
            entry=4,
            hash="0" * 64,
            entries=1,
            subjects=1,
            digest="0" * 64,
            bucket=7,
        ),
        VAULT.update().values(counts='{"dataset":1}'),
        VAULT.update().values(entries=10),
        VAULT.update().values(generation=2),
        VAULT.update().values(store="/elsewhere"),
        GENERATIONS.update().values(public="0" * 64),
        GENERATIONS.insert().values(number=2, fingerprint="0" * 16, public="0" * 64, lock="{}", lost=1),
    ],
    ids=["revived grant", "removed grant", "invented grant", "counts", "entries", "generation", "store", "key", "more"],
)
def test_a_state_that_contradicts_the_ledger_is_found(vault: sf.Vault, statement: sa.Executable) -> None:
    _tamper(vault, statement)
    with contextlib.suppress(TamperedError, CustodyError):  # some changes prevent even the verification
        assert not vault.verify(files=False).sound


def test_an_altered_entry_is_not_used(vault: sf.Vault, tmp_path: Path) -> None:
    """A grant that was raised in the database is refused, even if nobody verifies the ledger."""
    [entry] = [e for e in vault.log(Query(kind="grant", recipient="lab")) if e.body["fidelity"] == 0.3][-1:] or [
        vault.log(Query(kind="grant", recipient="lab"))[-1]
    ]
    body = json.dumps({**entry.body, "fidelity": 0.99}, sort_keys=True, separators=(",", ":"))
    _tamper(vault, ENTRIES.update().where(_numbered(entry.number)).values(body=body))
    with pytest.raises(TamperedError, match=f"entry {entry.number}"):
        vault.release("lab", "ward", tmp_path / "copy.parquet")
    assert not (tmp_path / "copy.parquet").exists()


def test_no_table_is_written_to_an_altered_store(vault: sf.Vault, tmp_path: Path) -> None:
    _tamper(vault, VAULT.update().values(store=str(tmp_path / "evil")))
    again = sf.Vault.open(vault.location, secret=sf.Key.from_bytes(bytes(range(32))))
    with pytest.raises(TamperedError, match="seal"):
        again.update("ward", wards.table())
    with pytest.raises(TamperedError, match="seal"):
        again.add(wards.policy("other"), wards.table())
    assert not (tmp_path / "evil").exists()


def test_the_database_refuses_changes_of_entries(vault: sf.Vault) -> None:
    for statement in (ENTRIES.update().values(hash="0" * 64), ENTRIES.update().values(mac="0"), ENTRIES.delete()):
        with pytest.raises(sa.exc.DBAPIError, match="append-only"), tables_of(vault.ledger.database) as connection:
            connection.execute(statement)
    assert vault.verify(files=False).sound


def test_a_noted_hash_reveals_a_rollback(vault: sf.Vault, tmp_path: Path, site: Site) -> None:
    """A complete older state is consistent; only a hash that was noted elsewhere reveals it."""
    vault.backup(tmp_path / "old.tar")
    vault.recipient("third")
    noted = vault.log()[-1].hash
    location, store = site.new()
    older = sf.Vault.restore(tmp_path / "old.tar", location, store=store, secret=site.secret)
    assert older.verify().sound
    assert not older.verify(contains=noted).sound
    assert vault.verify(contains=noted).sound


def test_altered_files_and_copies_are_found(tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    copy, _ = vault.release("clinic", "ward")
    sound = vault.verify()
    assert (sound.files, sound.copies, sound.problems) == (6, 1, [])
    [release] = [entry.number for entry in vault.log() if entry.action == "released"]
    body = _stored(vault, release)["body"]
    _tamper(vault, ENTRIES.update().where(_numbered(release)).values(body="{}"))
    assert any("is not in the ledger" in problem for problem in vault.verify().problems)
    _tamper(vault, ENTRIES.update().where(_numbered(release)).values(body=body))
    [folder] = (tmp_path / "vault/datasets").iterdir()
    for path in [*folder.iterdir(), copy]:
        content = path.read_bytes()
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
        assert len(vault.verify().problems) == 1, path
        path.write_bytes(content)
    (folder / "left.parquet").write_bytes(b"")
    assert vault.verify().sound
    assert "left.parquet" in vault.verify().notes[0]
    stranger = sf.Vault.create(tmp_path / "other")
    stranger.add(wards.policy(), wards.table())
    stranger.recipient("clinic")
    stranger.grant("clinic", "ward", "internal")
    smuggled, _ = stranger.release("clinic", "ward")
    shutil.copy(smuggled, copy.with_name("lab.v1.parquet"))
    assert "not in the ledger" in vault.verify().problems[0]
    shutil.copy(copy, copy.with_name("lab.v1.parquet"))
    assert "has the wrong name" in vault.verify().problems[0]
    copy.with_name("lab.v1.parquet").unlink()
    next(folder.glob("1-*.parquet*")).unlink()
    with pytest.raises(VaultError, match=r"is gone|was altered"):
        vault.release("clinic", "ward")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrations_build_the_tables(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    url = str(tmp_path) if kind == "sqlite" else request.getfixturevalue("postgres").database()
    database = Database(url)
    with database.creation() as created:
        created.define(SURVEY_TABLES)
    everything = sa.MetaData()
    for table in (*METADATA.sorted_tables, *SURVEYS.sorted_tables):
        table.to_metadata(everything)
    with tables_of(database) as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSIONS, "compare_type": True})
        assert compare_metadata(context, everything) == []
        connection.execute(sa.text("ALTER TABLE sfumato_vault ADD COLUMN more INTEGER"))
        assert compare_metadata(context, everything) != []
    with database.transaction(writes=True) as written:
        assert revision(written) == REVISION
        written.update(VERSIONS, {"version_num": "9999"})
    with pytest.raises(VaultError, match="schema 9999"):
        database.check()


def test_the_chain_is_computed_as_documented(vault: sf.Vault, site: Site) -> None:
    """The hash is computed from the exported entries alone, the authentication code with the key."""
    previous = "0" * 64
    key = vault.keys()[1].derive("ledger").expose()
    for entry in vault.log(Query()):
        content = {name: value for name, value in entry.__dict__.items() if name not in ("hash", "mac")}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256((previous + text).encode()).hexdigest()
        assert entry.hash == previous
        assert entry.mac == hmac.new(key, json.dumps([previous]).encode(), "sha256").hexdigest()


def test_equal_content_has_one_canonical_text() -> None:
    assert canonical({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'


def test_the_wrapped_key_of_another_vault_is_refused(site: Site) -> None:
    """A wrapped key is bound to its vault and its generation."""
    one, two = site.create(), site.create()
    assert two.verify().sound
    with one.ledger.reading() as reading:
        [generation] = reading.generations()
    _tamper(two, GENERATIONS.update().values(lock=json.dumps(generation.lock)))
    with pytest.raises(CustodyError):
        two.verify()


def test_a_snapshot_from_before_a_write_is_no_older_state(site: Site) -> None:
    """Others write and see later heads while a transaction reads; an older state that comes later is still noticed."""
    vault = site.create()
    vault.recipient("first")
    with vault.ledger.reading(vault.keys()) as reading:
        before = reading.head()
        vault.recipient("second")
        with vault.ledger.reading(vault.keys()) as other:
            assert other.verified_head().entries == before.entries + 1
        assert reading.verified_head() == before
    with vault.ledger.reading(vault.keys()) as reading:
        assert reading.verified_head().entries == before.entries + 1
    with (
        vault.ledger.reading(vault.keys()) as reading,
        pytest.raises(TamperedError, match="replaced it by an older state"),
    ):
        reading.require_seal(before)
