"""Free text under a role for categories: a copy would publish each note word for word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf

ROWS = 2000


def _policy(role: str) -> sf.Policy:
    return sf.Policy.loads(f'dataset = "d"\n[levels]\na = 0.5\n[columns]\nid = "id"\nage = "copula"\nnote = {role}')


def _table(notes: list[str]) -> pa.Table:
    draw = np.random.default_rng(1)
    texts = [notes[int(i)] for i in draw.integers(0, len(notes), ROWS)]
    return pa.table({"id": np.arange(ROWS), "age": draw.normal(size=ROWS), "note": texts})


FREE = [f"interview {i}: has a child who is ill" for i in range(400)]


@pytest.mark.parametrize("role", ['"copula"', '"uniform"', '{ role = "uniform", joint = "g" }'])
def test_notes_are_refused_before_anything_leaves(role: str) -> None:
    with pytest.raises(sf.SfumatoError, match=r"'note' has \d+ texts in 2,000 rows, .* word for word") as refused:
        _policy(role).fit(_table(FREE))
    assert "interview" not in str(refused.value)  # the message shows none of them


@pytest.mark.parametrize(
    "role", ['{ role = "copula", order = "observed" }', '{ role = "uniform", domain = "observed" }']
)
def test_an_owner_may_accept_it(role: str) -> None:
    scheme = _policy(role).fit(_table(FREE))
    assert scheme.release(_table(FREE), "a", sf.Key.generate()).num_rows == ROWS


@pytest.mark.parametrize("role", ['"copula"', '"uniform"'])
def test_categories_of_usual_size_are_none_of_it(role: str) -> None:
    towns = [f"town {i}" for i in range(95)]
    assert _policy(role).fit(_table(towns)).release(_table(towns), "a", sf.Key.generate()).num_rows == ROWS
