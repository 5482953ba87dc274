"""The order of a copy's rows: secret unless the policy keeps it, so that averaging neighbours is of no use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import PolicyError
from sfumato.release.partitioned import release_folder
from sfumato.tables.formats import BATCH
from sfumato.tables.row_order import KEEP, SECRET, WITHIN_FILES

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = BATCH + 5000


def _policy(order: str = "") -> sf.Policy:
    return sf.Policy.loads(f'dataset = "d"\n{order}[levels]\na = 0.2\n[columns]\nx = "gaussian"\nc = "uniform"\n')


@pytest.fixture(scope="module")
def chronological() -> pa.Table:
    """A slow wave and a category that lasts: neighbours are alike."""
    time = np.arange(ROWS)
    return pa.table({"x": np.sin(time / 4000), "c": np.array(["a", "b", "c"])[time // 3000 % 3]})


def _left_after_smoothing(copy: pa.Table, table: pa.Table) -> float:
    """The share of the variance of `x` that a moving average over 201 rows leaves."""
    truth = table.column("x").to_numpy()
    smooth = np.convolve(copy.column("x").to_numpy(), np.full(201, 1 / 201), "same")
    slope, offset = np.polyfit(smooth, truth, 1)
    return float(np.var(truth - slope * smooth - offset) / truth.var())


def test_averaging_neighbours_is_of_no_use(chronological: pa.Table) -> None:
    scheme = _policy().fit(chronological)
    copy = scheme.release(chronological, "a", KEY)
    assert sf.Manifest.of(copy).order == SECRET
    assert _left_after_smoothing(copy, chronological) > 0.99
    arranged = scheme.arranged(chronological, KEY)
    assert np.corrcoef(arranged.column("x").to_numpy(), copy.column("x").to_numpy())[0, 1] > 0.4
    kept = _policy('order = "keep"\n').fit(chronological).release(chronological, "a", KEY)  # the planted fault
    assert _left_after_smoothing(kept, chronological) < 0.05


def test_a_policy_says_so_if_the_order_is_kept(chronological: pa.Table, tmp_path: Path) -> None:
    policy = _policy('order = "keep"\n')
    assert sf.Policy.loads(policy.dumps()) == policy != _policy()
    scheme = policy.fit(chronological)
    manifest = sf.Manifest.of(scheme.release(chronological, "a", KEY))
    assert manifest.order == KEEP
    assert any("in the order of the table" in limit for limit in manifest.limits)
    scheme.save(tmp_path / "s.json")
    assert sf.TableScheme.load(tmp_path / "s.json").order == KEEP
    with pytest.raises(PolicyError, match="`order` must be 'secret' or 'keep', got 'random'"):
        _policy('order = "random"\n')


def test_columns_by_which_rows_can_be_sorted_are_named(chronological: pa.Table) -> None:
    numbered = chronological.append_column("visit", pa.array(range(ROWS)))
    policy = sf.Policy.loads(
        'dataset = "d"\n[levels]\na = 0.2\n[columns]\nvisit = "id"\nx = "gaussian"\nc = "uniform"\n'
    )
    limits = sf.Manifest.of(policy.fit(numbered).release(numbered, "a", KEY)).limits
    assert any("can still be sorted by unperturbed columns: visit" in limit for limit in limits)


def test_every_way_to_a_copy_has_the_same_secret_order(chronological: pa.Table, tmp_path: Path) -> None:
    scheme = _policy().fit(chronological)
    in_memory = scheme.release(chronological, "a", KEY)
    sf.release_file(scheme, chronological, tmp_path / "copy.parquet", "a", KEY)
    assert pq.read_table(tmp_path / "copy.parquet").column("x").equals(in_memory.column("x"))
    stranger = scheme.release(chronological, "a", sf.Key.generate())
    assert not stranger.column("c").slice(0, 100).equals(in_memory.column("c").slice(0, 100))
    (tmp_path / "lake").mkdir()
    half = ROWS // 2
    numbered = chronological.append_column("id", pa.array(range(ROWS)))
    for number in range(2):
        pq.write_table(numbered.slice(number * half, half), tmp_path / "lake" / f"{number}.parquet")
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.2\n[columns]\nid = "id"\nx = "gaussian"\nc = "uniform"\n')
    manifest = release_folder(policy.fit(tmp_path / "lake"), tmp_path / "lake", tmp_path / "copy", "a", KEY)
    assert manifest.order == WITHIN_FILES
    ids = pq.read_table(tmp_path / "copy" / "0.parquet").column("id").to_numpy()
    assert sorted(ids) == list(range(half))
    assert abs(np.corrcoef(ids, np.arange(half))[0, 1]) < 6 / np.sqrt(half)
