"""Plans: what a simulation says about other levels is what copies of these levels show."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import MiningError
from sfumato.mining import ask, plan
from sfumato.mining.copies import perturbed_again
from sfumato.mining.sql.plan import FIDELITIES, Plan, _half_width

KEY = sf.Key.from_bytes(bytes(range(32)))

POLICY = """
dataset = "t"
[levels]
high = 0.8
low = 0.4
[columns]
id = "id"
age = "gaussian"
income = "gaussian"
seen = "gaussian"
ward = { role = "uniform", domain = ["a", "b", "c"] }
region = "keep"
"""

QUESTIONS = [
    "select avg(income) from copy",
    "select count(*) from copy where ward = 'c'",
    "select region, avg(income) from copy where ward = 'b' group by region",
]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Related numbers, a date, and categories."""
    rng, rows = np.random.default_rng(7), 8000
    age = rng.normal(45, 15, rows).round()
    wards = np.array(["a", "b", "c"])[rng.choice(3, rows, p=[0.6, 0.3, 0.1])]
    return pa.table(
        {
            "id": np.arange(rows),
            "age": age,
            "income": np.exp(10 + 0.01 * age + 0.4 * rng.normal(size=rows)),
            "seen": pa.array(rng.integers(15_000, 20_000, rows).astype("datetime64[D]")),
            "ward": pa.array(wards, mask=rng.random(rows) < 0.05),
            "region": np.array(["n", "s"])[rng.integers(0, 2, rows)],
        }
    )


@pytest.fixture(scope="module")
def scheme(table: pa.Table) -> sf.TableScheme:
    """The scheme of the table."""
    return sf.Policy.loads(POLICY).fit(table)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_plan_says_what_copies_show(table: pa.Table, scheme: sf.TableScheme, question: str) -> None:
    """From a copy at 0.4: the half-widths at other levels, within a third."""
    found = plan(scheme.release(table, "low", KEY), question)
    for fidelity in (0.2, 0.5, 0.8, 0.95):
        copy = scheme.release(table, fidelity, KEY)
        actual = _half_width(lambda copy=copy: ask(copy, question))  # type: ignore[misc]
        assert found.half_widths[fidelity] == pytest.approx(actual, rel=0.35)


def test_noise_of_another_size_would_be_seen(
    table: pa.Table, scheme: sf.TableScheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: levels that are simulated with the noise of the copy itself."""
    monkeypatch.setattr(perturbed_again, "_scaled", lambda *_: {})
    found = plan(scheme.release(table, "low", KEY), QUESTIONS[0])
    copy = scheme.release(table, 0.95, KEY)
    assert found.half_widths[0.95] > 1.5 * _half_width(lambda: ask(copy, QUESTIONS[0]))


def test_the_lowest_level_from_which_on_it_is_enough() -> None:
    widths = {0.1: 0.3, 0.5: 0.04, 0.7: 0.06, 0.9: 0.03, 0.95: 0.01}
    assert Plan(0.05, widths).fidelity == 0.9
    assert Plan(0.001, widths).fidelity is None
    assert "No level answers this to ± 0%; the best is ± 1%" in Plan(0.001, widths).sentence()
    assert "from about fidelity 0.9 on" in Plan(0.05, widths).sentence()
    assert "the best" not in Plan(0.05, {0.5: np.inf}).sentence()


def test_what_cannot_be_planned_is_refused(table: pa.Table, scheme: sf.TableScheme) -> None:
    copy = scheme.release(table, "high", KEY)
    with pytest.raises(MiningError, match="a share between 0 and 1"):
        plan(copy, QUESTIONS[0], precision=5)
    with pytest.raises(MiningError):
        plan(copy, "select age from copy")
    text = POLICY.replace('age = "gaussian"', 'age = "copula"')
    other = sf.Policy.loads(text).fit(table).release(table, "high", KEY)
    with pytest.raises(MiningError, match="plain noise"):
        plan(other, QUESTIONS[0])


def test_what_nobody_knows_is_not_precise(table: pa.Table, scheme: sf.TableScheme) -> None:
    """An average of no records, and groups that do not exist."""
    copy = scheme.release(table, "high", KEY)
    for question in (
        "select avg(income) from copy where region = 'nowhere'",
        "select region, avg(income) from copy where region = 'nowhere' group by region",
    ):
        assert plan(copy, question).fidelity is None


@pytest.mark.slow
def test_on_the_command_line(table: pa.Table, scheme: sf.TableScheme, tmp_path: Path) -> None:
    path = str(tmp_path / "copy.parquet")
    pq.write_table(scheme.release(table, "high", KEY), path)
    text = CliRunner().invoke(main, ["mine", path, QUESTIONS[1], "--plan", "0.1"], catch_exceptions=False).output
    assert "from about fidelity" in text
    found = CliRunner().invoke(main, ["mine", path, QUESTIONS[1], "--plan", "0.1", "--json"], catch_exceptions=False)
    assert json.loads(found.output)["fidelity"] in FIDELITIES
    assert CliRunner().invoke(main, ["mine", path, "--plan", "0.1"]).exit_code == 2
