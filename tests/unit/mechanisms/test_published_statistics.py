"""What a release publishes about a table: rounded once, with digits that depend on its size, or with privacy."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import PolicyError
from sfumato.mechanisms._published_statistics import bits, coarse_covariance, private_covariance
from sfumato.models import MODELS
from sfumato.models.gaussian_noise import GaussianNoise

KEY = sf.Key.from_bytes(bytes(range(32)))
LEVELS = np.linspace(0.01, 0.99, 300)
OF_THE_COPY = {"digest"}
"""The field that is computed from the copy itself."""


def _policy(columns: int, more: str = "") -> sf.Policy:
    names = "".join(f'c{i} = "gaussian"\n' for i in range(columns))
    return sf.Policy.loads(f'dataset = "d"\n[levels]\nbest = 0.99\nworst = 0.01\n{more}[columns]\n{names}')


def _published(policy: sf.Policy, values: np.ndarray) -> list[str]:
    """The manifests of a table at some levels, but for what the copy itself shows."""
    table = pa.table({f"c{i}": column for i, column in enumerate(values.T)})
    scheme = policy.fit(table)
    manifests = [json.loads(scheme.manifest(table.schema, sf.Level(level), KEY).dumps()) for level in LEVELS[::60]]
    keyed = {"scheme"}  # a keyed name of the state: equal for equal states, and nothing without the key
    return [json.dumps({k: v for k, v in m.items() if k not in OF_THE_COPY | keyed}) for m in manifests]


@pytest.mark.parametrize(("rows", "columns"), [(303, 1), (2000, 1), (2000, 3)])
def test_one_record_hardly_ever_changes_what_is_published(rows: int, columns: int) -> None:
    """All but one record are known, and the last one has two candidates: 1 or -2 standard deviations in each column.

    The manifests differ with the stated probability, over tables; before statistics were rounded once, they always did
    (more levels publish no more: see below). The tables are fixed, so that there are no false alarms.
    """
    draw, policy, differ = np.random.default_rng(1), _policy(columns), 0
    trials = 60
    for _ in range(trials):
        known = draw.normal(50, 10, (rows - 1, columns))
        first, second = (_published(policy, np.vstack([known, [[50 + 10 * z] * columns]])) for z in (1.0, -2.0))
        differ += first != second
    changed = 3 / 32 if columns == 1 else 0.75  # |z₁² - z₂²|/32 for a deviation; a sum over all pairs for more columns
    assert differ / trials < min(2.2 * changed + 0.1, 0.95)


def test_an_unrounded_statistic_would_be_found() -> None:
    """The planted fault: without rounding, every pair of tables differs."""
    draw, policy = np.random.default_rng(2), _policy(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.mechanisms.gaussian.coarse_covariance", lambda covariance, _: covariance)
        for _ in range(10):
            known = draw.normal(50, 10, (302, 1))
            assert _published(policy, np.vstack([known, [[60.0]]])) != _published(policy, np.vstack([known, [[30.0]]]))


def test_many_levels_publish_no_more_than_one() -> None:
    """The covariance at every level is the same matrix times the level's noise."""
    values = np.random.default_rng(3).normal(size=(400, 3)) @ np.array([[1, 0.3, 0.5], [0, 1, 0.2], [0, 0, 1]])
    table = pa.table({f"c{i}": column for i, column in enumerate(values.T)})
    scheme, shapes = _policy(3).fit(table), set()
    for level in LEVELS:
        [model] = scheme.models(table.schema, sf.Level(level))
        assert isinstance(model, GaussianNoise)
        shapes.add(tuple(float(f"{x / model.noise:.12g}") for line in model.covariance for x in line))
    assert len(shapes) == 1
    variances = [shape[i] for shape in shapes for i in (0, 2, 5)]
    assert not set(np.var(values, axis=0, ddof=1).tolist()) & set(variances)


@pytest.mark.parametrize("rows", [5, 40, 303, 5000, 10**6])
def test_a_rounded_covariance_is_at_least_the_exact_one(rows: int) -> None:
    draw = np.random.default_rng(rows)
    for size in (1, 2, 5, 12):
        mixing = draw.normal(size=(size, size)) * 10.0 ** draw.integers(-6, 6, size)[:, None]
        if size > 2:
            mixing[-1] = mixing[0] + mixing[1]  # a singular matrix
        exact = mixing @ mixing.T
        rounded = coarse_covariance(exact, rows)
        scale = np.sqrt(np.outer(np.diag(rounded), np.diag(rounded)))
        assert np.linalg.eigvalsh((rounded - exact) / scale)[0] > -1e-12
        grid = 2.0 ** -bits(rows)
        assert (np.diag(rounded) / np.diag(exact)).max() < (1 + 2 * grid) ** 2 * (1 + (size + 1) * grid)


def test_digits_depend_on_the_number_of_rows() -> None:
    assert [bits(rows) for rows in (0, 20, 303, 5000, 10**6, 2**40)] == [1, 1, 4, 8, 15, 24]
    assert all(2.0 ** -bits(rows) >= 16 / rows for rows in range(32, 5000))


@pytest.mark.parametrize(("rows", "size", "epsilon"), [(500, 1, 1.0), (500, 3, 1.0), (2000, 6, 0.5)])
def test_a_private_covariance_has_the_stated_privacy_and_takes_no_noise_away(
    rows: int, size: int, epsilon: float
) -> None:
    draw = np.random.default_rng(5)
    limits = np.tile([-1.0, 1.0], (size, 1))
    values = np.clip(draw.normal(size=(rows, size)) * 0.4, -1, 1)
    seen: list[float] = []

    class Recorded:
        """Gives no noise, and notes how much was asked for."""

        def laplace(self, _: float, scale: float, size: object) -> np.ndarray:
            seen.append(scale)
            return np.zeros(size)  # type: ignore[call-overload,no-any-return]

    def statistics(table: np.ndarray) -> np.ndarray:
        moments = table.T @ table / rows
        return np.concatenate([moments[np.tril_indices(size)], table.mean(axis=0)])

    exact = np.atleast_2d(np.cov(values.T))
    private_covariance(exact, values.mean(axis=0).tolist(), limits, rows, epsilon, Recorded())  # type: ignore[arg-type]
    for _ in range(200):  # the farthest neighbours have corners of the box
        other = values.copy()
        first, second = draw.choice([-1.0, 1.0], (2, size))
        values[0], other[0] = first, second
        moved = np.abs(statistics(values) - statistics(other)).sum()
        assert moved <= seen[0] * epsilon * (1 + 1e-9)
    assert set(seen) == {seen[0]}
    short = 0
    for _ in range(300):
        made = private_covariance(exact, values.mean(axis=0).tolist(), limits, rows, epsilon, draw)
        short += np.linalg.eigvalsh(made - np.atleast_2d(np.cov(values.T)))[0] < 0
    assert short <= 3


def test_epsilon_in_a_policy(tmp_path: Path) -> None:
    text = 'dataset = "d"\n[levels]\na = 0.5\n[gaussian]\nepsilon = 1.0\n[columns]\nx = {}\ny = {}\n'
    clipped = '{ role = "gaussian", clip = [0, 100] }'
    with pytest.raises(PolicyError, match=r"needs `clip = .* and 'y' has none"):
        sf.Policy.loads(text.format(clipped, '"gaussian"'))
    table = pa.table({name: np.random.default_rng(1).normal(50, 10, 20_000) for name in "xy"})
    policy = sf.Policy.loads(text.format(clipped, clipped))
    first, second = policy.fit(table), policy.fit(table)
    assert first.digest() != second.digest()  # fresh noise, that nobody can repeat
    first.save(tmp_path / "scheme.json")
    copy = sf.TableScheme.load(tmp_path / "scheme.json").release(table, "a", KEY)
    manifest = sf.Manifest.of(copy)
    [model] = manifest.models
    assert isinstance(model, GaussianNoise)
    assert model.epsilon == 1.0
    assert any("ε = 1" in limit for limit in manifest.limits)
    assert 10 <= math.sqrt(model.covariance[0][0]) < 11.5


def test_everything_that_is_published_is_listed() -> None:
    """The page lists each field of a manifest and of each model."""
    page = (Path(__file__).parents[3] / "docs" / "published.md").read_text(encoding="utf-8")
    fields = {field.name for field in dataclasses.fields(sf.Manifest)} - {"earlier"}
    for model in MODELS.members().values():
        fields |= {field.name for field in dataclasses.fields(model)}
    missing = sorted(name for name in fields if f"`{name}`" not in page)
    assert not missing
