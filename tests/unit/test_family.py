"""Plug-in families: mappings by file name, with hyphens and underscores alike, that survive a faulty plug-in."""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint

import pyarrow as pa
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.attacks import ATTACKS
from sfumato.audit.audit import audit
from sfumato.cli import main
from sfumato.engines import ENGINES
from sfumato.errors import UnknownMember
from sfumato.experiments import EXPERIMENTS
from sfumato.family import Family, FaultyPlugin
from sfumato.mechanisms import MECHANISMS
from sfumato.mining import MINERS
from sfumato.models import MODELS

BUILT_IN = set(ATTACKS)  # before any test adds to it
FAMILIES = [ATTACKS, ENGINES, EXPERIMENTS, MECHANISMS, MINERS, MODELS]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.package)
def test_a_family_is_a_mapping(family: Family) -> None:
    assert list(family) == family.names() == sorted(family)
    assert len(family) == len(list(family)) > 2
    assert all(name in family and name.replace("-", "_") in family for name in family)
    assert "nothing" not in family
    assert 3 not in family  # type: ignore[comparison-overlap]
    assert family.members() == dict(family.items())
    for name in family:
        assert family[name] is family[name.replace("-", "_")]


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownMember, match=r"^no attack is called 'lsse'; did you mean 'llse'\?$"):
        ATTACKS["lsse"]
    assert ATTACKS.get("lsse") is None


def _with_plugins(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> Family:
    monkeypatch.setattr("sfumato.family.entry_points", lambda group: [p for p in points if p.group == group])
    return Family("sfumato.attacks", "Attack")


def _point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "sfumato.attacks")


@pytest.mark.parametrize("name", ["my-attack", "my_attack"])
@pytest.mark.parametrize("value", ["sfumato.attacks.llse", "sfumato.attacks.llse:Llse"])
def test_a_plugin_is_found_by_both_spellings(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = _with_plugins(monkeypatch, _point(name, value))
    assert family["my-attack"] is family["my_attack"] is ATTACKS["llse"]
    assert "my-attack" in list(family)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nowhere.at_all", "ModuleNotFoundError"),
        ("sfumato.attacks.llse:Nothing", "AttributeError"),
        ("sfumato.keys.key", "must define one subclass of Attack"),
        ("sfumato.keys.key:Key", "must be a subclass of Attack"),
    ],
)
def test_a_faulty_plugin_is_named_and_left_out(value: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = _with_plugins(monkeypatch, _point("broken", value), _point("fine", "sfumato.attacks.llse"))
    with pytest.raises(UnknownMember, match=f"'broken'.*{reason}"):
        family["broken"]
    with pytest.warns(FaultyPlugin, match="'broken'"):
        members = family.members()
    assert set(members) == {*BUILT_IN, "fine"}


def test_commands_survive_a_faulty_plugin_in_every_family(
    monkeypatch: pytest.MonkeyPatch, table: pa.Table, copies: dict[str, pa.Table]
) -> None:
    for family in FAMILIES:
        monkeypatch.setitem(family._installed, "bro-ken", EntryPoint("bro-ken", "nowhere.at_all", family.package))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FaultyPlugin)
        listed = CliRunner().invoke(main, ["attack", "--list"])
        assert listed.exit_code == 0, listed.output
        assert "llse" in listed.output
        assert "bro-ken" not in listed.stdout
        sf.Policy.suggest(table.slice(0, 100))
        assert audit(table, copies, rows=300).soundness.alarms == ()
