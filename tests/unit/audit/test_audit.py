"""Audits: soundness, column risks, collusion, outliers, reports and the vault."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import wards
from tests.planted_faults import plant_independent_noise

import sfumato as sf
from sfumato.attacks import ATTACKS
from sfumato.audit.audit import audit
from sfumato.audit.messages import headline, notes, text, verdict
from sfumato.audit.outliers import SinglingOutRisk, singling_out_risk
from sfumato.audit.report import page
from sfumato.audit.result import SkippedAttack
from sfumato.audit.states import State
from sfumato.errors import AttackError, GrantError, VaultError
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.policy.targets import Target
from sfumato.risk.thresholds import ThresholdResult
from sfumato.tables.sampling import one_in, sampled
from sfumato.tables.view import EVERYTHING, View

QUICK = ("bayes", "llse", "collusion")


def test_an_audit_of_sound_copies(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    stages: list[str] = []
    found = audit(table, copies, stage=stages.append)
    assert found.passed
    assert not found.collusion_gains
    assert found.paths == 1
    others = {"known-input", "known-rows", "known-sample", "ica", "hidden-groups", "hidden-codes"}  # no map, no groups
    assert {score.attack for score in found.all_copies.scores} == set(ATTACKS.names()) - others
    assert any(stage.startswith("learned on all copies") for stage in stages)
    assert any(stage.endswith("s left") for stage in stages)
    risks = {risk.column: risk for risk in found.column_risks}
    assert risks["age"].all_copies <= risks["age"].single_copy
    assert risks["age"].independent_noise < 0.95 * risks["age"].all_copies
    assert risks["diagnosis"].independent_noise > risks["diagnosis"].all_copies
    assert 0.7 < risks["age"].recovered < 0.9
    error, reconstruction = found.collusion_curves
    assert error.these_copies[0] == pytest.approx(error.these_copies[1], rel=1e-9)
    assert error.independent_noise[1] < 0.9 * error.independent_noise[0]
    assert reconstruction.these_copies[0] == pytest.approx(reconstruction.these_copies[1], rel=1e-9)
    assert "Collusion-resistant: combining these copies adds no information" in verdict(found)
    assert "false-alarm rate 1e-6" in verdict(found)
    summary = json.loads(json.dumps(found.summary()))
    assert summary["passed"] is True
    assert summary["collusion_gains"] is False
    assert summary["soundness"]["false_alarm_rate"] == 1e-6
    assert summary["column_risks"][0]["columns"] == ["age"]
    assert "all copies" in text(found)


def test_only_numerical_failures_are_reported_as_failed(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    found = audit(table, copies, attacks=QUICK)
    inapplicable = SkippedAttack("ica", "the attack 'ica' could not be tried here", failed=False)
    failed = SkippedAttack("pca", "the attack 'pca' met a singular matrix", failed=True)
    run = dataclasses.replace(found.all_copies, skipped=(inapplicable, failed))
    noted = notes(dataclasses.replace(found, all_copies=run))
    assert "An attack failed: the attack 'pca' met a singular matrix." in noted
    assert not any("ica'" in note for note in noted)


def test_collusion_gains_from_independent_copies(table: pa.Table) -> None:
    naive = wards.POLICY.replace('"gaussian"', '{ role = "independent", of = "gaussian" }')
    made = (
        sf.Policy.loads(naive)
        .fit(table)
        .release_levels(table, ["internal", "partner"], sf.Key.from_bytes(bytes(range(32))))
    )
    found = audit(table, dict(zip(("ann", "bob"), made, strict=True)), attacks=QUICK)
    assert found.collusion_gains
    assert not found.passed
    assert found.paths == 2
    assert "COLLUSION GAINS" in verdict(found)


def test_attacks_on_all_copies_do_not_believe_that_they_lie_on_one_path(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With independent noise under manifests that state one path, the copies together disclose more, and it shows."""
    plant_independent_noise(monkeypatch)
    made = wards.policy().fit(table).release_levels(table, ["internal", "partner"], sf.Key.from_bytes(bytes(32)))
    found = audit(table, dict(zip(("ann", "bob"), made, strict=True)), attacks=(*QUICK, "regression"))
    assert found.paths == 1
    assert not found.passed
    assert found.collusion_gains
    risks = {risk.column: risk for risk in found.column_risks}
    assert risks["age"].all_copies < 0.9 * risks["age"].single_copy
    error, reconstruction = found.collusion_curves
    assert error.these_copies[1] < 0.9 * error.these_copies[0]
    assert reconstruction.these_copies[1] > reconstruction.these_copies[0] + 0.01


def test_a_flawed_copy_must_not_be_released(table: pa.Table, copies: dict[str, pa.Table]) -> None:
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
    """A copy of the same level with other noise is an alarm, even if its noise is as large as stated."""
    scheme, key = wards.policy().fit(table), sf.Key.generate()
    copy, stranger = (scheme.release(table, "partner", made) for made in (key, sf.Key.generate()))
    forged = stranger.replace_schema_metadata(copy.schema.metadata)
    assert audit(table, {"ann": copy, "bob": copy}, attacks=QUICK).passed
    found = audit(table, {"ann": copy, "bob": forged}, attacks=QUICK)
    assert "copies of the same level differ" in {check.fault for check in found.soundness.alarms}


def key_of(number: int) -> sf.Key:
    return sf.Key.from_bytes(bytes([number] * 32))


def strangers(scheme: sf.TableScheme, table: pa.Table, shown: View = EVERYTHING) -> dict[str, pa.Table]:
    """Two copies whose manifests state one path, and which do not lie on one."""
    first = scheme.release(table, "internal", key_of(1))
    real, other = (scheme.with_view(shown).release(table, "partner", key_of(number)) for number in (1, 2))
    return {"ann": first, "bob": other.replace_schema_metadata(real.schema.metadata)}


def test_one_coarse_or_sparse_column_does_not_hide_the_others(key: sf.Key) -> None:
    table = wards.table(4000)
    sparse = pa.array(np.arange(4000.0), mask=np.arange(4000) % 50 > 0)
    table = table.append_column("sparse", sparse)
    columns = 'age = { role = "gaussian", integer = true }\nsparse = "gaussian"'
    scheme = sf.Policy.loads(wards.POLICY.replace('age = "gaussian"', columns)).fit(table)
    good = scheme.release_levels(table, ["internal", "partner"], key)
    assert audit(table, dict(zip("ab", good, strict=True)), attacks=QUICK).passed
    assert audit(table, strangers(scheme, table), attacks=QUICK).soundness.alarms


def test_copies_are_compared_in_the_columns_they_share(table: pa.Table) -> None:
    scheme = wards.policy().fit(table)
    copies = strangers(scheme, table, View(("id", "age")))
    sound = scheme.with_view(View(("id", "income"))).release(table, "partner", key_of(1))
    found = audit(table, {**copies, "eve": sound}, attacks=QUICK)
    assert {check.copies for check in found.soundness.alarms} == {("ann", "bob")}


def test_categories_of_one_level_are_the_same(table: pa.Table) -> None:
    only = "\n".join(line for line in wards.POLICY.splitlines() if "gaussian" not in line)
    slim = table.drop_columns(["age", "income"])
    scheme = sf.Policy.loads(only).fit(slim)
    copy, other = (scheme.release(slim, "partner", key_of(number)) for number in (1, 2))
    forged = other.replace_schema_metadata(copy.schema.metadata)
    assert audit(slim, {"ann": copy, "bob": copy}, attacks=QUICK).passed
    assert audit(slim, {"ann": copy, "bob": forged}, attacks=QUICK).soundness.alarms


def test_an_unperturbed_copy_and_a_lost_value_raise_an_alarm(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    """The original with the manifest of a copy, and a copy with a missing value."""
    copy = copies["ann"]
    bare = table.select(copy.column_names).cast(copy.schema.remove_metadata())
    bare = bare.replace_schema_metadata(copy.schema.metadata)
    faults = {check.fault for check in audit(table, {"ann": bare}, attacks=QUICK).soundness.alarms}
    assert "its noise is not as large as stated" in faults
    holed = pa.array(copy.column("age").to_numpy(), mask=np.arange(4000) == 7)
    lost = copy.set_column(copy.column_names.index("age"), "age", holed)
    faults = {check.fault for check in audit(table, {"ann": lost}, attacks=QUICK).soundness.alarms}
    assert "values are missing where the original has some" in faults


def awkward(case: str, rng: np.random.Generator) -> dict[str, Any]:
    x, y = rng.normal(size=(2, 800))
    odd = np.arange(800) % 2 == 1
    return {
        "collinear": {f"x{i}": x * i + y for i in range(6)},
        "constant": {"a": np.full(800, 5.0), "b": y},
        "null": {"a": pa.nulls(800, pa.float64()), "b": y},
        "never together": {"a": pa.array(x, mask=odd), "b": pa.array(y, mask=~odd)},
        "far apart": {"a": 1e12 + x, "b": 1e-5 * y},
        "zone": {"a": pa.array(rng.integers(0, 10**15, 800)).cast(pa.timestamp("us", "UTC"))},
        "decimal": {"a": pa.array(rng.integers(0, 10**5, 800)).cast(pa.decimal128(25, 2))},
        "few": {"a": x[:12], "b": y[:12]},
        "wide": {f"x{i}": rng.normal(size=60) for i in range(25)},
    }[case]


@pytest.mark.parametrize(
    "case", ["collinear", "constant", "null", "never together", "far apart", "zone", "decimal", "few", "wide"]
)
@pytest.mark.long
def test_awkward_tables_are_audited_and_released(case: str, rng: np.random.Generator, key: sf.Key) -> None:
    table = pa.table(awkward(case, rng))
    columns = "".join(f'{name} = "gaussian"\n' for name in table.column_names)
    if case == "zone":
        columns = 'a = { role = "gaussian", clip = [1970-06-01T00:00:00Z, 2001-01-01T00:00:00Z] }\n'
    last = table.column_names[-1]
    # the confidence interval of 12 records may reach down to an error of 0, and then refuse any threshold
    threshold = "" if case == "few" else f'[audit]\n{last} = "error >= 0.001"\n'
    policy = f'dataset = "d"\n[levels]\na = 0.6\nb = 0.3\n[columns]\n{columns}{threshold}'
    scheme = sf.Policy.loads(policy).fit(table)
    copies = dict(zip("ab", scheme.release_levels(table, ["a", "b"], key), strict=True))
    found = audit(scheme.arranged(table, key), copies)
    assert not found.soundness.alarms
    assert found.soundness.sound == (case != "few")
    json.dumps(found.summary())
    assert page(found)


def test_too_few_records_are_not_called_sound(key: sf.Key) -> None:
    few = wards.table(40).drop_columns(["diagnosis"])
    policy = sf.Policy.loads(
        wards.POLICY.replace('diagnosis = { role = "uniform", domain = ["flu", "cold", "gout"] }', "")
    )
    copy = policy.fit(few).release(few, "partner", key)
    assert "NOT CHECKED" in verdict(audit(few, {"ann": copy}, attacks=QUICK))


@pytest.mark.parametrize("names", [("average",), ("vote",), ("ndr", "collusion"), ("difference",)])
def test_any_attacks_can_be_chosen(names: tuple[str, ...], table: pa.Table, copies: dict[str, pa.Table]) -> None:
    found = audit(table, copies, attacks=names)
    assert found.passed
    assert "Only some attacks were run" in text(found)
    assert page(found)


def test_thresholds_are_tested_by_all_attacks(table: pa.Table, copies: dict[str, pa.Table]) -> None:
    targets = [Target.parse("age: error >= 0.01")]
    assert audit(table, copies, targets=targets).passed
    found = audit(table, copies, targets=targets, attacks=QUICK)
    assert not found.passed
    assert "THRESHOLDS NOT TESTED" in verdict(found)


def test_a_disclosed_column_fails_the_audit_and_is_named_first(table: pa.Table, key: sf.Key) -> None:
    policy = sf.Policy.loads(wards.POLICY.replace("internal = 0.8", "internal = 0.97"))
    copies = {"ann": policy.fit(table).release(table, "internal", key)}
    found = audit(table, copies, attacks=("llse",))
    assert not found.passed
    assert {risk.column for risk in found.disclosed_columns} == {"age", "income"}
    said = verdict(found)
    assert re.match(r"DISCLOSED: an attack recovers more than 90% of 2 columns: \w+ 9\d% \(llse\); \w+ 9\d% ", said)
    assert "sound" not in said.lower()
    assert headline(found) == said[: len(headline(found))]
    one = dataclasses.replace(found, column_risks=found.column_risks[:1])
    assert "of 1 column: age" in verdict(one)
    bound = Target.parse("age: error >= 0.01")  # the owner has decided on this column
    decided = dataclasses.replace(one, thresholds=(ThresholdResult(bound, "llse", 0.03),), partial=False, measures=None)
    assert decided.passed
    assert verdict(decided).startswith("DISCLOSED")


def test_clipped_columns_are_compared_with_the_clipped_original(key: sf.Key) -> None:
    """A few far outliers would otherwise dominate the variance, and make every attack look harmless."""
    table = wards.table(4000)
    income = table.column("income").to_numpy().copy()
    income[:8] = 5e6
    table = table.set_column(3, "income", pa.array(income))
    text_ = wards.POLICY.replace('income = "gaussian"', 'income = { role = "gaussian", clip = [0, 60000] }')
    made = sf.Policy.loads(text_).fit(table).release_levels(table, ["internal", "partner"], key)
    found = audit(table, dict(zip(("ann", "bob"), made, strict=True)), attacks=QUICK)
    risk = {one.column: one for one in found.column_risks}["income"]
    assert found.passed
    assert 0.17 < risk.all_copies < 0.23
    assert 0.14 < risk.independent_noise < risk.all_copies
    score = sf.score(sf.attack("llse", made), table)
    assert score.number("income").error.attack.estimate == pytest.approx(0.2, abs=0.02)
    curve = found.collusion_curves[0]
    assert curve.these_copies[0] == pytest.approx(curve.independent_noise[0], rel=0.1)


def test_the_report_needs_nothing_else_and_escapes_names(table: pa.Table) -> None:
    policy = dataclasses.replace(wards.policy(), dataset="<script>alert(1)</script>")
    made = policy.fit(table).release_levels(table, ["internal", "partner"], sf.Key.generate())
    shown = page(audit(table, dict(zip(("a<b", "c&d"), made, strict=True)), attacks=QUICK))
    assert "<script>" not in shown
    assert "a&lt;b" in shown
    assert shown.count("<svg") >= 4
    for external in ("http://", "https://", "src=", "url("):
        assert external not in shown.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
            "url(#", ""
        ).replace("http://purl.org", "").replace("http://creativecommons.org", "")


@pytest.mark.parametrize("size", [1, 3])
def test_any_number_of_copies_can_be_audited(size: int, table: pa.Table, key: sf.Key) -> None:
    levels = ["internal", "partner", "public"][:size]
    made = wards.policy().fit(table).release_levels(table, levels, key)
    found = audit(table, dict(zip(levels, made, strict=True)), attacks=QUICK)
    assert found.passed
    assert ("The noise matches the manifest" in verdict(found)) == (size == 1)
    assert page(found).startswith("<!doctype html>")


def test_an_audit_needs_copies(table: pa.Table) -> None:
    with pytest.raises(AttackError, match="at least one copy"):
        audit(table, {})


def outliers_of(values: Any) -> SinglingOutRisk:
    model = GaussianNoise(("x",), ((1.0,),), 1.0, (1.0,), (2.0**-10,), (None,), (0.0,), collusion_resistant=True)
    batch = pa.RecordBatch.from_pydict({"id": np.arange(len(values)), "x": values})
    return singling_out_risk(lambda: iter([(np.arange(len(values), dtype=np.uint64), batch)]), model, ("id",))


def test_outliers_are_records_without_neighbours(rng: np.random.Generator) -> None:
    values = rng.uniform(0, 3, 1000)
    values[17], values[400], values[401] = 50.0, -20.0, -20.5
    found = outliers_of(values)
    assert [one.record for one in found.outliers] == ["17", "401", "400"]
    assert [one.neighbours for one in found.outliers] == [0, 1, 1]
    assert found.outliers[0].distance == pytest.approx(48.5, abs=1)
    [column] = found.columns
    assert column.records == 3
    assert column.clip == pytest.approx((0, 3), abs=0.5)
    assert outliers_of(np.clip(values, 0, 3)).outliers == ()
    between = np.concatenate([values[:400] * 0 + 1, values[:400] * 0 + 90, [40.0]])
    assert outliers_of(between).columns[0].clip is None  # no clip protects a value between others
    assert outliers_of(np.full(3, 7.0)).columns[0].records == 3  # three records are too few to protect each other


def test_samples_do_not_depend_on_the_row_order() -> None:
    """Tables of the same number of rows give the same sample, without any period of the table in it."""
    rows = [np.arange(first, first + 700) for first in (0, 700)]
    batches = [(part.astype(np.uint64), pa.RecordBatch.from_pydict({"x": part})) for part in rows]
    row_numbers, table = sampled(batches, 400)
    assert 200 < len(row_numbers) <= 400
    assert table.column("x").to_pylist() == row_numbers.tolist()
    assert (sampled(batches, 400)[0] == row_numbers).all()
    assert 0.4 < (row_numbers % 2).mean() < 0.6
    assert len(sampled(batches, 1400)[0]) == 1400
    assert len(sampled([], 5)[0]) == 0
    known = one_in(10, 10_000)
    assert 850 < len(known) < 1150
    assert 0.4 < (known % 2).mean() < 0.6
    assert one_in(10, 1).tolist() == [0]


def test_the_vault_audits_what_was_granted(vault: sf.Vault) -> None:
    with pytest.raises(GrantError, match="clinic must have a grant"):
        vault.audit("ward", colluders=["clinic"], attacks=QUICK)
    assert [copy.name for copy in vault.audit("ward", attacks=QUICK).copies] == ["internal", "partner", "public"]
    vault.recipient("insurer")
    vault.grant("clinic", "ward", "internal")
    vault.grant("insurer", "ward", "public", where="region == 'north'", columns=["id", "region", "age"])
    found = vault.audit("ward", attacks=QUICK)
    assert [(copy.name, copy.fidelity) for copy in found.copies] == [("clinic", 0.8), ("insurer", 0.2)]
    assert (found.rows, found.audited_rows, found.state) == (300, 150, State.AT_RISK)
    assert all("outlier" in finding.fault and finding.advice.startswith("clip it to") for finding in found.findings)
    assert [copy.name for copy in vault.audit("ward", colluders=["insurer"], attacks=QUICK).copies] == ["insurer"]
    with pytest.raises(VaultError, match="no recipient called 'nobody'"):
        vault.audit("ward", colluders=["nobody"], attacks=QUICK)
    with pytest.raises(VaultError, match="no dataset called 'wart'; did you mean 'ward'"):
        vault.audit("wart")


def test_after_a_new_key_collusion_gains_and_the_audit_reports_it(vault: sf.Vault, tmp_path: Any) -> None:
    vault.grant("clinic", "ward", "internal")
    vault.release("clinic", "ward", tmp_path / "one.parquet")
    vault.rekey()
    found = vault.audit("ward", attacks=QUICK)
    assert [copy.name for copy in found.copies] == ["clinic", "clinic (2)"]
    assert found.paths == 2
    assert found.collusion_gains


def test_known_quasi_identifiers_link_fewer_records_than_whole_records(table: pa.Table, key: sf.Key) -> None:
    copies = {"ann": wards.policy().fit(table).release(table, "internal", key)}
    found = audit(table, copies, attacks=("llse",), quasi=("age",), without=("utility",))
    assert found.measures is not None
    risks = found.measures.records[0]
    assert risks.quasi_linkage is not None
    assert {one.name for one in risks.quasi_inference} == {one.name for one in risks.inference} - {"age"}
    assert "Attribute inference by quasi-identifiers" in page(found)
    assert risks.quasi_linkage.estimate < risks.linkage.estimate
    assert risks.mahalanobis_linkage is not None
    with pytest.raises(AttackError, match="did you mean 'age'"):
        audit(table, copies, attacks=("llse",), quasi=("agee",))
