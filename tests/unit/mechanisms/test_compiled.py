"""Compiled loops and arrays give the same copies, to the last bit, and compiled code is used where it is worth it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import sfumato as sf
from sfumato import kernels
from sfumato.kernels import aes
from sfumato.mechanisms import _brownian_noise, _compiled, _replacement

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 3000  # which is no multiple of what compiled loops work on at once
LEVELS: list[float | str] = ["high", "middle", "low", 0.37, 0.95, 0.03]
HEAD = 'dataset = "t"\n[levels]\nhigh = 0.8\nmiddle = 0.5\nlow = 0.2\n[columns]\n'

needs_aes = pytest.mark.skipif(not aes.is_available(), reason="this processor has no instructions for AES")


def _table(**columns: Any) -> pa.Table:
    return pa.table({"id": np.arange(ROWS) * 7, **columns})


def _numbers(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    mixed = rng.normal(size=(ROWS, count)) @ np.tril(rng.normal(size=(count, count)))
    columns: dict[str, Any] = {f"x{i}": mixed[:, i] for i in range(count)}
    columns["x0"] = pa.array(np.round(mixed[:, 0] * 500), mask=rng.random(ROWS) < 0.1)
    return columns


def _codes(size: int, missing: float = 0.0) -> pa.Array:
    rng = np.random.default_rng(size)
    return pa.array(rng.integers(0, size, ROWS), mask=rng.random(ROWS) < missing)


GAUSSIAN = 'x0 = { role = "gaussian", integer = true, clip = [-0.0, 9000], max_clipped = 1 }\n'
DOMAIN = "{{ role = 'uniform', domain = {{ min = 0, max = {} }}, nulls = '{}' }}"
CASES = {
    "one number": (_table(**_numbers(1)), f"id = 'id'\n{GAUSSIAN}"),
    "two numbers": (_table(**_numbers(2)), f"id = 'id'\n{GAUSSIAN}x1 = 'gaussian'\n"),
    "nine numbers": (
        _table(**_numbers(9)),
        f"id = 'id'\n{GAUSSIAN}" + "".join(f"x{i} = 'gaussian'\n" for i in range(1, 9)),
    ),
    "entities": (
        _table(person=np.arange(ROWS) // 3, born=(np.arange(ROWS) // 3) % 89 + 0.5, **_numbers(3)),
        "id = 'id'\nperson = 'entity'\nborn = 'gaussian'\nx0 = 'gaussian'\nx1 = 'gaussian'\nx2 = 'gaussian'\n",
    ),
    "categories": (_table(c=_codes(50, 0.1)), f"id = 'id'\nc = {DOMAIN.format(49, 'keep')}\n"),
    "categories with missing values": (_table(c=_codes(3, 0.2)), f"id = 'id'\nc = {DOMAIN.format(2, 'perturb')}\n"),
    "a domain of which half is drawn again": (
        _table(c=_codes(3 << 29)),
        f"id = 'id'\nc = {DOMAIN.format((3 << 29) - 1, 'keep')}\n",
    ),
    "two columns together": (
        _table(a=_codes(7), b=_codes(4, 0.1)),
        "id = 'id'\na = { role = 'uniform', joint = 'j' }\nb = { role = 'uniform', joint = 'j' }\n",
    ),
    "margins": (
        _table(a=_codes(7, 0.1), **_numbers(3)),
        "id = 'id'\na = 'copula'\nx0 = 'copula'\nx1 = 'copula'\nx2 = 'copula'\n",
    ),
}


def _force(monkeypatch: pytest.MonkeyPatch, *, compiled: bool) -> None:
    for module in (_brownian_noise, _replacement):
        monkeypatch.setattr(module, "is_worth_it", lambda *_: compiled)
    monkeypatch.setattr(kernels.compiled, "is_worth_it", lambda *_, **__: compiled)


@needs_aes
@pytest.mark.parametrize("case", CASES)
def test_compiled_loops_give_the_bytes_of_arrays(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, columns = CASES[case]
    scheme = sf.Policy.loads(HEAD + columns).fit(table)
    _force(monkeypatch, compiled=False)
    expected = scheme.release_levels(table, LEVELS, KEY)
    _force(monkeypatch, compiled=True)
    for level, copy, arrays in zip(LEVELS, scheme.release_levels(table, LEVELS, KEY), expected, strict=True):
        assert sf.Manifest.of(copy).digest == sf.Manifest.of(arrays).digest
        assert scheme.release(table, level, KEY).equals(arrays)  # alone too


@needs_aes
def test_cells_without_a_lattice_point_are_counted_by_both(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=ROWS)
    scheme = sf.Policy.loads(f"{HEAD}id = 'id'\nx = 'gaussian'").fit(_table(x=values))
    values[[3, 700, 2999]] = np.nan, np.inf, 1e60
    for compiled in (False, True):
        _force(monkeypatch, compiled=compiled)
        with pytest.raises(sf.SfumatoError, match="got 3 others"):
            scheme.release(_table(x=values), "high", KEY)
        masked = pa.array(values, mask=~np.isfinite(values) | (values > 1e50))
        assert scheme.release(_table(x=masked), "high", KEY).column("x").null_count == 3


@needs_aes
def test_blocks_are_those_of_openssl() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 7, 8, 9, 4096):
        key = rng.bytes(32)
        schedules = np.zeros(2 * aes.SCHEDULE, np.uint64)
        aes.expand(np.frombuffer(key, np.uint32), schedules[aes.SCHEDULE :])
        blocks = rng.integers(0, 1 << 64, 2 * (count + aes.SIDE_BY_SIDE), np.uint64)
        out = np.empty_like(blocks)
        aes.encrypt(schedules, 1, blocks, count, out)
        expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks[: 2 * count].tobytes())  # noqa: S305
        assert out[: 2 * count].tobytes() == expected


def test_compiled_code_is_loaded_once_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.compiled, "_worked", 0)
    small = kernels.compiled._WORTH_LOADING // 3
    assert [_compiled.is_worth_it(small, "no_such_module") for _ in range(4)] == [
        False,
        False,
        False,
        aes.is_available(),
    ]
    monkeypatch.setitem(__import__("sys").modules, "sfumato.kernels.no_such_module", _compiled)
    assert _compiled.is_worth_it(1, "no_such_module") == aes.is_available()
