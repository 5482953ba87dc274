"""Our measures beside Anonymeter's own, on the same real records: within sampling error of each other.

Anonymeter pins old versions of what we need too, so that it is installed beside, without its dependencies.
"""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.measures.excess_risk import excess_risk
from sfumato.audit.measures.inference import attribute_inference
from sfumato.audit.measures.linkability import linkability
from sfumato.audit.measures.mixed_table import encode
from sfumato.audit.measures.singling_out import ATTEMPTS, singling_out
from sfumato.experiments._data import adult_table

pytestmark = pytest.mark.slow

ATTACKS = 1000
STANDARD_ERRORS = 5.0
"""Two shares of a thousand attacks differ by so many standard errors with probability 6e-7."""


@pytest.fixture(scope="module")
def evaluators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("anonymeter")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "anonymeter"]
    subprocess.run(command, check=True, timeout=300)
    sys.path.append(str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from anonymeter import evaluators as found

        yield found
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    """Released records, their copy, and a control group; unsigned integers overflow in Anonymeter's differences."""
    whole = adult_table().slice(0, 7000)
    policy = dataclasses.replace(sf.Policy.suggest(whole, dataset="adult"), order="keep", digits=16)
    copy = policy.fit(whole).release(whole, 0.7, sf.Key.generate())
    parts = [whole.slice(0, 5000), copy.slice(0, 5000).select(whole.column_names), whole.slice(5000)]
    fields = [
        pa.field(field.name, pa.int64() if pa.types.is_integer(field.type) else pa.string()) for field in whole.schema
    ]
    return [part.replace_schema_metadata(None).cast(pa.schema(fields)) for part in parts]


def near(ours: float, theirs: float, attacks: int = ATTACKS) -> bool:
    share = min(max((ours + theirs) / 2, 1 / attacks), 1 - 1 / attacks)
    return abs(ours - theirs) < STANDARD_ERRORS * math.sqrt(2 * share * (1 - share) / attacks)


def test_inference_and_linkability_are_those_of_anonymeter(evaluators: Any, tables: list[pa.Table]) -> None:
    original, copy, control = encode(tables, tables[0].column_names)
    rng = np.random.default_rng(0)
    targets = original.take(rng.choice(len(original), ATTACKS, replace=False))
    others = control.take(rng.choice(len(control), ATTACKS, replace=False))
    released, synthetic, withheld = (table.to_pandas() for table in tables)
    frames = {"ori": released, "syn": synthetic, "control": withheld, "n_attacks": ATTACKS}
    for ours in attribute_inference(targets, copy, others):
        known = [name for name in released.columns if name != ours.name]
        number = pa.types.is_integer(tables[0].schema.field(ours.name).type)
        attack = evaluators.InferenceEvaluator(**frames, aux_cols=known, secret=ours.name, regression=number)
        theirs = attack.evaluate(n_jobs=1).results()
        assert near(ours.attack.estimate, theirs.attack_rate.value), ours.name
        assert near(ours.control.estimate, theirs.control_rate.value), ours.name
    halves = list(released.columns[0::2]), list(released.columns[1::2])
    linked = (
        evaluators.LinkabilityEvaluator(**frames, aux_cols=halves, n_neighbors=1)
        .evaluate(n_jobs=1)
        .results(n_neighbors=1)
    )
    ours = linkability(targets, copy, others)
    assert near(ours.attack.estimate, linked.attack_rate.value)
    assert near(ours.control.estimate, linked.control_rate.value)


@pytest.mark.parametrize("columns", [3, 5])
def test_singling_out_is_that_of_anonymeter(evaluators: Any, tables: list[pa.Table], columns: int) -> None:
    tables = [table.slice(0, 2000) for table in tables]
    released, synthetic, withheld = (table.to_pandas() for table in tables)
    evaluator = evaluators.SinglingOutEvaluator(
        ori=released, syn=synthetic, control=withheld, n_attacks=ATTEMPTS, n_cols=columns
    )
    theirs = evaluator.evaluate(mode="multivariate").results()
    original, copy, control = encode(tables, tables[0].column_names)
    ours = singling_out(original, copy, control, columns)
    assert ours is not None
    assert near(ours.attack.estimate, theirs.attack_rate.value, ours.targets)
    assert near(ours.control.estimate, theirs.control_rate.value, ours.targets)


def test_rates_and_excess_are_those_of_anonymeter(evaluators: Any) -> None:
    assert evaluators is not None  # installs it
    from anonymeter.stats.confidence import EvaluationResults

    theirs = EvaluationResults(n_attacks=500, n_success=120, n_baseline=20, n_control=60)
    ours = excess_risk("", 120, 60, 20, 500)
    assert ours.attack.estimate == pytest.approx(theirs.attack_rate.value)
    assert ours.excess.estimate == pytest.approx(theirs.risk().value)
    assert (ours.excess.low, ours.excess.high) == pytest.approx(theirs.risk().ci)
