"""What every mechanism must do, ours or another author's: the suite of `sfumato.testing` on each member of the family."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.mechanisms import MECHANISMS, Scheme
from sfumato.mechanisms.uniform import Uniform
from sfumato.testing import check_mechanism


@pytest.mark.parametrize("role", MECHANISMS)
def test_it_conforms(role: str) -> None:
    check_mechanism(MECHANISMS[role])


def _batch_border(scheme: Any, batch: pa.RecordBatch, *rest: Any) -> Any:
    """A planted fault: the noise depends on where a batch begins."""
    ids, levels, key = rest
    return scheme.perturb_levels(batch, ids + np.uint64(len(ids) % 7), levels, key)


def _level_number(scheme: Any, batch: pa.RecordBatch, *rest: Any) -> Any:
    """A planted fault: the noise depends on how many levels are made together."""
    ids, levels, key = rest
    return scheme.perturb_levels(batch, ids + np.uint64(len(levels)), levels, key)


def _no_key(scheme: Any, batch: pa.RecordBatch, *rest: Any) -> Any:
    """A planted fault: the key is ignored."""
    ids, levels, _ = rest
    return scheme.perturb_levels(batch, ids, levels, sf.Key.from_bytes(bytes(range(1, 33))))


class _Faulty(Scheme):
    """A scheme with a planted fault."""

    def __init__(self, inner: Scheme, fault: Any) -> None:
        self.inner, self.fault, self.columns = inner, fault, inner.columns

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["inner"], name)

    fields = property(lambda self: self.inner.fields)  # type: ignore[assignment]
    model = property(lambda self: self.inner.model)  # type: ignore[assignment]
    draws = property(lambda self: self.inner.draws)  # type: ignore[assignment]
    drift = property(lambda self: lambda other: self.inner.drift(other.inner))  # type: ignore[assignment]
    state = property(lambda self: self.inner.state)  # type: ignore[assignment]

    def perturb_levels(self, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
        return self.fault(self.inner, batch, rows, levels, key)


@pytest.mark.parametrize(
    ("fault", "found"),
    [(_batch_border, "divided"), (_level_number, "other levels"), (_no_key, "another key")],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_planted_fault_is_found(fault: Any, found: str) -> None:
    @dataclasses.dataclass(frozen=True)
    class Planted(Uniform):
        """The uniform mechanism with a planted fault."""

        def restore(self, state: dict[str, Any], tree: Any) -> Scheme:
            return _Faulty(super().restore(state, tree), fault)

    with pytest.raises(AssertionError, match=found):
        check_mechanism(Planted)


def test_the_order_of_columns_in_a_policy_does_not_matter(tiny: pa.Table, tiny_policy: sf.Policy, key: sf.Key) -> None:
    """A policy that is written in another order, or comes back from a file, is the same policy."""
    reordered = sf.Policy("tiny", tiny_policy.ladder, dict(reversed(list(tiny_policy.columns.items()))))
    schemes = [policy.fit(tiny) for policy in (tiny_policy, reordered, sf.Policy.loads(tiny_policy.dumps()))]
    assert len({scheme.digest() for scheme in schemes}) == 1
    copies = [scheme.release(tiny, 0.4, key) for scheme in schemes]
    assert copies[0].equals(copies[1], check_metadata=True)
    assert copies[0].equals(copies[2], check_metadata=True)


def test_a_scheme_of_many_columns_comes_back_from_its_file(
    tiny: pa.Table, tiny_scheme: sf.TableScheme, key: sf.Key, tmp_path: object
) -> None:
    tiny_scheme.save(f"{tmp_path}/s.json")
    again = sf.TableScheme.load(f"{tmp_path}/s.json")
    assert again.release(tiny, 0.4, key).equals(tiny_scheme.release(tiny, 0.4, key), check_metadata=True)


def test_a_changed_number_gets_fresh_noise(tiny: pa.Table, tiny_scheme: sf.TableScheme, key: sf.Key) -> None:
    """A change of one number redraws the noise of all numbers of its record, and of no other record."""
    before = tiny_scheme.release(tiny, "low", key)
    values = np.array(tiny.column("float").to_numpy())
    values[0] += 0.25
    after = tiny_scheme.release(tiny.set_column(1, "float", pa.array(values)), "low", key)
    for name in ("float", "float32", "holes"):
        same = [a == b for a, b in zip(before.column(name).to_pylist(), after.column(name).to_pylist(), strict=True)]
        assert same == [False, *[True] * (len(tiny) - 1)], name


def test_drift_is_a_ratio_of_variances() -> None:
    policy = sf.Policy.loads(
        'dataset = "d"\ndefault = "drop"\n[levels]\na = 0.5\n[columns]\nid = "id"\nn = "gaussian"\nm = "gaussian"\n'
    )
    draw = np.random.default_rng(2)
    base = draw.normal(size=(2, 3000))
    fits = []
    for spread in (1.0, 3.0):
        columns = {"id": np.arange(3000), "n": base[0] + 10 * base[1], "m": base[1] * 10 - spread * base[0]}
        fits.append(policy.fit(pa.table(columns)).schemes[0])
    truth = [np.cov(np.array([base[0] + 10 * base[1], base[1] * 10 - s * base[0]])) for s in (1.0, 3.0)]
    worst = max(np.linalg.eigvals(np.linalg.solve(truth[0], truth[1])).real)
    assert worst > 3  # each column alone hardly changes; their difference does
    assert fits[0].drift(fits[1]) == pytest.approx(worst, rel=0.02)
    line = {"id": np.arange(3000), "n": base[1], "m": 2 * base[1]}  # noise on a line does not cover a plane
    assert policy.fit(pa.table(line)).schemes[0].drift(fits[1]) > 1e3
