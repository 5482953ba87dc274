"""Margin-preserving copies: normal noise of the stated shape on one path, and the margins of the original."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.mechanisms._copula_scheme import CopulaScheme
from sfumato.mechanisms._score_sampler import ScoreSampler

from . import pvalues as p
from .conftest import Verdict

ROWS = 60_000
LEVELS = (0.9, 0.5, 0.1)
KEY = sf.Key.from_bytes(bytes(range(32)))
COLUMNS = ("size", "count", "gain", "town")


@cache
def _world() -> tuple[pa.Table, CopulaScheme]:
    """A continuous column, whole numbers, one with a spike and a heavy tail, and categories that depend on them all."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(ROWS, 4)) @ np.linalg.cholesky(0.5 * np.eye(4) + 0.5).T
    gain = np.where(z[:, 2] < 0.8, 0.0, np.round(np.exp(8 + z[:, 2]), 2))
    both = np.where(z[:, 1] > 0.5, 3, 0)
    town = np.where(z[:, 0] > 0.5, both, 1 + (z[:, 3] > 0))  # a rule that no Gaussian copula fits
    table = pa.table(
        {
            "size": np.exp(z[:, 0]),
            "count": np.round(3 * z[:, 1]).astype(np.int64),
            "gain": pa.array(gain, mask=rng.random(ROWS) < 0.2),
            "town": np.array(["Arles", "Brest", "Calais", "Dijon"])[town],
        }
    )
    levels = "".join(f"l{i} = {level}\n" for i, level in enumerate(LEVELS))
    roles = "".join(f'{name} = "copula"\n' for name in COLUMNS)
    scheme = sf.Policy.loads(f'dataset = "d"\n[levels]\n{levels}[columns]\n{roles}').fit(table)
    [fitted] = scheme.schemes
    assert isinstance(fitted, CopulaScheme)
    return table, fitted


def _scores(scheme: CopulaScheme) -> tuple[Any, list[Any]]:
    [batch] = _world()[0].combine_chunks().to_batches()
    levels = [sf.Level(level) for level in LEVELS]
    scores, noise = scheme.paths(batch, np.arange(ROWS, dtype=np.uint64), levels, KEY)
    return scores, [np.sqrt(level) * (scores + one) for level, one in zip(LEVELS, noise, strict=True)]


@pytest.mark.statistical(checks=30)
def test_the_noise_of_scores_lies_on_one_path(verdict: Verdict) -> None:
    """Each score has noise of variance `t`, in the stated shape, independent of the record and of the increments."""
    _, scheme = _world()
    scores, copies = _scores(scheme)
    whitener = np.linalg.inv(scheme.root)
    noise = [whitener @ (copy / np.sqrt(level) - scores) for copy, level in zip(copies, LEVELS, strict=True)]
    times = [(1 - level) / level for level in LEVELS]
    for i in range(len(scores)):
        verdict.accept(p.variance_p(noise[0][i], times[0]), "variance at the best level")
        verdict.accept(p.normal_p(noise[2][i] / np.sqrt(times[2])), "normal at the worst level")
        verdict.accept(p.independent_p(noise[0][i], noise[1][i] - noise[0][i]), "an increment of its own")
        verdict.accept(p.independent_p(noise[0][i], noise[2][i] - noise[1][i]), "a later increment of its own")
        verdict.accept(p.independent_p(scores[i], noise[1][i]), "noise independent of the record")
        verdict.accept(p.independent_p(noise[0][i], np.roll(noise[0], 1, axis=0)[i]), "noise in the stated shape")
    anew = whitener @ (np.roll(scores, 1, axis=1) - scores) * 0.3
    verdict.reject(p.variance_p((noise[1] + anew - noise[0])[3], times[1] - times[0]), "ties broken anew at each level")
    verdict.reject(p.independent_p(noise[0][3], noise[1][3] - 0.8 * noise[0][3]), "an increment that leaks")
    verdict.reject(p.independent_p(*(whitener @ noise[0])[:2]), "noise that lacks the correlations")
    verdict.reject(p.variance_p(0.97 * noise[0][0], times[0]), "noise that is 3 % too small")


@pytest.mark.statistical(checks=15)
def test_scores_and_margins_are_those_of_the_original(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    table, scheme = _world()
    [batch] = table.combine_chunks().to_batches()
    ids = np.arange(ROWS, dtype=np.uint64)
    copies = [scheme.perturb(batch, ids, sf.Level(level), KEY) for level in LEVELS]
    for i, name in enumerate(scheme.columns):
        for copy in copies:
            verdict.accept(p.same_distribution_p(_codes(batch.column(name)), _codes(copy[i])), f"the margin of {name}")
    for copy in copies:
        missing = np.asarray(copy[scheme.columns.index("gain")].is_null())
        verdict.accept(p.same_distribution_p(np.asarray(batch.column("gain").is_null()), missing), "missing values")
    verdict.reject(
        p.same_distribution_p(_codes(batch.column("town")), _codes(copies[0][scheme.columns.index("town")]) | 1),
        "categories moved",
    )
    unmapped = ScoreSampler(scheme.sampler.margins, scheme.sampler.correlation)
    monkeypatch.setattr(scheme, "sampler", replace(unmapped, maps=tuple(((), ()) for _ in range(unmapped.size))))
    drawn = _scores(scheme)[0][scheme.columns.index("town")]
    verdict.reject(p.normal_p(drawn), "scores that are not brought to their margin")


def _codes(array: pa.Array) -> Any:
    """Numbers, or categories in the order of their names; without missing values."""
    present = array.drop_null()
    if pa.types.is_string(present.type):
        return np.array([ord(value[0]) for value in present.to_pylist()])
    return np.asarray(present, dtype=np.float64)
