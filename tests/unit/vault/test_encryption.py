"""Encryption at rest: a stolen folder, database, store or backup reveals nothing but sizes and times."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlalchemy as sa
from tests import wards
from tests.conftest import Site
from tests.schema import DATA_KEYS, tables_of

import sfumato as sf
from sfumato.errors import CustodyError, TamperedError, VaultError
from sfumato.keys.encrypted_file import Spill
from sfumato.ledger.chain import START
from sfumato.ledger.ledger import Origin
from sfumato.service import uploads
from sfumato.service.state import State
from sfumato.survey.rows import Submission
from sfumato.survey.surveys import Surveys
from sfumato.vault import operators
from sfumato.vault.data_keys import erase, scopes
from sfumato.vault.encrypted_store import SUFFIX, is_encrypted

PLANTED = 123456.789012345
POLICY = """
dataset = "ward"
[levels]
partner = 0.5
[columns]
patient = "id"
age = { role = "gaussian", clip = [-98765.4321, 223456.789] }
diagnosis = { role = "uniform", domain = ["influenza", "zebra-fever", "never-seen-disease"] }
note = "keep"
"""


def _table(rows: int = 200) -> pa.Table:
    return pa.table(
        {
            "patient": list(range(rows)),
            "age": [PLANTED + i for i in range(rows)],
            "diagnosis": ["zebra-fever", "influenza"] * (rows // 2),
            "note": ["marker-in-a-table"] * rows,
        }
    )


def _secrets(vault: sf.Vault) -> list[bytes]:
    """Values of the table, of the policy and of the scheme, as they would be written."""
    scheme = json.loads(vault.dataset("ward").scheme.dumps())
    numbers = [repr(number).encode() for number in _numbers(scheme["fitted"]) if len(repr(number)) > 8]
    assert numbers
    text = [b"zebra-fever", b"never-seen-disease", b"98765.4321", b"marker-in-a-table", repr(PLANTED).encode()]
    return [*text, struct.pack("<d", PLANTED), *numbers, b"PAR1"]


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)


def _everything(vault: sf.Vault) -> bytes:
    """All bytes of the folder or the store with the names of the files, and all rows of all tables of the database."""
    root = wards.vault_files(vault)
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    content = b"".join(path.relative_to(root).as_posix().encode() + path.read_bytes() for path in files)
    with tables_of(vault.ledger.database) as connection:
        tables = sa.MetaData()
        tables.reflect(connection)
        rows = [str(row) for table in tables.sorted_tables for row in connection.execute(sa.select(table))]
    return content + "\n".join(rows).encode()


def test_nothing_at_rest_reveals_the_table_the_policy_or_the_scheme(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    vault.update("ward", wards.changed(_table(), "age", slice(0, 7), 1.0))
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    upload = uploads.create(vault.store, "table.csv")
    with Spill() as part:
        part.writer.write(b"note,age\nmarker-in-a-table,123456.789012345\n" * 10_000)
        uploads.put_part(vault.store, upload, 1, part)
    vault.backup(tmp_path / "backup.tar")
    names = [*vault.store.names("datasets"), *vault.store.names("uploads")]
    assert all(map(is_encrypted, names))
    assert len(names) == 11
    for content in (_everything(vault), (tmp_path / "backup.tar").read_bytes()):
        assert [secret for secret in _secrets(vault) if secret in content] == []


WORDS = [
    *("wardsecret", "clinicsecret", "surveysecret", "operatorsecret", "notesecret", "columnsecret", "levelsecret"),
    *("actorsecret", "reasonsecret", "titlesecret", "questionsecret", "addresssecret", "stagesecret", "resultsecret"),
    *("released", "granted", "revoked", "registered", "audited", "stretch", "partner", "llse"),
]
"""Names and texts, and words of the ledger itself, none of which a thief can read."""

_SURVEY = """
title = "titlesecret"
consent = "c"
deadline = "2090-01-01"
[questions.questionsecret]
options = ["a", "b"]
"""


def test_no_name_or_text_of_the_ledger_can_be_read_without_the_secret(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every table of the database, every file and its name, and a backup; also after a new master key."""
    monkeypatch.setenv("SFUMATO_ACTOR", "actorsecret")
    vault = site.create()
    policy = (
        POLICY.replace('"ward"', '"wardsecret"').replace("partner", "levelsecret").replace("note =", "columnsecret =")
    )
    table = _table().rename_columns(["patient", "age", "diagnosis", "columnsecret"])
    vault.add(sf.Policy.loads(policy), table, traced=True)
    vault.recipient("clinicsecret", note="notesecret")
    vault.grant("clinicsecret", "wardsecret", "levelsecret")
    vault.release("clinicsecret", "wardsecret", tmp_path / "copy.parquet")
    vault.acting_as("actorsecret", Origin("actorsecret", "addresssecret")).audit("wardsecret", attacks=["llse"])
    vault.token("clinicsecret", note="notesecret")
    operators.enrol(vault, "operatorsecret", "a long password")
    surveys = Surveys(vault)
    surveys.new("surveysecret", _SURVEY, invited=True)
    surveys.open("surveysecret")
    [ticket] = surveys.invite("surveysecret", 1)
    definition = surveys.get("surveysecret").survey
    surveys.collector.store("surveysecret", definition, [Submission(ticket, 0, 0, (1,))], invited=True)
    state = State(vault)
    state.sign_in("operatorsecret", "7", 1)
    job = state.add_job("audit", "wardsecret", "actorsecret")
    state.update_job(job, stage="stagesecret", result={"x": "resultsecret"}, report="resultsecret")
    for _ in range(2):
        vault.backup(tmp_path / "backup.tar")
        stored = {"vault": _everything(vault), "backup": (tmp_path / "backup.tar").read_bytes()}
        found = {
            where: [word for word in WORDS if word.encode() in content.replace(b"datasets/", b"")]
            for where, content in stored.items()
        }
        assert found == {"vault": [], "backup": []}
        assert state.job(job).stage == "stagesecret"  # type: ignore[union-attr]
        assert state.jobs("audit", "wardsecret")[0].actor == "actorsecret"
        assert [one.recipient for one in vault.grants()] == ["clinicsecret"]
        assert len(surveys.collector.received("surveysecret", 1)[0]) == 1
        assert vault.verify().sound
        vault.rekey()


def test_the_hash_of_an_entry_confirms_no_guess(site: Site) -> None:
    """Its time and number are readable; its text has so little entropy that somebody could try all of them."""
    vault = site.create()
    [entry] = vault.log()
    guessed = replace(entry, salt="")
    assert guessed.digest(START) != entry.hash
    assert entry.digest(START) == entry.hash
    assert len({one.salt for one in (entry, vault.recipient("a"), vault.recipient("b"))}) == 3


def test_the_table_is_read_as_it_was_and_adding_it_again_changes_nothing(site: Site) -> None:
    vault = site.create()
    entry = vault.add(sf.Policy.loads(POLICY), _table())
    files = {path: path.read_bytes() for path in wards.vault_files(vault).rglob(f"*{SUFFIX}")}
    with vault.dataset("ward").source() as source:
        assert pa.Table.from_batches(source.batches()).equals(_table())
    assert vault.add(sf.Policy.loads(POLICY), _table()) == entry
    assert {path: path.read_bytes() for path in wards.vault_files(vault).rglob(f"*{SUFFIX}")} == files


def test_a_key_is_created_once(site: Site) -> None:
    keys = site.create().store.keys
    assert keys.find("uploads") is None
    with keys.ledger.writing(keys.master_keys()) as writing:
        key, is_new = keys.created_in(writing, "uploads")
        assert keys.created_in(writing, "uploads") == (key, False)
    assert is_new is True
    assert keys.find("uploads") == keys.get_or_create("uploads") == key
    assert keys.get_or_create("datasets/ward") not in (None, key)


def test_a_locked_vault_says_what_it_needs(site: Site) -> None:
    vault = site.create(secret="correct horse battery")
    vault.add(sf.Policy.loads(POLICY), _table())
    locked = sf.Vault.open(vault.location)
    for attempt in (locked.overview, locked.log, locked.recipients, lambda: locked.dataset("ward")):
        with pytest.raises(CustodyError, match="must be unlocked with its passphrase or key"):
            attempt()


def _set(vault: sf.Vault, scope: str, wrapped: str) -> None:
    with tables_of(vault.ledger.database) as connection:
        connection.execute(DATA_KEYS.update().where(DATA_KEYS.c.scope == scope).values(wrapped=wrapped))


def test_wrapped_keys_cannot_be_altered_or_exchanged(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    changed = wards.changed(_table(), "age", slice(0, 200), 9.0)
    vault.add(sf.Policy.loads(POLICY.replace('"ward"', '"other"')), changed, accept_overlap="a test of the keys")
    before = wards.wrapped_keys(vault)
    ward, other = vault.store.folder("ward"), vault.store.folder("other")
    assert set(before) == {f"{ward}@1", f"{ward}/1@1", f"{other}@1", f"{other}/1@1"}
    flipped = before[f"{ward}@1"][:-1] + ("0" if before[f"{ward}@1"][-1] != "0" else "1")
    for bad in (flipped, before[f"{other}@1"], before[f"{ward}/1@1"], "", "no key"):
        _set(vault, f"{ward}@1", bad)
        with pytest.raises(TamperedError, match="must be wrapped by this vault"):
            _ = vault.dataset("ward").scheme
        assert "the key of datasets/ward was altered" in vault.verify().problems
    vault.backup(tmp_path / "bad.tar")
    location, store = site.new()
    with pytest.raises(VaultError, match="the key of datasets/ward was altered"):
        sf.Vault.restore(tmp_path / "bad.tar", location, store=store, secret=site.secret)
    _set(vault, f"{ward}@1", before[f"{ward}@1"])
    assert vault.verify().sound


def test_what_was_erased_can_never_be_read_again(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    ward = vault.store.folder("ward")
    with vault.ledger.writing(vault.keys()) as writing:
        for scope in (f"{ward}@1", f"{ward}/1@1"):
            assert erase(writing, scope)
            assert not erase(writing, scope)
    with pytest.raises(CustodyError, match="can no longer be read by anybody"), vault.dataset("ward").source():
        pass
    assert any("the key that encrypts them is gone" in problem for problem in vault.verify().problems)
    vault.backup(tmp_path / "backup.tar")
    assert ward.encode() in (tmp_path / "backup.tar").read_bytes()
    assert b"sfumato_data_keys" not in (tmp_path / "backup.tar").read_bytes()


def test_a_table_is_added_again_after_its_data_keys_were_deleted(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(POLICY), _table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "1.parquet")
    with vault.ledger.writing(vault.keys()) as writing:
        for scope in scopes(writing):
            erase(writing, scope)
    assert "the files of datasets/ward can no longer be read: the key that encrypts them is gone" in [
        problem.replace("ward/1", "ward") for problem in vault.verify().problems
    ]
    for attempt in (
        lambda: vault.release("clinic", "ward", tmp_path / "2.parquet"),
        lambda: vault.update("ward", _table(100)),
        lambda: vault.grant("clinic", "ward", 0.1),
    ):
        with pytest.raises(CustodyError, match=r"can no longer be read by anybody.*sfumato add"):
            attempt()
    with pytest.raises(VaultError, match="must have the columns, roles and levels"):
        vault.add(sf.Policy.loads(POLICY.replace("0.5", "0.6")), _table())
    entry = vault.add(sf.Policy.loads(POLICY), _table())
    assert (entry.action, entry.body["version"]) == ("added", 2)
    assert vault.add(sf.Policy.loads(POLICY), _table()) == entry
    vault.release("clinic", "ward", tmp_path / "2.parquet")
    assert vault.update("ward", wards.changed(_table(), "age", slice(0, 7), 1.0)).body["version"] == 3
    assert vault.overview("ward")["version"] == 3
