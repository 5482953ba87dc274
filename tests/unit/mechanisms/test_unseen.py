"""Categories that first appear later: refused, unless the policy states what they count as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit_input import AuditInput
from sfumato.errors import PolicyError, SourceError

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 2000


def _policy(options: str) -> sf.Policy:
    return sf.Policy.loads(f"""
dataset = "t"
order = "keep"
[levels]
a = 0.999
[columns]
id = "id"
ward = {options}
""")


def _table(*, later: bool = False) -> pa.Table:
    wards = np.array(["a", "b", "other"])[np.random.default_rng(1).integers(0, 3, ROWS)]
    if later:
        wards = np.where(np.arange(ROWS) % 10 == 0, "new", wards)
    return pa.table({"id": np.arange(ROWS), "ward": wards})


@pytest.mark.parametrize("role", ["uniform", "copula"])
def test_they_count_as_stated(role: str) -> None:
    """At a fidelity of 0.999 nearly all cells are kept."""
    scheme = _policy(f'{{ role = "{role}", unseen = "other" }}').fit(_table())
    copy = scheme.release(_table(later=True), "a", KEY)["ward"].to_numpy(zero_copy_only=False)
    new = np.arange(ROWS) % 10 == 0
    assert np.mean(copy[new] == "other") > 0.9
    assert "new" not in copy
    assert np.mean(copy[~new] == _table()["ward"].to_numpy(zero_copy_only=False)[~new]) > 0.9
    restored = sf.TableScheme.loads(scheme.dumps())
    assert restored.release(_table(later=True), "a", KEY)["ward"].to_pylist() == copy.tolist()


@pytest.mark.parametrize("nulls", ["keep", "perturb"])
def test_they_count_as_missing(nulls: str) -> None:
    scheme = _policy(f'{{ role = "uniform", unseen = "missing", nulls = "{nulls}" }}').fit(_table())
    copy = scheme.release(_table(later=True), "a", KEY)["ward"]
    assert abs(copy.null_count - ROWS // 10) <= 5


@pytest.mark.parametrize("role", ["uniform", "copula"])
def test_they_are_refused_without_a_rule(role: str) -> None:
    scheme = _policy(f'"{role}"').fit(_table())
    with pytest.raises(SourceError, match="`unseen`"):
        scheme.release(_table(later=True), "a", KEY)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('{ role = "uniform", unseen = "none" }', "or a value of its domain"),
        ('{ role = "copula", unseen = "none" }', "or a value of its domain"),
        ('{ role = "uniform", unseen = true }', "must be 'missing' or a value of its domain"),
        ('{ role = "uniform", bins = [1, 2], unseen = "a" }', "must be left out"),
        ('{ role = "uniform", domain = ["a", "b", "other", "missing"], unseen = "missing" }', "that is no category"),
    ],
)
def test_rules_that_make_no_sense(options: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        _policy(options).fit(_table())


def test_audits_know_what_they_count_as() -> None:
    scheme = _policy('{ role = "uniform", unseen = "other" }').fit(_table())
    table = _table(later=True)
    audited = AuditInput.of(table, {"a": scheme.release(table, "a", KEY)})
    codes: Any = audited.truth.codes["ward",]
    assert set(np.unique(codes)) == {0, 1, 2}
    assert (codes[::10] == 2).all()
