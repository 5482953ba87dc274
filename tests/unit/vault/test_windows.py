"""Windows of a stream: appended and released once, whatever is repeated; each in the ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.errors import SfumatoError, SourceError, VaultError
from sfumato.release.files import read_copy
from sfumato.vault.windows import Windows

POLICY = """
dataset = "t"
[levels]
a = 0.6
[columns]
id = "id"
x = "gaussian"
"""

KEY = sf.Key.from_bytes(bytes(range(32)))


def _rows(start: int, rows: int = 200) -> pa.Table:
    return pa.table({"id": np.arange(start, start + rows), "x": np.random.default_rng(start).normal(size=rows)})


def _vault(folder: Path) -> sf.Vault:
    folder.mkdir()
    vault = sf.Vault.create(folder / "vault", key=KEY)
    vault.add(sf.Policy.loads(POLICY), _rows(0))
    vault.recipient("lab")
    vault.grant("lab", "t", "a")
    return vault


def _windows(folder: Path, vault: sf.Vault) -> Windows:
    return Windows(vault, "t", {"lab": folder / "w{window}.parquet"})


def _copies(folder: Path) -> list[pa.Table]:
    return [read_copy(path).replace_schema_metadata(None) for path in sorted(folder.glob("w*.parquet"))]


def test_windows_are_processed_once(tmp_path: Path) -> None:
    """A repeated window, in another order of rows, changes nothing; all together are the copy of the whole."""
    vault = _vault(tmp_path / "a")
    windows = _windows(tmp_path / "a", vault)
    for number in range(4):
        windows.add(_rows(1000 + 300 * number), number)
        windows.add(_rows(1000 + 300 * number).take(np.arange(200)[::-1]), number)
    windows.add(_rows(0, 0), 4)
    assert vault.dataset("t").version == 5
    assert [one.body["window"] for one in vault.log() if one.action == "streamed"] == [0, 1, 2, 3, 4]
    assert len([one for one in vault.log() if one.action == "released"]) == 4
    whole = read_copy(vault.release("lab", "t", tmp_path / "whole.parquet")[0]).replace_schema_metadata(None)
    together = pa.concat_tables(_copies(tmp_path / "a")).sort_by("id")
    assert together.equals(whole.filter(pc.greater_equal(whole["id"], 1000)).sort_by("id"))
    assert vault.verify().sound


@pytest.mark.parametrize("at", ["append", "release", "writing"])
def test_a_failure_at_any_step_is_made_good_by_a_repetition(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after each step: the copies and the versions are those of an uninterrupted run."""
    expected = _vault(tmp_path / "expected")
    for number in range(3):
        _windows(tmp_path / "expected", expected).add(_rows(1000 + 300 * number), number)
    vault = _vault(tmp_path / "killed")
    windows = _windows(tmp_path / "killed", vault)
    windows.add(_rows(1000), 0)
    owner = vault.ledger if at == "writing" else vault
    real, calls = getattr(owner, at), []

    def killed(*arguments: object, **options: object) -> object:
        made = None if at == "writing" else real(*arguments, **options)
        calls.append(at)
        raise KeyboardInterrupt(made)

    with monkeypatch.context() as patch:
        patch.setattr(owner, at, killed)
        with pytest.raises(KeyboardInterrupt):
            windows.add(_rows(1300), 1)
    assert calls
    _windows(tmp_path / "killed", vault).add(_rows(1300), 1)
    windows.add(_rows(1600), 2)
    assert vault.dataset("t").version == expected.dataset("t").version == 4
    pairs = zip(_copies(tmp_path / "killed"), _copies(tmp_path / "expected"), strict=True)
    assert all(a.equals(b) for a, b in pairs)
    assert len([one for one in vault.log() if one.action == "streamed"]) == 3


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    vault = _vault(tmp_path / "a")
    with pytest.raises(VaultError, match="an output of its own"):
        Windows(vault, "t", {"lab": "one.parquet"})
    with pytest.raises(VaultError, match="an output of its own"):
        Windows(vault, "t", {"lab": "{window}-{dataset}.parquet"})
    vault.add(sf.Policy.loads('dataset = "n"\n[levels]\na = 0.5\n[columns]\nx = "gaussian"\nid = "drop"'), _rows(7000))
    with pytest.raises(VaultError, match="with ids"):
        Windows(vault, "n", {})
    with pytest.raises(SfumatoError):  # records of an earlier window under another number
        _windows(tmp_path / "a", vault).add(_rows(0), 0)


def test_a_window_with_other_rows_is_not_taken_for_a_repetition(tmp_path: Path) -> None:
    """A stream that begins anew counts from 0 again: nothing of it may be lost without a word."""
    vault = _vault(tmp_path / "a")
    windows = _windows(tmp_path / "a", vault)
    windows.add(_rows(1000), 0)
    windows.add(_rows(1300), 1)
    with pytest.raises(VaultError, match="offset=2"):
        windows.add(_rows(1600), 0)
    Windows(vault, "t", {"lab": tmp_path / "a" / "w{window}.parquet"}, offset=2).add(_rows(1600), 0)
    assert vault.dataset("t").rows == 800
    assert (tmp_path / "a" / "w2.parquet").exists()


def test_errors_show_no_value(tmp_path: Path) -> None:
    windows = _windows(tmp_path / "a", _vault(tmp_path / "a"))
    with pytest.raises(SourceError, match="must have the types") as error:
        windows.add(pa.table({"id": ["secretname"], "x": [1.0]}), 0)
    assert "secretname" not in str(error.value)
    with pytest.raises(SourceError, match="the column 'x'"):
        windows.add(pa.table({"id": [1]}), 0)
