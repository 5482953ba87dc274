"""Runs one operation of a vault repeatedly, killed one step later each time.

`python -m tests.crash.zygote NAME EVERY [SERVER]`: at every EVERY-th step. Everything is imported and compiled once;
then each attempt is a forked child. A step is whatever can be seen to change something: opening a file to write,
renaming, removing, making a folder, fsync, a statement or a commit in the database, a call of the Parquet writer (of
many alike, the first three). After each kill the vault must open and be sound, a repetition (killed as well, at another
step) and a second one must finish the job, and everything must equal a run that was left alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import psycopg
from tests import wards
from tests.crash.steps import Steps

import sfumato as sf
from sfumato.errors import CustodyError, SfumatoError, VaultError
from sfumato.ledger.reader import Query
from sfumato.vault.grants import FINGERPRINT_OFFSET
from sfumato.vault.store import files_in

SECRET, OTHER = sf.Key.from_bytes(b"s" * 32), sf.Key.from_bytes(b"t" * 32)
MASTER = sf.Key.from_bytes(b"m" * 32)


def _clock() -> dt.datetime:
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@dataclass
class World:
    """A vault, or an empty location for one, and a folder for released copies."""

    folder: Path
    url: str | None

    @property
    def location(self) -> str:
        return self.url or str(self.folder / "vault")

    @property
    def store(self) -> str | None:
        return str(self.folder / "store") if self.url else None

    def open(self, secret: sf.Key = SECRET) -> sf.Vault:
        return sf.Vault.open(self.location, secret=secret, clock=_clock)

    def create(self) -> None:
        sf.Vault.create(self.location, store=self.store, secret=SECRET, key=MASTER, clock=_clock)


def _filled(world: World) -> None:
    world.create()
    vault = world.open()
    vault.add(wards.policy(), wards.table())
    for name in ("clinic", "lab"):
        vault.recipient(name)
        vault.grant(name, "ward", "partner")
    vault.release("lab", "ward", world.folder / "lab.parquet")


def _with_backup(world: World) -> None:
    other = World(world.folder / "old", None)
    other.folder.mkdir()
    _filled(other)
    other.open().backup(world.folder / "backup.tar")


def _create(world: World) -> None:
    try:
        world.create()
    except VaultError as error:
        if "already" not in str(error):
            raise


def _restore(world: World) -> None:
    try:
        sf.Vault.restore(world.folder / "backup.tar", world.location, store=world.store, secret=SECRET, clock=_clock)
    except VaultError as error:
        if "already" not in str(error):
            raise


def _relock(world: World) -> None:
    try:
        world.open(OTHER).verify(files=False)
    except SfumatoError:
        world.open().relock(OTHER)


def _rekey(world: World) -> None:
    vault = world.open()
    with vault.ledger.reading() as reading:
        done = reading.head().generation == 2
    if done:
        vault.encrypt()
    else:
        vault.rekey()


def _later() -> Any:
    return wards.changed(wards.table().slice(3), "age", slice(0, 9), 1.0)


def _release_again(world: World) -> None:
    world.open().release("clinic", "ward", world.folder / "clinic.csv")


Operation = tuple[Callable[[World], None], Callable[[World], object]]
"""What comes before, and what is killed."""

OPERATIONS: dict[str, Operation] = {
    "create": (lambda _: None, _create),
    "add": (World.create, lambda world: world.open().add(wards.policy(), wards.table())),
    "update": (_filled, lambda world: world.open().update("ward", _later())),
    "append": (_filled, lambda world: world.open().append("ward", wards.table(303).slice(wards.ROWS))),
    "recipient": (_filled, lambda world: world.open().recipient("third", note="x")),
    "disable": (_filled, lambda world: world.open().disable("lab")),
    "grant": (_filled, lambda world: world.open().grant("lab", "ward", 0.3, columns=["age"])),
    "revoke": (_filled, lambda world: world.open().revoke("lab", "ward")),
    "release": (
        _filled,
        lambda world: world.open().release("clinic", "ward", world.folder / "clinic.parquet") and None,
    ),
    "release-csv": (_filled, _release_again),
    "relock": (_filled, _relock),
    "rekey": (_filled, _rekey),
    "backup": (_filled, lambda world: world.open().backup(world.folder / "out.tar")),
    "restore": (_with_backup, _restore),
}


class Zygote:
    """One operation in one kind of database."""

    def __init__(self, name: str, server: str | None, folder: Path) -> None:
        self.before, self.act = OPERATIONS[name]
        self._server, self._folder, self._worlds = server, folder, 0
        self._template = self._world()
        self._check(self._in_child(lambda: self.before(self._template)))
        self.reference = self._state_after(self.fresh(), self.act)

    def _world(self) -> World:
        self._worlds += 1
        folder = self._folder / f"world{self._worlds}"
        folder.mkdir()
        return World(folder, self._database(None))

    def fresh(self) -> World:
        """A world in which everything that comes before has happened."""
        self._worlds += 1
        folder = self._folder / f"world{self._worlds}"
        shutil.copytree(self._template.folder, folder)
        world = World(folder, self._database(self._template.url))
        if world.url:
            self._check(self._in_child(lambda: _moved(world)))
        return world

    def forget(self, world: World) -> None:
        shutil.rmtree(world.folder)
        if world.url:
            with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {world.url.rpartition('/')[2]} WITH (FORCE)")

    def _database(self, template: str | None) -> str | None:
        if self._server is None:
            return None
        name = f"crash{os.getpid()}x{self._worlds}"
        with psycopg.connect(f"{self._server}/postgres", autocommit=True) as connection:
            like = "" if template is None else f" TEMPLATE {template.rpartition('/')[2]}"
            connection.execute(f"CREATE DATABASE {name}{like}")
        return f"{self._server}/{name}"

    def kill(self, world: World, step: int) -> bool:
        """Run the operation, killed at a step; whether it was."""

        def run() -> None:
            Steps(step).watch(world.folder)
            self.act(world)

        status = self._in_child(run)
        if status == -signal.SIGKILL:
            return True
        self._check(status)
        return False

    def fill(self, world: World, room: int) -> bool:
        """Run the operation where no file can grow beyond some bytes; whether that stopped it, as it should."""

        def run() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            try:
                self.act(world)
            except SfumatoError as error:
                os._exit(7 if "Traceback" not in str(error) else 1)

        status = self._in_child(run)
        if status == 7:
            return True
        self._check(status)
        return False

    def is_sound(self, world: World) -> None:
        """Check the invariants after a kill: an intact vault, or none yet, and no partial files."""
        self._check(self._in_child(lambda: _look(world)))
        complete = self.reference[1]
        partial = [path.name for path in _released(world) if path.read_bytes().hex() != complete[path.name]]
        assert partial == [], f"released, but incomplete: {partial}"

    def finish(self, world: World) -> None:
        """A repetition finishes the job, and everything is as if nothing had happened."""
        state = self._state_after(world, self.act)
        assert state == self.reference, (state, self.reference)
        assert list(world.folder.rglob("*.part")) == []

    def _state_after(self, world: World, act: Callable[[World], object]) -> Any:
        """The entries of the vault after an operation, without random values, and the bytes of its released copies."""
        out = world.folder / "said.json"

        def say() -> None:
            act(world)
            _look(world)
            entries = _unlocked(world).log(Query())
            found = [[e.action, e.kind, e.dataset, e.recipient, e.generation, _known(e.body)] for e in entries]
            out.write_text(json.dumps([found, {path.name: path.read_bytes().hex() for path in _released(world)}]))

        self._check(self._in_child(say))
        return json.loads(out.read_text())

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise AssertionError(f"a child ended with {status}; see above")

    @staticmethod
    def _in_child(work: Callable[[], object]) -> int:
        child = os.fork()
        if child == 0:
            _run(work)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _moved(world: World) -> None:
    """The copy of a database still names the store of the one that it was copied from."""
    with contextlib.suppress(VaultError):  # there may be no vault yet
        vault = world.open()
        with vault.ledger.writing(vault.keys(), check_seal=False) as writing:
            writing.set_store(str(world.store))


def _look(world: World) -> None:
    try:
        vault = _unlocked(world)
    except VaultError as error:
        if "there is no vault" not in str(error):
            raise
        return
    report = vault.verify()
    assert report.sound, report.problems


def _unlocked(world: World) -> sf.Vault:
    """The vault, opened with the secret that unlocks it now."""
    vault = world.open()
    try:
        vault.keys()
    except CustodyError:
        vault = world.open(OTHER)
    return vault


def _released(world: World) -> list[Path]:
    """The released copies, with their manifests."""
    return [path for path in sorted(world.folder.iterdir()) if path.name.startswith(("lab.", "clinic."))]


def _known(body: dict[str, Any]) -> dict[str, Any]:
    """The body of an entry without random values, and without the digests of files under random keys."""
    known = {name: value for name, value in body.items() if name not in ("key", FINGERPRINT_OFFSET)}
    files = files_in(body)
    return {n: "a file" if isinstance(v, dict) and v.get("name") in files else v for n, v in known.items()}


def _run(work: Callable[[], object]) -> NoReturn:
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _warm(folder: Path) -> None:
    """Compile and load everything once, before any fork."""
    world = World(folder / "warm", None)
    world.folder.mkdir()
    _filled(world)
    world.open().release("clinic", "ward", world.folder / "clinic.csv")
    world.open().update("ward", _later())


ROOMS = [0, 1, 100, 700, 4000, 4096, 9000, 12_288, 20_000, 32_768, 41_000, 60_000, 80_000]
"""The largest size of any file where a disk is full."""


def main(name: str, every: int, server: str | None) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _warm(folder)
        zygote = Zygote(name, server, folder)
        step, kills = 1 - every, 0
        while True:
            step += every
            world = zygote.fresh()
            if not zygote.kill(world, step):
                break
            kills += 1
            zygote.is_sound(world)
            if zygote.kill(world, 1 + step * 7 % 23):  # a repetition that is killed as well
                kills += 1
                zygote.is_sound(world)
            zygote.finish(world)
            zygote.forget(world)
        full = 0
        for room in ROOMS[::every]:
            world = zygote.fresh()
            full += zygote.fill(world, room)
            zygote.is_sound(world)
            zygote.finish(world)
            zygote.forget(world)
        print(json.dumps({"steps": step - every, "kills": kills, "full": full}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
