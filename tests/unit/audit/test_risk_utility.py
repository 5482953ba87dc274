"""Risk-utility maps: risk and utility rise with the level, and a limit is met by the level that is found for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from tests import wards

import sfumato as sf
from sfumato.audit.risk_utility import RiskUtilityPoint, gains, highest_within, risk_utility_map
from sfumato.audit.risk_utility_page import page, rows
from sfumato.cli import main
from sfumato.errors import PolicyError

TABLE = wards.table(1500)


@pytest.fixture(scope="module")
def points() -> list[RiskUtilityPoint]:
    policies = {"plain": wards.policy(), "copula": sf.Policy.suggest(TABLE, dataset="ward")}
    return risk_utility_map(policies, TABLE, fidelities=(0.1, 0.5, 0.9))


def test_risk_and_utility_rise_with_the_level(points: list[RiskUtilityPoint]) -> None:
    assert [point.mechanism for point in points] == ["plain"] * 3 + ["copula"] * 3
    for own in (points[:3], points[3:]):
        assert own[0].recovered < own[1].recovered < own[2].recovered
    plain, copula = points[0], points[3]
    assert plain.utility.il1s > points[2].utility.il1s
    assert copula.utility.propensity < plain.utility.propensity  # its values look like the data


def test_a_map_shows_every_point_and_the_levels(points: list[RiskUtilityPoint]) -> None:
    text = page("ward", points, [0.8, 0.5])
    assert "<title>Risk and utility of ward</title>" in text
    assert "0.8, 0.5" in text
    assert all(cell in text for row in rows(points) for cell in row)


def test_the_highest_level_within_a_limit_passes_the_gate(key: sf.Key) -> None:
    found = highest_within(wards.policy(), TABLE, 0.5)
    assert 0.3 < found.fidelity < 0.55
    assert found.recovered <= 0.5
    target = 'age = "error >= 0.5"\nincome = "error >= 0.5"'
    text = wards.POLICY.replace("internal = 0.8", f"internal = {found.fidelity}").replace(
        "partner = 0.5", "partner = 0.3"
    )
    policy = sf.Policy.loads(f"{text}\n[audit]\n{target}")
    policy.fit(TABLE).release(TABLE, "internal", key)
    assert highest_within(wards.policy(), TABLE, 0.5).fidelity == found.fidelity
    with pytest.raises(PolicyError, match="a limit is a share between 0 and 1"):
        highest_within(wards.policy(), TABLE, 1.5)
    clear = pa.table({"id": range(600), "age": [float(i % 7) for i in range(600)]})
    unperturbed = sf.Policy.loads('dataset = "x"\n[levels]\nl = 0.5\n[columns]\nid = "id"\nage = "keep"')
    with pytest.raises(PolicyError, match="a map needs a perturbed column"):
        highest_within(unperturbed, clear, 0.5)


def test_rare_missing_values_do_not_forbid_every_level() -> None:
    """Of 1,500 records six have no age: so few are never known with a confidence of 1 - 1e-9, nor does any gate ask."""
    table = TABLE.set_column(
        TABLE.column_names.index("age"),
        "age",
        pa.array([None if i % 250 == 0 else value for i, value in enumerate(TABLE["age"].to_pylist())]),
    )
    assert highest_within(wards.policy(), table, 0.5).fidelity > 0.25


def test_a_draft_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: sf.Key) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "ward.parquet")
    done = CliRunner().invoke(main, ["suggest", "ward.parquet", "--limit", "0.4", "-o", "policy.toml"])
    assert done.exit_code == 0, done.output
    assert "holds up to fidelity 0.2" in done.output
    policy = sf.Policy.load("policy.toml")
    assert [target.bound for target in policy.targets] == [0.6]
    policy.fit("ward.parquet").release("ward.parquet", next(iter(policy.ladder)).fidelity, key)
    both = CliRunner().invoke(main, ["suggest", "ward.parquet", "--policy", "policy.toml", "--limit", "0.4"])
    assert both.exit_code == 2


def test_a_draft_says_what_an_attacker_would_gain(tmp_path: Path) -> None:
    """More at higher levels; of a column that others tell, more than its own noise allows; and nothing with --quick."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=2000)
    table = pa.table({"x": x, "twin": x + 0.01 * rng.normal(size=2000), "alone": rng.normal(size=2000)})
    plain = sf.Policy.loads(
        'dataset = "t"\n[levels]\na = 0.6\nb = 0.2\n[columns]\nx = "gaussian"\ntwin = "drop"\nalone = "gaussian"'
    )
    found = gains(plain, table)
    assert set(found) == {"x", "alone"}
    assert all(high > low + 0.2 for high, low in found.values())
    assert found["alone"][0] == pytest.approx(0.6, abs=0.1)
    told = gains(sf.Policy.loads(plain.dumps().replace('twin = "drop"', 'twin = "keep"')), table)
    assert told["x"][1] > 0.9  # planted: a twin that is released as it is
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    drafted = CliRunner().invoke(main, ["suggest", str(path)], catch_exceptions=False).output
    assert drafted.count("An attacker recovers") == 3
    assert "An attacker" not in CliRunner().invoke(main, ["suggest", str(path), "--quick"]).output
