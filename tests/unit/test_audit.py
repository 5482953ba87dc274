"""Audits, thresholds, calibration, forecasts and outliers."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import wards

import sfumato as sf
from sfumato.attacks import ATTACKS
from sfumato.audit import prediction
from sfumato.audit.audit import audit
from sfumato.audit.calibration import calibrate
from sfumato.audit.exposure import exposure
from sfumato.audit.page import page
from sfumato.audit.words import text, verdict
from sfumato.errors import AttackError, GrantError, PolicyError, ReleaseError, VaultError
from sfumato.models import GaussianNoise
from sfumato.release.sampling import sampled
from sfumato.schema.targets import Target

QUICK = ("bayes", "llse", "collusion")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return wards.table(4000)


@pytest.fixture(scope="module")
def copies(table: pa.Table) -> dict[str, pa.Table]:
    made = wards.policy().fit(table).release_levels(table, ["internal", "partner"], sf.Key.from_bytes(bytes(32)))
    return dict(zip(("ann", "bob"), made, strict=True))


def test_an_audit_of_sound_copies(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    told: list[str] = []
    found = audit(table, copies, stage=told.append)
    assert found.passed
    assert not found.gained
    assert found.paths == 1
    assert {score.attack for score in found.pooled.scores} == set(ATTACKS.names())
    assert "learned on all together" in told
    worth = {one.column: one for one in found.worth}
    assert worth["age"].pooled <= worth["age"].alone
    assert worth["age"].independent < 0.95 * worth["age"].pooled
    assert worth["diagnosis"].independent > worth["diagnosis"].pooled
    assert 0.7 < worth["age"].recovered < 0.9
    error, reconstruction = found.growth
    assert error.ours[0] == pytest.approx(error.ours[1], rel=1e-9)
    assert error.independent[1] < 0.9 * error.independent[0]
    assert reconstruction.ours[0] == pytest.approx(reconstruction.ours[1], rel=1e-9)
    assert "Pooling gains nothing" in verdict(found)
    assert json.loads(json.dumps(found.summary()))["passed"] is True
    assert "all together" in text(found)


def test_independent_copies_are_called_what_they_are(table: pa.Table) -> None:
    naive = wards.POLICY.replace('"gaussian"', '{ role = "independent", of = "gaussian" }')
    made = sf.Policy.loads(naive).fit(table).release_levels(table, ["internal", "partner"], sf.Key.generate())
    found = audit(table, dict(zip(("ann", "bob"), made, strict=True)), attacks=QUICK)
    assert found.gained
    assert not found.passed
    assert found.paths == 2
    assert "POOLING GAINS" in verdict(found)


def test_a_flawed_copy_is_called_what_it_is(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    metadata = [copy.schema.metadata for copy in copies.values()]
    swapped = {
        "ann": copies["bob"].replace_schema_metadata(metadata[0]),
        "bob": copies["ann"].replace_schema_metadata(metadata[1]),
    }
    found = audit(table, swapped, attacks=QUICK)
    assert not found.soundness.sound
    assert "DO NOT RELEASE" in verdict(found)
    assert "its noise is not as large as stated" in page(found)


def test_two_copies_of_one_level_are_the_same(table: pa.Table) -> None:
    """Also where the noise of each is as large as it should be."""
    scheme, key = wards.policy().fit(table), sf.Key.generate()
    copy, stranger = (scheme.release(table, "partner", made) for made in (key, sf.Key.generate()))
    forged = stranger.replace_schema_metadata(copy.schema.metadata)
    assert audit(table, {"ann": copy, "bob": copy}, attacks=QUICK).passed
    found = audit(table, {"ann": copy, "bob": forged}, attacks=QUICK)
    assert "copies of the same level differ" in {check.fault for check in found.soundness.alarms}


def test_too_few_records_are_not_called_sound(key: sf.Key) -> None:
    few = wards.table(40).drop_columns(["diagnosis"])
    policy = sf.Policy.loads(
        wards.POLICY.replace('diagnosis = { role = "uniform", domain = ["flu", "cold", "gout"] }', "")
    )
    copy = policy.fit(few).release(few, "partner", key)
    assert "NOT CHECKED" in verdict(audit(few, {"ann": copy}, attacks=QUICK))


def test_the_report_needs_nothing_else_and_escapes_names(table: pa.Table) -> None:
    policy = dataclasses.replace(wards.policy(), dataset="<script>alert(1)</script>")
    made = policy.fit(table).release_levels(table, ["internal", "partner"], sf.Key.generate())
    shown = page(audit(table, dict(zip(("a<b", "c&d"), made, strict=True)), attacks=QUICK))
    assert "<script>" not in shown
    assert "a&lt;b" in shown
    assert shown.count("<svg") >= 4
    for outside in ("http://", "https://", "src=", "url("):
        assert outside not in shown.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
            "url(#", ""
        ).replace("http://purl.org", "").replace("http://creativecommons.org", "")


@pytest.mark.parametrize("size", [1, 3])
def test_any_number_of_copies_can_be_audited(size: int, table: pa.Table, key: sf.Key) -> None:
    levels = ["internal", "partner", "public"][:size]
    made = wards.policy().fit(table).release_levels(table, levels, key)
    found = audit(table, dict(zip(levels, made, strict=True)), attacks=QUICK)
    assert found.passed
    assert ("Sound: the copy" in verdict(found)) == (size == 1)
    assert page(found).startswith("<!doctype html>")


def test_an_audit_needs_copies(table: pa.Table) -> None:
    with pytest.raises(AttackError, match="at least one copy"):
        audit(table, {})


def crowd(values: Any) -> Any:
    model = GaussianNoise(("x",), ((1.0,),), 1.0, (1.0,), (2.0**-10,), (None,), (0.0,), chained=True)
    batch = pa.RecordBatch.from_pydict({"id": np.arange(len(values)), "x": values})
    return exposure(lambda: iter([(np.arange(len(values), dtype=np.uint64), batch)]), model, ("id",))


def test_outliers_are_found_by_their_crowd(rng: np.random.Generator) -> None:
    values = rng.uniform(0, 3, 1000)
    values[17], values[400], values[401] = 50.0, -20.0, -20.5
    found = crowd(values)
    assert [one.record for one in found.outliers] == ["17", "401", "400"]
    assert [one.others for one in found.outliers] == [0, 1, 1]
    assert found.outliers[0].distance == pytest.approx(48.5, abs=1)
    [column] = found.columns
    assert column.records == 3
    assert column.clip == pytest.approx((0, 3), abs=0.5)
    assert crowd(np.clip(values, 0, 3)).outliers == ()
    assert crowd(np.full(3, 7.0)).columns[0].records == 3  # three alone are few, whatever they are


def test_samples_are_evenly_spread() -> None:
    batches = [
        (np.arange(s, s + 700, dtype=np.uint64), pa.RecordBatch.from_pydict({"x": np.arange(s, s + 700)}))
        for s in (0, 700)
    ]
    places, table = sampled(batches, 400)
    assert places.tolist() == list(range(0, 1400, 4))
    assert table.column("x").to_pylist() == places.tolist()
    assert len(sampled(batches, 1400)[0]) == 1400
    assert len(sampled([], 5)[0]) == 0


THRESHOLDS = wards.POLICY + '[audit]\nage = "error >= 0.3"\ndiagnosis = "success <= 0.85"\n'


def test_a_copy_below_the_thresholds_is_refused(table: pa.Table, key: sf.Key, tmp_path: Any) -> None:
    policy = sf.Policy.loads(THRESHOLDS)
    assert sf.Policy.loads(policy.dumps()) == policy
    assert policy.digest() != wards.policy().digest()
    scheme = policy.fit(table)
    scheme.release(table, "partner", key)
    with pytest.raises(ReleaseError, match=r"age: the attack .* reaches error 0\.1.*error >= 0\.3.*Lower the level"):
        scheme.release(table, "internal", key)
    with pytest.raises(ReleaseError, match="no copy at this level may leave"):
        sf.release_file(scheme, table, tmp_path / "copy.parquet", "internal", key)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ReleaseError, match="diagnosis: the attack"):
        scheme.release(table, 0.9, key)


def test_a_threshold_on_a_hidden_column_does_not_count(table: pa.Table, key: sf.Key) -> None:
    from sfumato.schema.view import View

    scheme = sf.Policy.loads(THRESHOLDS).fit(table).seen(View(("id", "income")))
    assert scheme.release(table, "internal", key).num_rows == 4000


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ('age = "rmse"', "must read like 'rmse >= 5000'"),
        ("age = 3", "must read like"),
        ('age = "rmse <= 3"', "must say `rmse >=` a bound"),
        ('age = "rsme >= 3"', "did you mean 'rmse'"),
        ('age = "error >= 2"', "between 0 and 1"),
        ('age = "success <= 0.5"', "needs a column with the role uniform, and 'age' has the role gaussian"),
        ('age = "rmse >= many"', "must end in a number"),
        ('nobody = "rmse >= 3"', "there is no column 'nobody'"),
        ('region = "success <= 0.5"', "'region' has the role keep"),
    ],
)
def test_thresholds_that_cannot_be_are_refused(said: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        sf.Policy.loads(f"{wards.POLICY}[audit]\n{said}\n")


def test_targets_are_read_from_a_line() -> None:
    assert Target.parse("income: rmse >= 5000") == Target("income", "rmse", 5000.0)
    assert str(Target.parse(" a:b :error>=.25")) == "a:b: error >= 0.25"
    with pytest.raises(PolicyError, match="must read like 'income: rmse >= 5000'"):
        Target.parse("rmse >= 5000")


def test_calibration_finds_the_highest_level(table: pa.Table, key: sf.Key) -> None:
    """On normal data, the best attack leaves 1 - f; the level found keeps its target at every release."""
    told: list[int] = []
    [age, diagnosis] = calibrate(
        wards.policy(),
        table,
        [Target.parse("age: error >= 0.4"), Target.parse("diagnosis: success <= 0.7")],
        progress=told.append,
    )
    assert 0.52 < age.fidelity < 0.6
    assert 0.45 < diagnosis.fidelity < 0.55  # p + (1-p)/3, less the margin
    assert len(told) == 20
    policy = sf.Policy.loads(wards.POLICY + '[audit]\nage = "error >= 0.4"\n')
    scheme = policy.fit(table)
    for _ in range(5):
        scheme.release(table, age.fidelity, sf.Key.generate())
    with pytest.raises(ReleaseError):
        scheme.release(table, age.fidelity + 0.1, key)
    with pytest.raises(PolicyError, match="no level keeps age: rmse >= 100"):
        calibrate(wards.policy(), table, [Target.parse("age: rmse >= 100")])


def test_forecasts_have_the_closed_form() -> None:
    levels = [sf.Level(f) for f in (0.6, 0.5, 0.4)]
    found = prediction.of_levels(levels, 10)
    [number], [category] = found.numbers, found.categories
    assert number.ours == pytest.approx(0.4)
    assert number.independent == pytest.approx(1 / (1 + sum(1 / level.noise for level in levels)))
    assert category.epsilon == pytest.approx(levels[0].epsilon(10))
    assert category.independent_epsilon == pytest.approx(sum(level.epsilon(10) for level in levels))
    assert category.posterior == pytest.approx(levels[0].rho2(0.1, 10))


def test_forecasts_agree_with_attacks(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    found = prediction.of_copies([sf.Manifest.of(copy) for copy in copies.values()])
    measured = sf.score(sf.attack("llse", list(copies.values())), table)
    for number in found.numbers:
        assert number.ours == pytest.approx(measured.number(number.column).error.attack.value, rel=0.07)
        assert number.deviation == pytest.approx(measured.number(number.column).rmse.baseline.value, rel=0.01)


def test_forecasts_know_what_lies_on_another_path(table: pa.Table) -> None:
    scheme = wards.policy().fit(table)
    held = [sf.Manifest.of(scheme.release(table, "partner", sf.Key.generate())) for _ in range(2)]
    found = prediction.of_copies(held)
    assert found.numbers[0].ours == pytest.approx(1 / 3, rel=0.01)
    assert found.numbers[0].ours == pytest.approx(found.numbers[0].independent)
    assert found.categories[0].epsilon == pytest.approx(found.categories[0].independent_epsilon)
    assert found.numbers[0].rmse[0] == pytest.approx(18 / np.sqrt(3), rel=0.05)


def test_the_vault_audits_what_was_granted(vault: sf.Vault) -> None:
    with pytest.raises(GrantError, match="clinic must have a grant"):
        vault.audit("ward", colluders=["clinic"], attacks=QUICK)
    assert [copy.name for copy in vault.audit("ward", attacks=QUICK).copies] == ["internal", "partner", "public"]
    vault.recipient("insurer")
    vault.grant("clinic", "ward", "internal")
    vault.grant("insurer", "ward", "public", where="region == 'north'", columns=["id", "region", "age"])
    found = vault.audit("ward", attacks=QUICK)
    assert [(copy.name, copy.fidelity) for copy in found.copies] == [("clinic", 0.8), ("insurer", 0.2)]
    assert (found.rows, found.audited, found.passed) == (300, 150, True)
    assert [copy.name for copy in vault.audit("ward", colluders=["insurer"], attacks=QUICK).copies] == ["insurer"]
    with pytest.raises(VaultError, match="no recipient called 'nobody'"):
        vault.audit("ward", colluders=["nobody"], attacks=QUICK)
    with pytest.raises(VaultError, match="no dataset called 'wart'; did you mean 'ward'"):
        vault.audit("wart")


def test_after_a_new_key_pooling_gains_and_the_audit_says_so(vault: sf.Vault, tmp_path: Any) -> None:
    vault.grant("clinic", "ward", "internal")
    vault.release("clinic", "ward", tmp_path / "one.parquet")
    vault.rekey()
    found = vault.audit("ward", attacks=QUICK)
    assert [copy.name for copy in found.copies] == ["clinic", "clinic (2)"]
    assert found.paths == 2
    assert found.gained


def test_a_vault_holds_back_what_its_policy_forbids(site: Any) -> None:
    vault = site.create()
    vault.add(sf.Policy.loads(THRESHOLDS), wards.table(4000))
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "internal")
    before = len(vault.log())
    with pytest.raises(ReleaseError, match="no copy at this level may leave"):
        vault.release("clinic", "ward", site.folder / "copy.parquet")
    assert len(vault.log()) == before
    found = vault.audit("ward")
    assert not found.passed
    assert "BELOW THE POLICY'S THRESHOLDS: age" in verdict(found)
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", site.folder / "copy.parquet")
    assert vault.audit("ward").passed
