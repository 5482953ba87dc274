"""Smoothing along the rows undoes the noise where neighbours are alike, and only where their order is known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import ATTACKS, AttackError, Evidence, score
from sfumato.audit.audit import audit
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.states import State
from sfumato.kernels.periods import periods

ROWS = 6000
POLICY = """
dataset = "d"
order = "{order}"
[levels]
far = 0.2
[columns]
day = {{ role = "id", publish = {publish} }}
stock = "gaussian"
noise = "gaussian"
season = {{ role = "uniform", domain = ["dry", "rain", "snow"] }}
"""


def _table() -> pa.Table:
    """A stock level that drifts from day to day, a season of many days, and a column without any order."""
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "day": np.arange(ROWS),
            "stock": np.cumsum(rng.normal(size=ROWS)),
            "noise": rng.normal(size=ROWS),
            "season": np.array(["dry", "rain", "snow"])[np.arange(ROWS) // 500 % 3],
        }
    )


def _input(order: str, publish: str, key: sf.Key) -> AuditInput:
    table = _table()
    scheme = sf.Policy.loads(POLICY.format(order=order, publish=publish)).fit(table)
    original = table if order == "keep" else scheme.arranged(table, key)
    return AuditInput.of(original, {"far": scheme.release(table, "far", key)})


def _errors(attack: str, given: AuditInput) -> tuple[dict[str, float], list[float]]:
    found = score(ATTACKS[attack]().estimate(given.combined()), given.truth)
    numbers = {one.column: one.error.attack.estimate for one in found.numbers}
    return numbers, [one.success.attack.estimate for one in found.categories]


@pytest.mark.parametrize(("order", "publish"), [("keep", "false"), ("secret", "true"), ("keep", "true")])
def test_a_known_order_undoes_the_noise(order: str, publish: str, key: sf.Key) -> None:
    """Finding K4: a fifth of the variance is promised to be lost, and neighbours win nearly all of it back."""
    given = _input(order, publish, key)
    linear, _ = _errors("bayes", given)
    numbers, [season] = _errors("smoothing", given)
    assert linear["stock"] > 0.7
    assert numbers["stock"] < 0.05
    assert abs(numbers["noise"] - linear["noise"]) < 0.05  # there is nothing to smooth
    assert season > 0.9
    assert _errors("collusion", given)[1][0] < 0.6


def test_a_secret_order_leaves_nothing_to_smooth(key: sf.Key) -> None:
    given = _input("secret", "false", key)
    with pytest.raises(AttackError, match="secret one"):
        ATTACKS["smoothing"]().estimate(given.combined())
    shuffled = _input("keep", "false", key)
    rows = np.random.default_rng(6).permutation(ROWS)
    taken = shuffled.take(rows).combined()
    positions = np.arange(ROWS, dtype=np.float64)[:, None]
    hidden = Evidence(taken.rows, taken.numbers, taken.categories, position_data=positions)
    found = score(ATTACKS["smoothing"]().estimate(hidden), shuffled.truth.take(rows))
    assert min(one.error.attack.estimate for one in found.numbers) > 0.7


def test_a_draft_names_ids_that_follow_the_order() -> None:
    from sfumato.policy.suggest import draft

    text, shuffled = draft(_table()), draft(_table().take(np.random.default_rng(7).permutation(ROWS)))
    assert "It follows the order of the rows" in text
    assert "It follows the order of the rows" not in shuffled
    assert 'order = "keep"' in shuffled


PANEL = """
dataset = "shops"
order = "{order}"
[levels]
half = 0.5
[columns]
shop = "{shop}"
rent = "gaussian"
sales = "gaussian"
kind = {{ role = "uniform", domain = ["city", "mall", "rail"] }}
"""


def _panel() -> pa.Table:
    """Thirty shops, day by day: rent and kind are those of a shop, and sales have a week."""
    rng = np.random.default_rng(8)
    shop, day = np.arange(ROWS) % 30, np.arange(ROWS) // 30
    return pa.table(
        {
            "shop": shop,
            "rent": rng.normal(size=30)[shop],
            "sales": 2.0 * (day % 7 == 5) + 0.5 * rng.normal(size=ROWS),
            "kind": np.array(["city", "mall", "rail"])[rng.integers(0, 3, 30)][shop],
        }
    )


@pytest.mark.parametrize(("order", "shop"), [("keep", "drop"), ("secret", "keep")])
def test_records_a_period_apart_or_with_a_public_value_in_common_undo_the_noise(
    order: str, shop: str, key: sf.Key
) -> None:
    """Half of the variance is promised to be lost; the days of a shop win nearly all of it back, and are found."""
    table = _panel()
    scheme = sf.Policy.loads(PANEL.format(order=order, shop=shop)).fit(table)
    original = table if order == "keep" else scheme.arranged(table, key)
    given = AuditInput.of(original, {"half": scheme.release(table, "half", key)})
    linear, _ = _errors("bayes", given)
    numbers, [kind] = _errors("smoothing", given)
    assert linear["rent"] > 0.45
    assert numbers["rent"] < 0.05
    assert (numbers["sales"] < 0.3) is (order == "keep")  # the week is in the order alone
    assert kind > 0.95
    assert _errors("collusion", given)[1][0] < 0.75
    found = audit(original, {"half": scheme.release(table, "half", key)}, attacks=("llse", "smoothing"))
    assert found.state is State.AT_RISK
    assert {"rent", "kind"} <= {one.subject for one in found.findings if "where rows keep their order" in one.advice}


def test_noise_has_no_period() -> None:
    rng = np.random.default_rng(9)
    there = np.sort(rng.permutation(5000)[:4500])
    assert periods(rng.normal(size=(4500, 6)), there) == []
    weekly = rng.normal(size=(4500, 1)) + (there % 7 == 2)[:, None]
    assert periods(weekly, there)[0] == 7
    assert periods(rng.normal(size=(5, 1)), np.arange(5)) == []
    assert periods(np.zeros((500, 2)), np.arange(500)) == []
