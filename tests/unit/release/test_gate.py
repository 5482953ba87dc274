"""The release gate: every path to the outside passes it, and none can be written that does not."""

from __future__ import annotations

import ast
import dataclasses
import json
import pickle
import sqlite3
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.attacks import ATTACKS
from sfumato.errors import GrantError, ReleaseError, TamperedError
from sfumato.release import gate
from sfumato.release.copying import CopyStream, copy_tables
from sfumato.release.gate import Clearance, Request, clear
from sfumato.tables.source import Source
from sfumato.vault.delivery import Delivery

KEY = sf.Key.from_bytes(bytes(range(32)))
PACKAGE = Path(sf.__file__).parent

POLICY = """
dataset = "gate"
[levels]
high = 0.9
low = 0.1
[columns]
id = "id"
x = "gaussian"
y = "gaussian"
[audit]
x = "error >= 0.5"
"""


@pytest.fixture
def table() -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table({"id": np.arange(3000), "x": draw.normal(size=3000), "y": draw.normal(size=3000)})


@pytest.fixture
def scheme(table: pa.Table) -> sf.TableScheme:
    return sf.Policy.loads(POLICY).fit(table)


def _in_memory(scheme: sf.TableScheme, table: pa.Table, level: str, folder: Path) -> None:
    scheme.release(table, level, KEY)


def _file(scheme: sf.TableScheme, table: pa.Table, level: str, folder: Path) -> None:
    sf.release_file(scheme, table, folder / "copy.parquet", level, KEY)


def _partitioned(scheme: sf.TableScheme, table: pa.Table, level: str, folder: Path) -> None:
    (folder / "table").mkdir()
    for i in range(3):
        pyarrow.parquet.write_table(table.slice(1000 * i, 1000), folder / "table" / f"{i}.parquet")
    sf.release_folder(scheme, folder / "table", folder / "copy", level, KEY)


def _vault(folder: Path, table: pa.Table, level: str) -> sf.Vault:
    vault = sf.Vault.create(folder / "vault", secret=KEY)
    vault.add(sf.Policy.loads(POLICY), table)
    vault.recipient("lab")
    vault.grant("lab", "gate", level)
    return vault


def _from_vault(scheme: sf.TableScheme, table: pa.Table, level: str, folder: Path) -> None:
    _vault(folder, table, level).release("lab", "gate", folder / "copy.parquet")


def _over_http(scheme: sf.TableScheme, table: pa.Table, level: str, folder: Path) -> None:
    list(Delivery.of(_vault(folder, table, level), "lab", "gate").chunks("parquet"))


PATHS: list[Callable[..., None]] = [_in_memory, _file, _partitioned, _from_vault, _over_http]


@pytest.mark.parametrize("path", PATHS)
def test_every_path_passes_the_gate(
    path: Callable[..., None], scheme: sf.TableScheme, table: pa.Table, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match=r"requires error >= 0\.5"):
        path(scheme, table, "high", tmp_path)
    assert not list(tmp_path.glob("copy*"))


@pytest.mark.parametrize("path", PATHS)
def test_what_is_within_the_limits_leaves(
    path: Callable[..., None], scheme: sf.TableScheme, table: pa.Table, tmp_path: Path
) -> None:
    path(scheme, table, "low", tmp_path)


@pytest.mark.parametrize("path", PATHS)
def test_a_gate_that_lets_all_pass_would_be_noticed(
    path: Callable[..., None],
    scheme: sf.TableScheme,
    table: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted fault: thresholds are not checked."""
    monkeypatch.setattr(gate, "_check_thresholds", lambda *_: None)
    path(scheme, table, "high", tmp_path)


def test_nothing_else_makes_a_clearance(scheme: sf.TableScheme, table: pa.Table) -> None:
    source = Source.of(table)
    with pytest.raises(ReleaseError, match="cleared by the release gate"):
        Clearance(object(), scheme, source, (sf.Level(0.9),), lambda: KEY, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Clearance(scheme, source, (sf.Level(0.9),), lambda: KEY, None)  # type: ignore[arg-type, call-arg]
    for writer in (lambda: copy_tables(scheme), lambda: CopyStream(scheme, "parquet")):  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            writer()


def test_a_clearance_cannot_be_raised_to_another_level(scheme: sf.TableScheme, table: pa.Table) -> None:
    cleared = clear(Request.of(scheme, Source.of(table), KEY), [sf.Level(0.1)], KEY)
    with pytest.raises(AttributeError, match="cannot be changed"):
        cleared.levels = (sf.Level(0.9),)
    with pytest.raises(TypeError):
        dataclasses.replace(cleared, levels=(sf.Level(0.9),))  # type: ignore[type-var]
    assert KEY.expose().hex() not in repr(cleared)


def test_a_clearance_for_no_level_allows_none(scheme: sf.TableScheme, table: pa.Table) -> None:
    cleared = clear(Request.of(scheme, Source.of(table), KEY), [], KEY)
    assert cleared.levels == ()
    with pytest.raises(ValueError, match="not enough values"):
        _ = cleared.level


def test_a_recorded_copy_is_not_written_without_a_record(table: pa.Table, tmp_path: Path) -> None:
    vault = _vault(tmp_path, table, "low")
    delivery = Delivery.of(vault, "lab", "gate")
    cleared = delivery.request.clear(Source.of(table), delivery._issuer())
    with pytest.raises(ReleaseError, match="recorded and signed"):
        copy_tables(cleared)


def test_a_broken_attack_holds_every_copy_back(
    scheme: sf.TableScheme, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A threshold is tested by every installed attack; one that cannot be loaded is not skipped."""
    broken = EntryPoint("broken", "nowhere.at_all", "sfumato.attacks")
    monkeypatch.setitem(vars(ATTACKS), "_installed", {"broken": broken})
    with pytest.raises(ReleaseError, match=r"could not be (tested|evaluated).*'broken'"):
        scheme.release(table, "low", KEY)


def test_a_clearance_reaches_workers(scheme: sf.TableScheme, table: pa.Table) -> None:
    cleared = clear(Request.of(scheme, Source.of(table), KEY), [sf.Level(0.1)], KEY, secret=_secret)
    sent: Clearance[None] = pickle.loads(pickle.dumps(cleared.for_workers()))  # noqa: S301
    assert sent.level == cleared.level
    assert sent.table is None
    assert sent.secret() == KEY


def _secret() -> sf.Key:
    return KEY


def test_a_revoked_grant_stops_a_copy_that_is_being_sent(table: pa.Table, tmp_path: Path) -> None:
    vault = _vault(tmp_path, table, "low")
    delivery = Delivery.of(vault, "lab", "gate")
    vault.revoke("lab", "gate")
    with pytest.raises(GrantError):
        list(delivery.chunks("parquet"))


@pytest.mark.parametrize("path", ["file", "http"])
def test_a_forged_entry_does_not_open_the_gate(path: str, table: pa.Table, tmp_path: Path) -> None:
    """Somebody who can write to the database, without the key, records that the copy was released before."""
    vault = _vault(tmp_path, table, "high")
    body = {"version": 1, "generation": 1, "level": "high", "fidelity": 0.9, "columns": None, "where": None}
    body |= {"rows": 3000, "digest": "", "exposure": {"draws": {"1": 3000}, "error": 0.1, "alone": 0.1}}
    with sqlite3.connect(tmp_path / "vault" / "ledger.sqlite") as database:
        database.row_factory = sqlite3.Row
        last = dict(database.execute("SELECT * FROM sfumato_entries ORDER BY number DESC LIMIT 1").fetchone())
        forged = last | {"number": last["number"] + 1, "action": "began", "kind": "release", "body": json.dumps(body)}
        slots = ", ".join("?" * len(forged))
        database.execute(f"INSERT INTO sfumato_entries ({', '.join(forged)}) VALUES ({slots})", list(forged.values()))  # noqa: S608
    database.close()
    ways: dict[str, Callable[[], object]] = {
        "file": lambda: vault.release("lab", "gate", tmp_path / "copy.parquet"),
        "http": lambda: list(Delivery.of(vault, "lab", "gate").chunks("parquet")),
    }
    with pytest.raises(TamperedError, match="altered"):
        ways[path]()
    assert not list(tmp_path.glob("copy*"))


USERS = {
    "Clearance": {"release/gate.py"},
    "_Stamp": {"release/gate.py"},
    "encoder": {
        "release/encoders/__init__.py",
        "release/copying.py",
        "client/downloads.py",
    },  # the latter converts a fetched copy
    "perturb_table": {"release/copying.py", "release/perturbation.py"},
    "perturb_rows": {"release/perturbation.py", "release/spark.py", "release/stream.py"},
    "single_record": {"release/single_record.py"},
    "SingleRecord.of": {"release/single_record.py", "release/stream.py"},
    "SingleRecord.remembered": {"release/perturbation.py"},
}
"""Who may call what makes copies."""


def _calls(file: Path) -> set[str]:
    found: Any = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    names = {node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in found}
    return names | {ast.unparse(node) for node in found if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("name", USERS)
def test_copies_are_made_behind_the_gate_alone(name: str) -> None:
    users = {f.relative_to(PACKAGE).as_posix() for f in PACKAGE.rglob("*.py") if name in _calls(f)}
    assert users <= USERS[name]
