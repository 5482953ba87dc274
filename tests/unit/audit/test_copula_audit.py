"""Audits of margin-preserving copies: sound ones pass, and faults of the mechanism are named."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.messages import notes, text, verdict
from sfumato.audit.report import page
from sfumato.release.manifest import attach
from sfumato.release.scheme import TableScheme

KEY, OTHER = (sf.Key.from_bytes(bytes(range(start, start + 32))) for start in (0, 1))
ROWS = 6000
ATTACKS = ("llse", "regression")


@cache
def _world() -> tuple[pa.Table, TableScheme]:
    rng = np.random.default_rng(8)
    z = rng.normal(size=(ROWS, 4)) @ np.linalg.cholesky(0.4 * np.eye(4) + 0.6).T
    table = pa.table(
        {
            "size": np.exp(z[:, 0]),
            "count": np.round(2 * z[:, 1]).astype(np.int64),
            "gain": pa.array(np.where(z[:, 2] > 0.5, np.round(z[:, 2], 2), 0.0), mask=rng.random(ROWS) < 0.2),
            "town": np.array(["Arles", "Brest", "Calais"])[np.digitize(z[:, 3], [-0.5, 1])],
        }
    )
    roles = "".join(f'{name} = "copula"\n' for name in table.column_names)
    text = f'dataset = "d"\norder = "keep"\n[levels]\na = 0.8\nb = 0.5\nc = 0.2\n[columns]\n{roles}'
    return table, sf.Policy.loads(text).fit(table)


def _copies() -> dict[str, pa.Table]:
    table, scheme = _world()
    return {level: scheme.release(table, level, KEY) for level in "abc"}


def _with_manifest_of(copy: pa.Table, stated: pa.Table) -> pa.Table:
    return attach(copy.replace_schema_metadata(None), sf.Manifest.of(stated))


def test_sound_copies_pass_and_the_promise_is_that_of_their_level() -> None:
    found = audit(_world()[0], _copies(), attacks=ATTACKS)
    assert found.soundness.sound
    assert len(found.soundness.checks) == 5 * 6  # five scores: three copies, and three pairs
    assert "tells no more about a record than the level of the best of them allows" in verdict(found)
    assert found.coarsened_columns == ("count", "gain", "town")
    risks = {risk.column: risk for risk in found.column_risks}
    assert set(risks) == {"count", "gain", "size", "town", "gain is missing"}
    assert risks["size"].all_copies == pytest.approx(0.2, abs=0.02)
    assert risks["size"].independent_noise < 0.19
    assert all(risk.all_copies > 0.18 for risk in risks.values())
    values = {risk.column: risk for risk in found.value_risks}
    assert set(values) == {"count", "gain", "size", "town"}
    assert values["town"].measure == "success"
    assert values["town"].baseline < values["town"].all_copies < values["town"].independent_noise < 0.95
    assert 0.2 < values["count"].all_copies < 0.4  # a heavy tail and whole numbers leave more than their scores
    assert values["size"].independent_noise < values["size"].all_copies < 0.5
    assert "of the values themselves" in text(found)


def _independent(copies: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Noise of its own at one level, under an honest-looking manifest."""
    table, scheme = _world()
    return copies | {"b": _with_manifest_of(scheme.release(table, "b", OTHER), copies["b"])}


def _too_small(copies: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Less noise than stated."""
    table, scheme = _world()
    return copies | {"b": _with_manifest_of(scheme.release(table, 0.62, KEY), copies["b"])}


def _ties_anew(copies: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Categories of the original at one level: no noise in one column."""
    column = copies["c"].column_names.index("town")
    return copies | {"c": copies["c"].set_column(column, "town", _world()[0]["town"])}


def _shifted(copies: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows of one copy are those of other records."""
    moved = pa.concat_tables([copies["c"].slice(7), copies["c"].slice(0, 7)])
    return copies | {"c": _with_manifest_of(moved.combine_chunks(), copies["c"])}


@pytest.mark.parametrize("fault", [_independent, _too_small, _ties_anew, _shifted])
def test_a_fault_is_named(fault: object) -> None:
    found = audit(_world()[0], fault(_copies()), attacks=ATTACKS)  # type: ignore[operator]
    assert not found.soundness.sound
    assert verdict(found).startswith("DO NOT RELEASE")
    assert not found.passed


def test_a_part_of_the_columns_is_audited_once() -> None:
    table, copies = _world()[0], _copies()
    part = copies["b"].select(["size", "town"])
    manifest = sf.Manifest.of(copies["b"])
    narrowed = replace(
        manifest,
        columns=tuple(one for one in manifest.columns if one[0] in part.column_names),
        models=tuple(model.narrowed(part.column_names) for model in manifest.models),
    )
    found = audit(table, {"a": copies["a"], "b": attach(part, narrowed)}, attacks=ATTACKS)
    assert len(found.column_risks) == 5
    assert found.soundness.sound


@pytest.mark.parametrize("level", [0.95, 0.8, 0.5])
def test_rare_and_extreme_values_survive_as_often_as_the_level_says(level: float) -> None:
    """One in fifty lives in Dijon; the records that a copy shows there are the same ones only at a high level."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(40_000, 2))
    town = np.array(["Arles", "Brest", "Calais", "Dijon"])[np.digitize(z[:, 0], [-0.5, 1, 2.05])]
    table = pa.table({"town": town, "size": np.exp(z[:, 1] * 2)})
    policy = f'dataset = "d"\norder = "keep"\n[levels]\na = {level}\n[columns]\ntown = "copula"\nsize = "copula"\n'
    copy = sf.Policy.loads(policy).fit(table).release(table, "a", KEY)
    found = audit(table, {"a": copy}, attacks=ATTACKS)
    largest, rarest = sorted(found.survival, key=lambda one: one.column)
    assert (largest.column, rarest.column, rarest.values) == ("size", "town", "Dijon")
    for one in (largest, rarest):
        deviation = np.sqrt(one.expected * (1 - one.expected) / (one.share * table.num_rows))
        assert abs(one.measured - one.expected) < 5 * deviation
        assert 0.6 < one.protective_fidelity < 0.95
        assert (one.expected > 0.5) == (level > one.protective_fidelity)
    named = [note for note in notes(found) if "Dijon" in note]
    assert bool(named) == (level > rarest.protective_fidelity)
    assert "Rare and extreme values" in page(found)
    shown = np.array(copy["town"].to_pylist()) == "Dijon"
    assert rarest.measured == pytest.approx((town == "Dijon")[shown].mean(), abs=0.03)
