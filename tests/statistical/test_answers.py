"""Coverage of answers from plausible originals, on ten tables of the kinds that estimators find hard.

All draws are fixed, so that these tests have no false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.statistical.awkward_tables import KINDS, policy, questions, table

import sfumato as sf
from sfumato.kernels import Floats
from sfumato.mining import estimate
from sfumato.mining.copies import estimation
from sfumato.mining.copies.imputation import Combined, combine

ASKED = (
    "mean of a group",
    "correlation",
    "joint count of categories",
    "count over a range",
    "median",
    "quantile",
    "mean over a range",
    "joint count",
    "either range",
    "share over a range",
    "median of a group",
)


def coefficients(one: pa.Table) -> Floats:
    """Of a regression of y on x and the ward, over complete records."""
    x, y = (one.column(name).to_numpy() for name in "xy")
    ward = np.array(one.column("ward").to_pylist())
    design = np.column_stack([x, ward == "b", np.ones(len(x))])
    complete = ~np.isnan(x + y)
    found: Floats = np.linalg.lstsq(design[complete], y[complete])[0][:2]
    return found


def statistic(original: pa.Table) -> Callable[[pa.Table], Floats]:
    asked = questions(original)

    def answers(one: pa.Table) -> Floats:
        session = duckdb.connect()
        session.execute("set threads = 1")
        session.register("t", one)
        found = [session.execute(asked[kind]).fetchall()[0][0] for kind in ASKED]
        return np.concatenate([np.array(found, np.float64), coefficients(one)])

    return answers


def hits(level: float, kinds: Iterable[str], keys: Iterable[int], **options: Any) -> dict[str, list[bool]]:
    """Whether the truth was in the intervals, by kind of answer."""
    out: dict[str, list[bool]] = {kind: [] for kind in (*ASKED, "coefficient")}
    for kind in kinds:
        original = table(kind)
        scheme, answers = policy(original).fit(original), statistic(original)
        truth = answers(original)
        for number in keys:
            copy = scheme.release(original, level, sf.Key.from_bytes(number.to_bytes(32, "big")))
            found = estimate(copy, answers, random_state=number, **options)
            inside = (found.low - 1e-9 <= truth) & (truth <= found.high + 1e-9)
            for i, name in enumerate((*ASKED, "coefficient", "coefficient")):
                out[name].append(bool(inside[i]))
    return out


def rate(found: dict[str, list[bool]]) -> float:
    return float(np.mean([hit for one in found.values() for hit in one]))


def test_answers_are_within_their_intervals() -> None:
    assert rate(hits(0.7, ("zeros", "curved"), range(1))) > 0.88


def test_intervals_that_are_too_narrow_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: half of the intervals' width."""

    def narrow(*arguments: Any, **options: Any) -> Combined:
        found = combine(*arguments, **options)
        low, high = ((found.estimate + end) / 2 for end in (found.low, found.high))
        return Combined(found.estimate, low, high, found.missing_information)

    monkeypatch.setattr(estimation, "combine", narrow)
    assert rate(hits(0.7, ("zeros", "curved"), range(1), m=6)) < 0.88


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.9, 0.7, 0.5])
def test_answers_cover_at_the_nominal_rate(level: float) -> None:
    """Ten tables, twelve kinds of answers: of all cells, and of each kind of answer."""
    found = hits(level, KINDS, range(20))
    print({kind: round(float(np.mean(cells)), 3) for kind, cells in found.items()}, rate(found))
    assert 0.93 <= rate(found) <= 0.975
    assert {kind: np.mean(cells) for kind, cells in found.items() if np.mean(cells) < 0.84} == {}
