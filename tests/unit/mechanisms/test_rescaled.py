"""Rescaled Gaussian copies: means and covariances of the original as they stand, and everything else as before."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.messages import verdict
from sfumato.errors import MiningError, PolicyError, SourceError
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.mining import MINERS, ask
from sfumato.mining.report.profile import profile
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 12_000
NUMBERS = ["size", "heavy", "whole"]
LEVELS = ("near", "middle", "far")
POLICY = """
dataset = "d"
[levels]
near = 0.8
middle = 0.5
far = 0.1
[gaussian]
rescale = true
[columns]
id = "id"
size = "gaussian"
heavy = "gaussian"
whole = { role = "gaussian", integer = true }
day = "gaussian"
"""


@cache
def _table() -> pa.Table:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(ROWS, 4)) @ np.array([[1, 0.5, 0.2, 0.1], [0, 1, 0.3, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    return pa.table(
        {
            "id": np.arange(ROWS),
            "size": 100 + 15 * x[:, 0],
            "heavy": np.exp(x[:, 1]),
            "whole": pa.array(np.round(50 + 20 * x[:, 2]).astype(np.int64), mask=rng.random(ROWS) < 0.1),
            "day": pa.array((20_000 + 100 * x[:, 3]).astype(np.int32)).cast(pa.date32()),
        }
    )


def _copies(policy: str = POLICY) -> dict[str, pa.Table]:
    scheme = sf.Policy.loads(policy).fit(_table())
    return {level: scheme.release(_table(), level, KEY) for level in LEVELS}


def test_means_and_covariances_are_those_of_the_original_as_they_stand() -> None:
    original = _table().to_pandas()
    plain = _copies(POLICY.replace("rescale = true", ""))
    for level, copy in _copies().items():
        assert copy.schema.field("whole").type == pa.int64()
        assert copy.schema.field("day").type == pa.date32()
        found = copy.to_pandas()
        for name in NUMBERS:
            assert abs(found[name].mean() - original[name].mean()) < 0.03 * original[name].std()
            assert found[name].std() == pytest.approx(original[name].std(), rel=0.05)
        assert np.abs(found[NUMBERS].corr() - original[NUMBERS].corr()).to_numpy().max() < 0.04
        wide = plain[level].to_pandas()["size"].std()
        assert wide == pytest.approx(original["size"].std() / sf.Manifest.of(copy).fidelity ** 0.5, rel=0.05)


def test_a_sound_audit_and_a_planted_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = audit(_table(), _copies(), attacks=["llse"])
    assert found.soundness.sound
    assert not found.coarsened_columns
    risks = {risk.column: risk for risk in found.column_risks}
    assert risks["size"].all_copies == pytest.approx(0.2, abs=0.02)
    before = GaussianScheme._rescaled

    def too_close(self: GaussianScheme, copy: np.ndarray, fidelity: float, kinds: list[pa.DataType]) -> None:
        before(self, copy, 1.1 * fidelity, kinds)

    monkeypatch.setattr(GaussianScheme, "_rescaled", too_close)
    assert not audit(_table(), _copies(), attacks=["llse"]).soundness.sound


def test_estimates_are_those_from_a_copy_that_is_not_rescaled() -> None:
    """The noise of both is drawn anew, since their schemes differ; the estimates agree within their intervals."""
    copy = _copies()["middle"]
    moments = MINERS["moments"]().fit(copy)
    original = _table().to_pandas()
    for i, name in enumerate(moments.columns_[:3]):
        assert moments.mean_interval_[i][0] < original[name].mean() < moments.mean_interval_[i][1]
        low, high = moments.covariance_interval_[i, i]
        assert low < original[name].var() < high
    [row] = ask(copy, "select count(*) as n from copy where size < 95").to_pylist()
    assert row["n_low"] < (original["size"] < 95).sum() < row["n_high"]
    [row] = ask(copy, "select sum(whole) as n from copy").to_pylist()
    assert row["n_low"] < original["whole"].sum() < row["n_high"]


def test_the_manifest_says_so_and_a_part_of_the_columns_is_restored_alike() -> None:
    copy = _copies()["far"]
    [model] = of_type(sf.Manifest.of(copy).models, GaussianNoise)
    assert model.shrinkage == pytest.approx(0.1**0.5)
    assert any("rescaled" in promise for promise in model.promises(sf.Level(0.1)))
    assert "drawn to the mean" in model.describe("size", lambda value: f"{value:.3g}")
    narrow = model.narrowed(["whole"])
    assert narrow.centre == (model.centre[model.columns.index("whole")],)


def test_a_leak_is_traced(tmp_path: Path) -> None:
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(sf.Policy.loads(POLICY), _table(), traced=True)
    for i in range(4):
        vault.recipient(f"r{i}")
        vault.grant(f"r{i}", "d", "middle")
        vault.release(f"r{i}", "d")
    copy = sf.read_copy(Path(vault.location) / "copies/d/r2.v1.parquet").drop_columns(["id"])
    found = vault.trace("d", copy.take(np.random.default_rng(1).permutation(ROWS)[:6000]))
    assert [suspect.recipients for suspect in found.accused] == [("r2",)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rescale = true", 'rescale = "yes"'), "rescale"),
        (("integer = true", "scale = 2"), "without `scale` or `spread`, as 'whole' has"),
        (('size = "gaussian"', 'size = { role = "gaussian", spread = 3 }'), "as 'size' has"),
        (('size = "gaussian"', 'size = { role = "gaussian", range = [3, 1] }'), "`range` of column 'size' must be"),
        (('day = "gaussian"', 'day = { role = "gaussian", range = [3, 9] }'), "`range` of column 'day' must be of its"),
    ],
)
def test_wrong_settings(change: tuple[str, str], message: str) -> None:
    with pytest.raises((PolicyError, SourceError), match=message):
        sf.Policy.loads(POLICY.replace(*change)).fit(_table())


RANGED = POLICY.replace('size = "gaussian"', 'size = { role = "gaussian", range = [70, 130] }')


def test_a_column_within_a_range(tmp_path: Path) -> None:
    """Values beyond are moved to its ends; the audit tests the records whose noise cannot reach them."""
    copies = _copies(RANGED)
    for copy in copies.values():
        values = copy["size"].to_numpy()
        assert (values.min(), values.max()) == (70, 130)
    found = audit(_table(), copies, attacks=["llse"])
    assert found.soundness.sound
    assert found.coarsened_columns == ("size",)
    assert "the level of the best of them allows" in verdict(found)
    stored = tmp_path / "copy.parquet"
    sf.release_file(sf.Policy.loads(RANGED).fit(_table()), _table(), stored, "near", KEY)
    [model] = of_type(sf.Manifest.of(stored).models, GaussianNoise)
    assert model.coarsened_columns == ("size",)
    assert model.narrowed(["whole"]).range == ()
    assert MINERS["moments"]().fit(stored).columns_ == ["heavy", "whole", "day"]
    for question in ("select avg(size) from copy", "select count(*) from copy where size < 90"):
        with pytest.raises(MiningError, match="shown within a range"):
            ask(stored, question)
    assert profile(stored, densities=False).numbers


def test_less_noise_within_a_range_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    wide = RANGED.replace("[70, 130]", "[0, 200]")
    assert audit(table, _copies(wide), attacks=["llse"]).soundness.sound
    before = GaussianScheme._rescaled
    monkeypatch.setattr(GaussianScheme, "_rescaled", lambda self, copy, f, kinds: before(self, copy, 1.1 * f, kinds))
    assert not audit(table, _copies(wide), attacks=["llse"]).soundness.sound
