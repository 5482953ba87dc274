"""Scheduled releases and retention: what is due is done once, also after a kill; what is kept no longer is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import VaultError
from sfumato.release.manifest import Manifest
from sfumato.vault import schedules
from sfumato.vault.schedules import retain, run_due, schedule, unschedule

POLICY = """
dataset = "t"
[levels]
a = 0.6
[columns]
id = "id"
x = "gaussian"
"""

MONDAY = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _rows(start: int, rows: int = 200) -> pa.Table:
    return pa.table({"id": np.arange(start, start + rows), "x": np.random.default_rng(start).normal(size=rows)})


class _Site:
    """A vault with a clock that a test turns."""

    def __init__(self, folder: Path) -> None:
        self.now, self.folder = MONDAY, folder
        self.vault = sf.Vault.create(folder / "vault", clock=lambda: self.now)
        self.vault.add(sf.Policy.loads(POLICY), _rows(0))
        self.vault.recipient("lab")
        self.vault.grant("lab", "t", "a")

    @property
    def out(self) -> str:
        return f"{self.folder}/{{dataset}}-{{recipient}}-v{{version}}.parquet"

    def run(self) -> list[str]:
        return [f"{one.failed} {one.text}" for one in run_due(self.vault)]

    def released(self) -> list[tuple[int, int]]:
        """The versions and the numbers of rows of the files."""
        found = [Manifest.of(path) for path in sorted(self.folder.glob("t-lab-v*.parquet"))]
        return [(manifest.version, manifest.rows) for manifest in found]


@pytest.fixture
def site(tmp_path: Path) -> _Site:
    """A vault with one version."""
    return _Site(tmp_path)


def test_each_version_is_released_once(site: _Site) -> None:
    schedule(site.vault, "lab", "t", "version", site.out)
    assert len(site.run()) == 1
    assert site.run() == []
    site.vault.append("t", _rows(500))
    assert len(site.run()) == 1
    assert site.released() == [(1, 200), (2, 400)]
    assert [entry.action for entry in site.vault.log() if entry.kind == "schedule"] == ["scheduled", "ran", "ran"]
    unschedule(site.vault, "lab", "t")
    site.vault.append("t", _rows(900))
    assert site.run() == []
    with pytest.raises(VaultError, match="no schedule"):
        unschedule(site.vault, "lab", "t")


@pytest.mark.parametrize(("every", "days"), [("day", 1), ("week", 7), ("month", 30)])
def test_at_most_one_is_released_in_a_period(site: _Site, every: str, days: int) -> None:
    schedule(site.vault, "lab", "t", every, site.out)
    assert len(site.run()) == 1
    site.vault.append("t", _rows(500))
    assert site.run() == []  # in the same period
    site.now += timedelta(days=days)
    assert len(site.run()) == 1
    site.now += timedelta(days=days)
    assert site.run() == []  # nothing is new
    assert site.released() == [(1, 200), (2, 400)]


def test_new_rows_alone_and_all_after_an_update(site: _Site) -> None:
    """Rows since the last release; after an update, which may have changed any row, the whole copy."""
    schedule(site.vault, "lab", "t", "version", site.out, new_rows=True)
    site.run()
    site.vault.append("t", _rows(500, 30))
    site.run()
    assert site.released() == [(1, 200), (2, 30)]
    site.vault.update("t", pa.concat_tables([_rows(0), _rows(500, 40)]))
    site.run()
    assert site.released()[-1] == (3, 240)


def test_a_kill_between_a_release_and_its_record_changes_nothing(site: _Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run writes the same bytes, and records them once."""
    schedule(site.vault, "lab", "t", "version", site.out)
    real = schedules._released

    def killed(*arguments: object) -> object:
        real(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(schedules, "_released", killed)
    with pytest.raises(KeyboardInterrupt):
        run_due(site.vault)
    first = (site.folder / "t-lab-v1.parquet").read_bytes()
    monkeypatch.setattr(schedules, "_released", real)
    assert len(site.run()) == 1
    assert (site.folder / "t-lab-v1.parquet").read_bytes() == first
    assert [entry.action for entry in site.vault.log() if entry.kind == "release"] == ["released"]


def test_what_fails_is_said_and_the_rest_is_done(site: _Site) -> None:
    site.vault.recipient("early")
    site.vault.grant("early", "t", "a")
    schedule(site.vault, "early", "t", "version", f"{site.folder}/no/such/folder/x.parquet")
    schedule(site.vault, "lab", "t", "version", site.out)
    outcomes = site.run()
    assert [one.split()[0] for one in outcomes] == ["True", "False"]
    assert site.released() == [(1, 200)]
    site.vault.revoke("early", "t")
    assert "revoked" in site.run()[0]
    site.vault.erase_recipient("early")
    assert site.run() == []


@pytest.mark.parametrize(
    ("every", "to", "new_rows", "message"),
    [
        ("year", "x.parquet", False, "every version, day"),
        ("day", "{who}.parquet", False, "may have"),
        ("day", "{", False, "may have"),
        ("day", "{dataset.__class__}.parquet", False, "may have"),
        ("day", "{date:%Y}.parquet", False, "may have"),
        ("day", "{version!r}.parquet", False, "may have"),
        ("day", "{version:>99999999}.parquet", False, "may have"),
        ("day", "x.parquet", True, "of their own"),
        ("day", "postgresql://me:secret@host/db?table=t", False, "must not hold a password"),
    ],
)
def test_what_is_wrong_is_said(site: _Site, every: str, to: str, new_rows: bool, message: str) -> None:
    with pytest.raises(VaultError, match=message):
        schedule(site.vault, "lab", "t", every, to, new_rows=new_rows)


def _versions(site: _Site) -> list[int]:
    """The versions whose content the vault can still read."""
    held = site.vault.overview()["held"]
    return [int(one["still held"].split()[-1]) for one in held if one["still held"].startswith("t version")]


def _updated(site: _Site, times: int) -> None:
    for number in range(times):
        site.now += timedelta(days=10)
        site.vault.update("t", _rows(0, 201 + number))


def test_versions_are_kept_by_number_or_by_age(site: _Site) -> None:
    _updated(site, 4)
    assert _versions(site) == [1, 2, 3, 4, 5]
    assert site.run() == []
    retain(site.vault, "t", versions=3)
    assert len(site.run()) == 2
    assert _versions(site) == [3, 4, 5]
    assert site.run() == []
    retain(site.vault, "t", days=15)  # 3 was replaced 10 days ago, 4 now
    site.now += timedelta(days=8)
    assert len(site.run()) == 1
    assert _versions(site) == [4, 5]
    retain(site.vault, "t", forever=True)
    site.now += timedelta(days=1000)
    assert site.run() == []
    assert site.vault.verify().sound


def test_what_later_versions_are_made_of_is_kept(site: _Site) -> None:
    """An appended version needs the files of the one before, and so does one that is kept itself."""
    site.vault.append("t", _rows(500))
    retain(site.vault, "t", versions=1)
    assert site.run() == []
    with site.vault.dataset("t").source() as source:
        assert source.rows == 400
    site.vault.update("t", _rows(0, 390), replace=True)
    retain(site.vault, "t", versions=2)
    assert site.run() == []  # version 2, which is kept, is made of version 1
    retain(site.vault, "t", versions=1)
    assert len(site.run()) == 2
    assert _versions(site) == [3]
    assert site.vault.verify().sound


def test_the_access_log_is_kept_for_so_many_days(site: _Site) -> None:
    site.vault.release("lab", "t", site.folder / "a.parquet")
    site.now += timedelta(days=40)
    site.vault.release("lab", "t", site.folder / "b.parquet")
    assert len(site.vault.accesses()) == 2
    retain(site.vault, days=30)
    assert len(site.run()) == 1
    assert len(site.vault.accesses()) == 1
    assert site.run() == []
    for wrong in ({}, {"versions": 2}, {"days": 0}, {"days": 10**9}, {"days": 3, "forever": True}):
        with pytest.raises(VaultError):
            retain(site.vault, **wrong)  # type: ignore[arg-type]


def test_on_the_command_line(tmp_path: Path) -> None:
    site = _Site(tmp_path)
    vault = ("--vault", str(tmp_path / "vault"))

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, ["schedule", *arguments, *vault], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    assert "Nothing is due" in run("run")
    assert "every month" in run("release", "lab", "t", "--every", "month", "--to", site.out)
    assert "the last 3 versions" in run("keep", "t", "--versions", "3")
    assert "not yet" in run("list")
    assert "200 rows of version 1" in run("run")
    assert "version 1 on" in run("list")
    assert "Nothing is due" in run("run")
    run("release", "lab", "t", "--every", "version", "--to", str(tmp_path / "no/x.parquet"))
    site.vault.append("t", _rows(500))
    assert "FAILED t for lab" in run("run", code=1)
    assert "Ended the schedule" in run("remove", "lab", "t")


def test_an_unexpected_error_stops_no_other_schedule(site: _Site) -> None:
    (site.folder / "file").write_text("x")
    site.vault.recipient("early")
    site.vault.grant("early", "t", "a")
    schedule(site.vault, "early", "t", "version", f"file://{site.folder}/file/{{version}}.parquet")
    schedule(site.vault, "lab", "t", "version", site.out)
    assert [one.split()[0] for one in site.run()] == ["True", "False"]
    assert site.released() == [(1, 200)]


def test_a_schedule_that_is_removed_while_it_runs_stays_removed(site: _Site, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule(site.vault, "lab", "t", "version", site.out)
    real = schedules._released

    def removed(*arguments: object) -> object:
        unschedule(site.vault, "lab", "t")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(schedules, "_released", removed)
    site.run()
    assert [entry.action for entry in site.vault.log() if entry.kind == "schedule"] == ["scheduled", "unscheduled"]
