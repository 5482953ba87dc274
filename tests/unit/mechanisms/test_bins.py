"""Numbers in bins: replaced at random like categories, attacked and audited as such."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.states import State
from sfumato.errors import PolicyError, SourceError
from sfumato.mining import Frequencies
from sfumato.tables.domain import Domain

POLICY = """
dataset = "pay"
order = "keep"
[levels]
near = 0.8
far = 0.4
[columns]
id = "id"
income = { role = "uniform", bins = [0, 1000, 5000.5] }
age = "gaussian"
"""
NAMES = ("below 0", "0 to 1000", "1000 to 5000.5", "5000.5 or more")


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    income = np.round(rng.normal(2000, 2500, 4000), 2)
    holed = pa.array(np.where(np.arange(4000) % 50 == 7, np.nan, income), from_pandas=True)
    return pa.table({"id": np.arange(4000), "income": holed, "age": rng.normal(40, 12, 4000)})


def test_copies_show_bins_of_which_the_level_retains_a_share(table: pa.Table, key: sf.Key) -> None:
    near, far = sf.Policy.loads(POLICY).fit(table).release_levels(table, ["near", "far"], key)
    domain = Domain.binned("income", [0, 1000, 5000.5])
    assert domain.values == NAMES
    truth = domain.codes(table.column("income").combine_chunks(), "income")
    assert (truth[7::50] == -1).all()
    assert truth.tolist()[:3] == [int(np.searchsorted([0, 1000, 5000.5], x.as_py())) for x in table["income"][:3]]
    for copy, retention in ((near, 0.8), (far, 0.4)):
        assert copy.schema.field("income").type == pa.string()
        shown = domain.codes(copy.column("income").combine_chunks(), "income")
        assert ((shown < 0) == (truth < 0)).all()
        same = (shown == truth)[truth >= 0].mean()
        assert same == pytest.approx(retention + (1 - retention) / 4, abs=0.05)  # six standard errors
    shares = Frequencies().fit(far).tables_
    assert len(shares) == 1
    assert Domain.decode(domain.encode()) == domain


def test_an_audit_of_bins(table: pa.Table, key: sf.Key) -> None:
    copies = dict(
        zip("ab", sf.Policy.loads(POLICY).fit(table).release_levels(table, ["near", "far"], key), strict=True)
    )
    found = audit(table, copies, attacks=("llse", "collusion"))
    assert found.state is not State.UNSOUND
    [risk] = [one for one in found.column_risks if one.column == "income"]
    assert risk.measure == "success"
    assert found.utility is not None


@pytest.mark.parametrize("bins", ["[]", "[3, 2]", '["a"]', "[true, 2]", "5", "[1, 1.0000000001]", "[0, inf]"])
def test_bins_that_are_none_are_refused(bins: str) -> None:
    with pytest.raises(PolicyError, match="`bins` of column 'income' must"):
        sf.Policy.loads(POLICY.replace("[0, 1000, 5000.5]", bins))


def test_bins_need_numbers_and_no_other_domain(table: pa.Table) -> None:
    with pytest.raises(PolicyError, match="must have `bins` or a `domain`, and has both"):
        sf.Policy.loads(POLICY.replace("bins =", 'domain = ["a"], bins ='))
    text = table.set_column(1, "income", pa.array(["a"] * 4000))
    with pytest.raises(SourceError, match="`bins` need numbers, and column 'income' holds string"):
        sf.Policy.loads(POLICY).fit(text)
