"""What every mechanism must do, ours or another author's: the suite of `sfumato.testing` on each member."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.kernels.cholesky import gram
from sfumato.mechanisms import MECHANISMS
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.mechanisms._uniform_scheme import UniformScheme
from sfumato.testing import check_mechanism


@pytest.mark.parametrize("role", MECHANISMS)
def test_it_conforms(role: str) -> None:
    check_mechanism(MECHANISMS[role])


ORIGINAL = UniformScheme.perturb_levels


def _batch_length(scheme: Any, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
    """The noise depends on the length of a batch."""
    return ORIGINAL(scheme, batch, rows + np.uint64(len(rows) % 7), levels, key)


def _number_of_levels(scheme: Any, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
    """The noise depends on how many levels are made together."""
    return ORIGINAL(scheme, batch, rows + np.uint64(len(levels)), levels, key)


def _constant_key(scheme: Any, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
    """The key is ignored."""
    return ORIGINAL(scheme, batch, rows, levels, sf.Key.from_bytes(bytes(range(1, 33))))


def _row_order(scheme: Any, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
    """The noise depends on the order of rows rather than on their ids."""
    return ORIGINAL(scheme, batch, np.sort(rows), levels, key)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (_batch_length, "divided"),
        (_number_of_levels, "other levels"),
        (_constant_key, "another key"),
        (_row_order, "divided|order of rows"),
    ],
)
def test_a_planted_fault_is_found(fault: Any, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UniformScheme, "perturb_levels", fault)
    with pytest.raises(AssertionError, match=found):
        check_mechanism(MECHANISMS["uniform"])


def test_the_order_of_columns_in_a_policy_does_not_matter(tiny: pa.Table, tiny_policy: sf.Policy, key: sf.Key) -> None:
    """A policy that is written in another order, or comes back from a file, is the same policy."""
    columns = dict(reversed(list(tiny_policy.columns.items())))
    reordered = sf.Policy("tiny", tiny_policy.ladder, columns, order="keep")
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
    shapes = [gram(fit.factor) for fit in fits if isinstance(fit, GaussianScheme)]
    fitted = max(np.linalg.eigvals(np.linalg.solve(shapes[0], shapes[1])).real)
    assert fits[0].drift(fits[1]) == pytest.approx(fitted, rel=1e-6)
    assert 0.6 * worst < fitted < 1.4 * worst  # a shape is rounded up, most in directions of little variance
    line = {"id": np.arange(3000), "n": base[1], "m": 2 * base[1]}  # noise on a line does not cover a plane
    assert policy.fit(pa.table(line)).schemes[0].drift(fits[1]) > 1e3
