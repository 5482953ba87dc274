"""Relations of categories with each other and with numbers: what the original has is within the intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

import sfumato as sf
from sfumato.kernels import Floats, Rows
from sfumato.mining.copies.copy import Copy
from sfumato.mining.report import relations as module
from sfumato.mining.report.relations import Attribute, relations

RARE = 0.02
POLICY = """
dataset = "d"
[levels]
l = 0.5
[columns]
x = "gaussian"
a = "uniform"
b = "uniform"
c = { role = "uniform", joint = "g" }
d = { role = "uniform", joint = "g" }
public = "keep"
"""


def _common(codes: Rows) -> Rows:
    """Codes, of which those of few records are one."""
    counts = np.bincount(codes)
    return np.where(counts[codes] < RARE * len(codes), len(counts), codes)


def cramers_v(one: Rows, other: Rows) -> float:
    table = np.zeros((one.max() + 2, other.max() + 2))
    np.add.at(table, (_common(one), _common(other)), 1)
    table = table[table.sum(axis=1) > RARE * len(one)][:, table.sum(axis=0) > RARE * len(one)]
    statistic = chi2_contingency(table, correction=False).statistic
    return float(np.sqrt(statistic / table.sum() / (min(table.shape) - 1)))


def ratio(codes: Rows, values: Floats) -> float:
    codes = _common(codes)
    means = np.array([values[codes == k].mean() if (codes == k).any() else 0 for k in range(codes.max() + 1)])
    return float(means[codes].std() / values.std())


@pytest.fixture(scope="module")
def original() -> pa.Table:
    rng, rows = np.random.default_rng(3), 8000
    a = rng.choice(5, rows, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    x = rng.normal(0, 1, rows) + a
    c = rng.integers(0, 3, rows)
    names = np.array(list("uvwyz"))
    return pa.table(
        {
            "x": pa.array(x, mask=rng.random(rows) < 0.1),
            "a": names[a],
            "b": names[(x + rng.normal(0, 1, rows) > 1) * 1],
            "c": names[c],
            "d": names[(c + (rng.random(rows) < 0.3)) % 3],
            "public": names[np.minimum(a, 2)],
        }
    )


def truth(original: pa.Table) -> dict[tuple[str, str], float]:
    x = original.column("x").to_numpy(zero_copy_only=False).astype(float)
    codes = {n: np.unique(original.column(n), return_inverse=True)[1] for n in ("a", "b", "c", "d", "public")}
    names, there = list(codes), ~np.isnan(x)
    found = {(p, q): cramers_v(codes[p], codes[q]) for i, p in enumerate(names) for q in names[i + 1 :]}
    return found | {(name, "x"): ratio(own[there], x[there]) for name, own in codes.items()}


def found(original: pa.Table, number: int) -> dict[tuple[str, str], Any]:
    key = sf.Key.from_bytes(number.to_bytes(32, "big"))
    copy = Copy.of(sf.Policy.loads(POLICY).fit(original).release(original, "l", key))
    attributes = [Attribute.of(copy, name) for name in "abcd"]
    attributes.append(Attribute.of(copy, "public", original.column("public").unique()))
    return {(p.one, p.other): p.correlation for p in relations(copy, attributes, ["x"], 0.95)}


def covered(original: pa.Table, keys: range) -> float:
    right = truth(original)
    answers = [found(original, number) for number in keys]
    return float(np.mean([one[pair].low <= right[pair] <= one[pair].high for one in answers for pair in right]))


def test_the_original_is_within_the_intervals(original: pa.Table) -> None:
    """All draws are fixed, so that this has no false alarms."""
    assert 0.88 < covered(original, range(12)) < 1


def test_intervals_are_narrow_enough_to_tell(original: pa.Table) -> None:
    answer = found(original, 1)
    assert answer["a", "x"].low > 0.6
    assert answer["c", "d"].low > 0.5
    assert answer["b", "c"].low == 0
    assert answer["a", "public"].low > 0.7


@pytest.mark.parametrize("fault", ["uncorrected", "apart"])
def test_planted_faults_are_noticed(original: pa.Table, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of what is shown; and columns that were replaced together, taken for replaced one by one."""
    if fault == "uncorrected":
        monkeypatch.setattr(module, "_inverted", lambda shown, *_: shown)
        assert covered(original, range(2)) < 0.7
    else:
        monkeypatch.setattr(module, "_is_joint", lambda *_: False)
        answer, right = found(original, 1)["c", "d"], truth(original)["c", "d"]
        assert not answer.low <= right <= answer.high
