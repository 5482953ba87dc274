"""Verdicts name what is wrong with a table or its policy, though manifests are honest and the noise is sound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.result import Audit
from sfumato.audit.states import State

ROWS = 4000
POLICY = """
dataset = "d"
order = "{order}"
[levels]
a = 0.6
b = 0.3
[columns]
x = {{ role = "gaussian", clip = [-3, 3] }}
y = {{ role = "gaussian", clip = [-3, 3] }}
k = {{ role = "uniform", domain = ["p", "q", "r"] }}
z = "{role}"
"""

FLAWS = {
    "an id in clear": ("z", "keep", "secret", ("llse",)),
    "sorted rows": ("z", "gaussian", "keep", ("llse", "smoothing")),
    "a spike column": ("z", "gaussian", "secret", ("llse", "latent-class")),
}


def audited(seed: int, flaw: str | None) -> Audit:
    """An audit of sound copies of a table with a flaw, or without."""
    rng = np.random.default_rng([seed, 22])
    x, y = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], ROWS).T
    _, role, order, attacks = FLAWS[flaw] if flaw else ("", "gaussian", "secret", ("llse", "latent-class"))
    values = {
        "an id in clear": rng.permutation(ROWS) + 10_000,
        "sorted rows": np.sort(rng.normal(size=ROWS)),
        "a spike column": np.where(rng.random(ROWS) < 0.02, 50.0, 0.0) + 1e-3 * rng.normal(size=ROWS),
        None: rng.uniform(-1, 1, ROWS),
    }[flaw]
    table = pa.table({"x": x, "y": y, "k": np.array(list("pqr"))[rng.integers(0, 3, ROWS)], "z": values})
    policy = sf.Policy.loads(POLICY.format(order=order, role=role))
    scheme, key = policy.fit(table), sf.Key.from_bytes(rng.bytes(32))
    copies = dict(zip("ab", scheme.release_levels(table, ["a", "b"], key), strict=True))
    original = scheme.arranged(table, key) if order == "secret" else table
    return audit(original, copies, attacks=attacks, without=("utility",))


def check(seed: int, flaw: str | None) -> bool:
    """Whether the verdict is right: the column is named, or nothing is."""
    found = audited(seed, flaw)
    if flaw is None:
        return found.state is State.WITHIN_LIMITS
    return found.state is State.AT_RISK and any(FLAWS[flaw][0] in one.subject for one in found.findings)


@pytest.mark.parametrize("flaw", [*FLAWS, None])
def test_the_verdict_names_the_column(flaw: str | None) -> None:
    assert check(0, flaw)


@pytest.mark.slow
@pytest.mark.parametrize("flaw", list(FLAWS))
def test_the_verdict_names_the_column_every_time(flaw: str) -> None:
    assert [seed for seed in range(200) if not check(seed, flaw)] == []


@pytest.mark.slow
def test_a_table_without_flaws_is_within_limits_every_time() -> None:
    assert [seed for seed in range(200) if not check(seed, None)] == []
