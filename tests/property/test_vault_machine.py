"""Stateful property tests: random sequences of operations, compared with a simple model, for both databases."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests import wards
from tests.postgres import Server

import sfumato as sf
from sfumato.errors import GrantError, VaultError
from sfumato.ledger.reader import Query

RECIPIENTS = st.sampled_from(["clinic", "lab", "press"])
LEVELS = st.sampled_from(["internal", "partner", "public", 0.35])
SECRETS = [sf.Key.from_bytes(bytes([n]) * 32) for n in range(3)]
COLUMNS = st.sampled_from([None, ("age",), ("id", "income", "region")])

VERSIONS = [wards.table(60), wards.changed(wards.table(60), "age", slice(0, 5), 1.0), wards.table(60).slice(3)]


class VaultMachine(RuleBasedStateMachine):
    """A vault, and a model of it in a few dictionaries."""

    server: Server | None = None

    @initialize()
    def create(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sfumato-machine-"))
        self.now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.secret = SECRETS[0]
        self.location = str(self.folder / "vault") if self.server is None else self.server.database()
        store = None if self.server is None else str(self.folder / "store")
        sf.Vault.create(self.location, secret=self.secret, store=store, clock=lambda: self.now)
        self.version = 0  # the index of the table
        self.versions = 0
        self.recipients: dict[str, bool] = {}  # whether a recipient is enabled
        self.grants: dict[str, tuple[Any, ...] | None] = {}  # None: revoked
        self.given: dict[tuple[Any, ...], str] = {}  # request -> digest
        self.recorded: set[tuple[Any, ...]] = set()
        self.generation = 1
        self.count = 1

    def vault(self) -> sf.Vault:
        """The vault, opened again for each operation, as commands do."""
        return sf.Vault.open(self.location, secret=self.secret, clock=lambda: self.now)

    @contextmanager
    def refused(self, expected: bool) -> Iterator[None]:
        if expected:
            with pytest.raises((GrantError, VaultError)):
                yield
        else:
            yield

    @rule()
    def add(self) -> None:
        with self.refused(self.versions > 1):
            self.vault().add(wards.policy(), VERSIONS[0])
        if not self.versions:
            self.versions, self.version, self.count = 1, 0, self.count + 1

    @rule(version=st.integers(0, len(VERSIONS) - 1))
    def update(self, version: int) -> None:
        with self.refused(not self.versions):
            self.vault().update("ward", VERSIONS[version])
        if self.versions and version != self.version:
            self.version, self.versions, self.count = version, self.versions + 1, self.count + 1

    @rule(name=RECIPIENTS)
    def recipient(self, name: str) -> None:
        with self.refused(self.recipients.get(name) is False):
            self.vault().recipient(name)
        if name not in self.recipients:
            self.recipients[name] = True
            self.count += 1

    @rule(name=RECIPIENTS, enable=st.booleans())
    def disable(self, name: str, enable: bool) -> None:
        with self.refused(name not in self.recipients):
            self.vault().enable(name) if enable else self.vault().disable(name)
        if name in self.recipients and self.recipients[name] != enable:
            self.recipients[name] = enable
            self.count += 1

    @rule(name=RECIPIENTS, level=LEVELS, columns=COLUMNS, days=st.sampled_from([None, 1, 5]))
    def grant(self, name: str, level: str | float, columns: tuple[str, ...] | None, days: int | None) -> None:
        until = None if days is None else self.now + dt.timedelta(days=days)
        with self.refused(not self.recipients.get(name) or not self.versions):
            self.vault().grant(name, "ward", level, columns=columns, until=until)
        if self.recipients.get(name) and self.versions and self.grants.get(name) != (level, columns, until):
            self.grants[name] = (level, columns, until)
            self.count += 1

    @rule(name=RECIPIENTS)
    def revoke(self, name: str) -> None:
        with self.refused(name not in self.grants):
            self.vault().revoke(name, "ward")
        if self.grants.get(name) is not None:
            self.grants[name] = None
            self.count += 1

    @rule(name=RECIPIENTS)
    def release(self, name: str) -> None:
        grant = self.grants.get(name)
        allowed = bool(self.recipients.get(name)) and grant is not None
        allowed = allowed and (grant is None or grant[2] is None or self.now < grant[2])
        out = self.folder / "copy.parquet"
        with self.refused(not allowed):
            _, manifest = self.vault().release(name, "ward", out)
        if not allowed or grant is None:
            assert not out.exists()
            return
        request = (grant[0], grant[1], self.version, self.generation)
        assert manifest.digest == self.given.setdefault(request, manifest.digest)
        shown = sf.read_copy(out)
        assert shown.num_rows == VERSIONS[self.version].num_rows
        assert grant[1] is None or set(shown.column_names) == set(grant[1])
        if (name, request, self.versions) not in self.recorded:  # the same copy again is not recorded again
            self.recorded.add((name, request, self.versions))
            self.count += 1
        out.unlink()

    @rule(hours=st.sampled_from([1, 30]))
    def wait(self, hours: int) -> None:
        self.now += dt.timedelta(hours=hours)

    @rule(number=st.integers(0, 2))
    def relock(self, number: int) -> None:
        self.vault().relock(SECRETS[number])
        self.secret = SECRETS[number]
        self.count += 1

    @rule()
    def rekey(self) -> None:
        self.vault().rekey()
        self.generation += 1
        self.count += 2 if self.versions else 1  # the files are encrypted anew

    @rule()
    def backup_and_restore(self) -> None:
        vault = self.vault()
        before = vault.log(Query(last=1))[0].action
        vault.backup(self.folder / "backup.tar")
        self.count += before != "backed-up"
        again = sf.Vault.restore(self.folder / "backup.tar", self.folder / "again", secret=self.secret)
        assert again.log(Query())[:-1] == vault.log(Query())
        assert again.verify().sound
        shutil.rmtree(self.folder / "again")

    @invariant()
    def agrees(self) -> None:
        vault = self.vault()
        assert len(vault.log(Query())) == self.count
        assert {g.recipient: g.level for g in vault.grants()} == {
            name: grant[0] for name, grant in self.grants.items() if grant is not None
        }
        report = vault.verify()
        assert report.sound, report.problems
        if self.versions:
            with vault.dataset("ward").source() as source:
                assert pa.Table.from_batches(source.batches()).equals(VERSIONS[self.version])

    def teardown(self) -> None:
        shutil.rmtree(getattr(self, "folder", "nowhere"), ignore_errors=True)


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        ("sqlite", 4),
        pytest.param("sqlite", 12, marks=pytest.mark.slow),
        pytest.param("postgresql", 12, marks=pytest.mark.slow),
    ],
)
def test_vault_machine(kind: str, examples: int, request: pytest.FixtureRequest) -> None:
    server = None if kind == "sqlite" else request.getfixturevalue("postgres")
    machine = type("Machine", (VaultMachine,), {"server": server})
    health = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=health),
    )
