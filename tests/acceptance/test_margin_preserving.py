"""Margin-preserving copies of real tables: what thirty of them tell together, and what an ordinary model learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

import sfumato as sf
from sfumato.experiments._data import adult_table
from sfumato.mechanisms._copula_scheme import CopulaScheme

KEY = sf.Key.from_bytes(bytes(range(32)))
ROWS = 16_000
LEVELS = np.linspace(0.5, 0.1, 30)


def _numbers(table: pa.Table) -> Any:
    columns = []
    for name in sorted(table.column_names):
        array = table[name].combine_chunks()
        codes = array if pa.types.is_integer(array.type) else array.dictionary_encode().indices
        columns.append(codes.to_numpy(zero_copy_only=False))
    return np.column_stack(columns).astype(float)


@pytest.mark.slow
def test_thirty_copies_tell_no_more_than_the_best_level() -> None:
    """Learned attackers who know half of the records; scores of the best level are what the promise is about."""
    table = adult_table().slice(0, ROWS).drop_columns(["education", "native-country", "occupation"])
    roles = "".join(f'"{name}" = "copula"\n' for name in table.column_names)
    policy = f'dataset = "a"\norder = "keep"\n[levels]\nbest = 0.5\nworst = 0.1\n[columns]\n{roles}'
    scheme = sf.Policy.loads(policy).fit(table)
    copies = [_numbers(copy) for copy in scheme.release_levels(table, [float(one) for one in LEVELS], KEY)]
    [fitted] = scheme.schemes
    assert isinstance(fitted, CopulaScheme)
    [batch] = table.combine_chunks().to_batches()
    originals, [noise] = fitted.paths(batch, np.arange(ROWS, dtype=np.uint64), [sf.Level(0.5)], KEY)
    scores = originals + noise
    known = np.random.default_rng(0).random(ROWS) < 0.5
    inputs = {"best copy": copies[0], "all copies": np.hstack(copies), "scores": scores.T}
    age = {name: _error(one, table["age"].to_numpy().astype(float), known) for name, one in inputs.items()}
    rich = np.array(table["income"].to_pylist()) == ">50K"
    income = {name: _loss(one, rich, known) for name, one in inputs.items()}
    assert age["all copies"] > 0.97 * age["best copy"]  # ages hardly repeat
    assert 0.45 < age["all copies"] < 0.56
    assert income["all copies"] > 0.99 * income["scores"]
    assert income["best copy"] > 1.02 * income["scores"]  # a category shows less than its score
    # were the noise of each copy its own, they would tell nearly everything
    apart = sf.Policy.loads(policy.replace('"a"\n', '"b"\n')).fit(table)
    keys = [sf.Key.from_bytes(bytes([i] * 32)) for i in range(12)]
    independent = np.hstack([_numbers(apart.release(table, 0.5, key)) for key in keys])
    assert _error(independent, table["age"].to_numpy().astype(float), known) < 0.25


def _error(inputs: Any, truth: Any, known: Any) -> float:
    model = HistGradientBoostingRegressor(random_state=0, max_iter=60).fit(inputs[known], truth[known])
    return float(((model.predict(inputs[~known]) - truth[~known]) ** 2).mean() / truth[~known].var())


def _loss(inputs: Any, truth: Any, known: Any) -> float:
    model = HistGradientBoostingClassifier(random_state=0, max_iter=40, learning_rate=0.08)
    model.fit(inputs[known], truth[known])
    return float(log_loss(truth[~known], model.predict_proba(inputs[~known])[:, 1]))
