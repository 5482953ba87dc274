"""The authenticated index: write access to the database, without a key, changes nothing that is believed."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests import wards
from tests.schema import ENTRIES, METADATA, NODES, SUBJECTS, VAULT, engine, tables_of

import sfumato as sf
from sfumato.errors import SfumatoError, TamperedError
from sfumato.ledger.chain import Entry
from sfumato.ledger.connection import Connection
from sfumato.ledger.database import FILE, Database
from sfumato.ledger.reader import Query
from sfumato.ledger.subject_index import ANY, MemoryIndex, StoredIndex, _bucket, rebuild


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault with three recipients who hold copies; the grant of one was revoked."""
    folder = tmp_path_factory.mktemp("template")
    made = sf.Vault.create(folder / "vault")
    made.add(wards.policy(), wards.table(500), traced=True)
    for name in ("clinic", "lab", "office"):
        made.recipient(name)
        made.grant(name, "ward", "partner")
        made.release(name, "ward", folder / f"{name}.parquet")
    made.revoke("clinic", "ward")
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "site")
    return tmp_path / "site"


def test_subjects_are_counted(folder: Path) -> None:
    vault = sf.Vault.open(folder / "vault")
    with vault.ledger.reading(vault.keys()) as reading:
        assert [reading.subjects(kind) for kind in ("recipient", "grant", "survey")] == [3, 3, 0]


def _tamper(folder: Path, *statements: sa.Executable) -> None:
    """Change the tables directly, as somebody with write access to the database can."""
    with tables_of(Database(folder / "vault")) as connection:
        for verb in ("update", "delete"):
            connection.execute(sa.text(f"DROP TRIGGER IF EXISTS sfumato_entries_no_{verb}"))
        for statement in statements:
            connection.execute(statement)


def _entries(folder: Path, **where: Any) -> list[int]:
    return [entry.number for entry in sf.Vault.open(folder / "vault").log(Query(**where))]


def test_a_revocation_cannot_be_deleted(folder: Path) -> None:
    [number] = _entries(folder, action="revoked")
    for statement in (
        ENTRIES.delete().where(ENTRIES.c.number == number),
        ENTRIES.update().where(ENTRIES.c.number == number).values(kind="0123456789abcdef"),
        ENTRIES.update().where(ENTRIES.c.number == number).values(number=9999),
    ):
        work = folder.with_name("work")
        shutil.copytree(folder, work)
        _tamper(work, statement)
        with pytest.raises(TamperedError):
            sf.Vault.open(work / "vault").release("clinic", "ward", work / "again.parquet")
        shutil.rmtree(work)


def test_the_index_cannot_be_brought_back_to_an_earlier_state(folder: Path) -> None:
    """Not even with all rows as they were: the root is in the head, and the head is sealed."""
    [number] = _entries(folder, action="revoked")
    vault = sf.Vault.open(folder / "vault")
    with vault.ledger.reading(vault.keys()) as reading:
        before = MemoryIndex(reading.cipher.token)
        for entry in reading.history():
            if entry.number != number:
                before.record(entry)
    wanted = [before.find(name) for name in (("grant", "ward", "clinic"), ("grant", "ward", ANY), ("grant", ANY, ANY))]
    updates = [
        SUBJECTS.update()
        .where(SUBJECTS.c.kind == one.kind, SUBJECTS.c.dataset == one.dataset, SUBJECTS.c.recipient == one.recipient)
        .values(entry=one.entry, hash=one.hash, entries=one.entries, digest=one.digest)
        for one in filter(None, wanted)
    ]
    _tamper(folder, ENTRIES.delete().where(ENTRIES.c.number == number), *updates)
    earlier = before.nodes()
    for first in (256, 0):  # the leaves alone, then with the nodes above them: each is checked against the one above
        _tamper(
            folder, *(NODES.update().where(NODES.c.number == n).values(hash=earlier[n]) for n in earlier if n >= first)
        )
        with pytest.raises(TamperedError, match="index of the ledger"):
            sf.Vault.open(folder / "vault").release("clinic", "ward", folder / "again.parquet")
    _tamper(folder, VAULT.update().values(root=before.nodes()[-1]))
    with pytest.raises(TamperedError, match="seal"):
        sf.Vault.open(folder / "vault").release("clinic", "ward", folder / "again.parquet")
    _tamper(folder, VAULT.update().values(root=""))
    with pytest.raises(TamperedError, match="seal"):
        sf.Vault.open(folder / "vault").release("clinic", "ward", folder / "again.parquet")


def test_swapped_recipients_accuse_nobody(folder: Path) -> None:
    one, other = (_entries(folder, kind="release", recipient=name)[-1] for name in ("lab", "office"))
    assert [s.recipients for s in sf.Vault.open(folder / "vault").trace("ward", folder / "lab.parquet").accused]
    with tables_of(Database(folder / "vault")) as connection:
        names = dict(connection.execute(sa.select(ENTRIES.c.number, ENTRIES.c.recipient)).all())
    _tamper(
        folder,
        ENTRIES.update().where(ENTRIES.c.number == one).values(recipient=names[other]),
        ENTRIES.update().where(ENTRIES.c.number == other).values(recipient=names[one]),
    )
    with pytest.raises(TamperedError):
        sf.Vault.open(folder / "vault").trace("ward", folder / "lab.parquet")


def test_a_deleted_release_is_missed_by_everything_that_counts_releases(folder: Path) -> None:
    [*_, last] = _entries(folder, kind="release", recipient="lab")
    _tamper(folder, ENTRIES.delete().where(ENTRIES.c.number == last))
    vault = sf.Vault.open(folder / "vault")
    with pytest.raises(TamperedError, match="removed"):
        vault.trace("ward", folder / "lab.parquet")
    with pytest.raises(TamperedError, match="removed"):
        vault.audit("ward")


def test_an_older_state_is_noticed_by_a_process_that_saw_a_later_one(folder: Path) -> None:
    """A process remembers; a new one cannot know, unless somebody noted a hash (`verify --contains`)."""
    database = folder / "vault" / "ledger.sqlite"
    older = {path.name: path.read_bytes() for path in database.parent.glob("ledger.sqlite*")}
    vault = sf.Vault.open(folder / "vault")
    vault.revoke("lab", "ward")
    assert [grant.recipient for grant in vault.grants()] == ["office"]
    for path in database.parent.glob("ledger.sqlite*"):
        path.unlink()
    for name, content in older.items():
        (database.parent / name).write_bytes(content)
    with pytest.raises(TamperedError, match="older state"):
        vault.release("lab", "ward", folder / "again.parquet")
    assert len(sf.Vault.open(folder / "vault").grants()) == 2


def test_whatever_is_damaged_is_noticed_or_harmless(folder: Path) -> None:
    """Every row of the index in turn."""
    pristine = folder.with_name("pristine")
    shutil.copytree(folder, pristine)
    vault = sf.Vault.open(folder / "vault")
    with tables_of(vault.ledger.database) as connection:
        names = list(connection.execute(sa.select(SUBJECTS.c.kind, SUBJECTS.c.dataset, SUBJECTS.c.recipient)))
    refused = 0
    for kind, dataset, recipient in names:
        is_row = sa.and_(SUBJECTS.c.kind == kind, SUBJECTS.c.dataset == dataset, SUBJECTS.c.recipient == recipient)
        _tamper(folder, SUBJECTS.update().where(is_row).values(entries=SUBJECTS.c.entries - 1))
        try:
            grants = [grant.recipient for grant in sf.Vault.open(folder / "vault").grants()]
        except SfumatoError:
            refused += 1
        else:
            assert grants == ["lab", "office"]
        assert not sf.Vault.open(folder / "vault").verify(files=False).sound
        _tamper(folder, SUBJECTS.update().where(is_row).values(entries=SUBJECTS.c.entries + 1))
    assert refused
    assert sf.Vault.open(folder / "vault").verify(files=False).sound


def test_a_lookup_costs_the_same_in_a_large_ledger(tmp_path: Path) -> None:
    """Counted in rows that are read, not in seconds."""
    counts = []
    for recipients in (20, 400):
        vault = sf.Vault.create(tmp_path / str(recipients))
        with vault.ledger.writing(vault.keys()) as writing:
            for number in range(recipients):
                writing.append("registered", "recipient", {"note": ""}, recipient=f"r{number}")
        read = 0
        original = Connection.all

        def counted(self: Connection, statement: str, **values: object) -> list[Any]:
            nonlocal read
            rows = original(self, statement, **values)  # noqa: B023
            read += len(rows)
            return rows

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "all", counted)
            with vault.ledger.reading(vault.keys()) as reading:
                assert reading.latest("recipient", recipient="r7") is not None
                assert reading.latest("recipient", recipient="nobody") is None
        counts.append(read)
    assert max(counts) < 2 * 256 + 60


def test_the_stored_index_is_that_of_the_entries_in_every_part_of_the_tree(tmp_path: Path) -> None:
    kept = [str(n) for n in range(40_000) if _bucket(("grant", str(n), "lab")) < 512][:12] + [
        f"d{n}" for n in range(60)
    ]
    entries = [
        Entry(number, "", "", "granted", "grant", name, "lab", {}, 1, hash=f"{number:064x}")
        for number, name in enumerate(kept, 1)
    ]
    METADATA.create_all(engine(Database(tmp_path)))
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as driver:  # which checks no foreign keys
        connection = Connection(driver, is_file=True)
        first, whole = MemoryIndex(str), MemoryIndex(str)
        for entry in entries[:40]:
            first.record(entry)
        index = rebuild(connection, first, str)
        for entry in entries[40:]:
            index.record(entry)
        for entry in entries:
            whole.record(entry)
        assert index.root == whole.nodes()[-1]
        again = StoredIndex(connection, index.root, str)
        assert all(again.find(subject.name) == subject for subject in whole)
        found = again.find(("grant", ANY, ANY))
        assert found is not None
        assert (found.entries, found.subjects) == (72, 72)
        assert again.find(("grant", "nothing", "lab")) is None
        for given in (
            ("grant", "lab", "dataset", 9, 0),
            ("grant", "lab", "dataset", 100, 70),
            ("grant", "d1", "recipient", 9, 0),
        ):
            assert again.recent(*given) == whole.recent(*given) != []
        for table in (SUBJECTS.name, NODES.name):
            for row in connection.all(f"SELECT * FROM {table} LIMIT 5"):  # noqa: S608 - two names
                assert connection.delete(table, **row._asdict()) == 1
                with pytest.raises(TamperedError, match="sealed head"):
                    [StoredIndex(connection, index.root, str).find(subject.name) for subject in whole]
                connection.insert(table, row._asdict())
