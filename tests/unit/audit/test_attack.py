"""The public functions `sf.attack` and `sf.score`: copies in, estimates and scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import wards

import sfumato as sf
from sfumato.audit.attack import TRAINING_ROWS, choose_known_records
from sfumato.errors import AttackError, UnknownMember


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return wards.table(5000)


@pytest.fixture(scope="module")
def scheme(table: pa.Table) -> sf.TableScheme:
    return wards.policy().fit(table)


@pytest.fixture(scope="module")
def copies(scheme: sf.TableScheme, table: pa.Table) -> list[pa.Table]:
    return scheme.release_levels(table, ["internal", "partner"], sf.Key.from_bytes(bytes(32)))


def test_files_and_tables_are_attacked_alike(copies: list[pa.Table], table: pa.Table, tmp_path: Path) -> None:
    for i, copy in enumerate(copies):
        pq.write_table(copy, tmp_path / f"{i}.parquet")
    progress: list[int] = []
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    estimate = sf.attack("llse", files, progress=progress.append)
    assert (estimate.values == sf.attack("llse", copies).values).all()
    assert sum(progress) == 5000
    found = sf.score(estimate, table)
    assert 0.15 < found.number("age").error.attack.estimate < 0.25
    assert found.summary()["numbers"][0]["column"] == "age"


def test_the_truth_may_be_in_another_order(copies: list[pa.Table], table: pa.Table) -> None:
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    estimate = sf.attack("bayes", copies)
    assert sf.score(estimate, shuffled).number("age").rmse == sf.score(estimate, table).number("age").rmse


def test_copies_of_different_records_are_matched(scheme: sf.TableScheme, table: pa.Table, key: sf.Key) -> None:
    north, late = table.slice(0, 3000), table.slice(1000)
    released = [scheme.release(north, "internal", key), scheme.release(late, "partner", key)]
    estimate = sf.attack("llse", released)
    assert len(estimate) == 2000
    assert sorted(estimate.records.column("id").to_pylist()) == sorted(table.column("id").to_pylist()[1000:3000])
    assert sf.score(estimate, table).number("income").error.attack.estimate < 0.25
    hidden = sf.Policy.loads(wards.POLICY.replace('id = "id"', 'id = { role = "id", publish = false }')).fit(table)
    anonymous = [hidden.release(north, "internal", key), hidden.release(table, "partner", key)]
    with pytest.raises(AttackError, match="without record identifiers must hold the same records"):
        sf.attack("llse", anonymous)


def test_an_attack_fitted_to_the_first_records_is_applied_to_all(key: sf.Key) -> None:
    table = wards.table(TRAINING_ROWS + 5000)
    copy = wards.policy().fit(table).release(table, "partner", key)
    found = sf.score(sf.attack("mixture", [copy]), table)
    assert found.rows == TRAINING_ROWS + 5000
    assert 0.45 < found.number("age").error.attack.estimate < 0.51


def test_every_kind_of_background_knowledge_is_used(copies: list[pa.Table], table: pa.Table) -> None:
    other = wards.table(5000, seed=9)

    def error(name: str, **knowledge: object) -> float:
        estimate = sf.attack(name, copies[1:], **knowledge)  # type: ignore[arg-type]
        return sf.score(estimate, table).number("age").rmse.attack.estimate

    perfect = error("bayes", statistics=table)
    assert error("bayes", samples=20) > perfect * 1.01
    assert error("bayes", sample=other) == pytest.approx(perfect, rel=0.01)
    for name in ("udr", "mixture", "learned"):
        assert error(name, sample=other) < 1.1 * perfect
    known = table.take(pa.array(np.arange(0, 5000, 5)))
    assert error("learned", known=known) < 1.1 * perfect
    rows, some = choose_known_records(copies[1:], table, 0.2)
    assert len(rows) == some.num_rows == 1000
    rest = sf.score(sf.attack("learned", copies[1:], known=(rows, some)), table, leave_out=rows)
    assert rest.rows == 4000
    with pytest.raises(AttackError, match="'learned' needs known records or a sample"):
        error("learned")


def test_a_prior_can_be_given(copies: list[pa.Table], table: pa.Table) -> None:
    certain = sf.attack("collusion", copies, prior={"diagnosis": {"flu": 0.98, "cold": 0.01, "gout": 0.01}})
    assert set(certain.posteriors[0].mode()) == {0}  # this prior outweighs the evidence of any copy
    with pytest.raises(AttackError, match="sum to 1"):
        sf.attack("collusion", copies, prior={"diagnosis": {"flu": 0.5}})
    with pytest.raises(AttackError, match="'age' is none"):
        sf.attack("collusion", copies, prior={"age": {1: 1.0}})


def test_wrong_usage_is_explained(copies: list[pa.Table], table: pa.Table, key: sf.Key) -> None:
    with pytest.raises(UnknownMember, match="did you mean 'llse'"):
        sf.attack("lsse", copies)
    with pytest.raises(AttackError, match="has no parameter 'components'; it has shrink"):
        sf.attack("bayes", copies, components=3)
    with pytest.raises(AttackError, match="a list of copies"):
        sf.attack("bayes", [])
    with pytest.raises(AttackError, match="a list of copies"):
        sf.attack("bayes", "copy.parquet")
    with pytest.raises(AttackError, match="must be 'gap'"):
        sf.attack("pca", copies, components=7)
    with pytest.raises(sf.SfumatoError, match="must carry its manifest"):
        sf.attack("bayes", [table])
    other = wards.policy("other").fit(table).release(table, "internal", key)
    with pytest.raises(AttackError, match="of one dataset, got other, ward"):
        sf.attack("bayes", [copies[0], other])
    with pytest.raises(AttackError, match="at least two records"):
        sf.attack("bayes", [copies[0].slice(0, 1).replace_schema_metadata(copies[0].schema.metadata)])


def test_wrong_tables_and_names_are_explained(copies: list[pa.Table], table: pa.Table) -> None:
    found = sf.score(sf.attack("learned", copies, known=table.slice(0, 500)), table)
    assert found.category("diagnosis").success.attack.estimate > 0.7
    with pytest.raises(AttackError, match="did you mean 'income'"):
        found.number("incom")
    with pytest.raises(AttackError, match="does not estimate a categorical attribute 'age'"):
        found.category("age")
    with pytest.raises(AttackError, match="lacks income"):
        sf.score(sf.attack("bayes", copies), table.drop_columns(["income"]))
    with pytest.raises(AttackError, match="must have the identifier column 'id' of the copies"):
        sf.score(sf.attack("bayes", copies), table.drop_columns(["id"]))
    with pytest.raises(AttackError, match="must have the identifier column 'id' of the copies"):
        sf.attack("learned", copies, known=table.drop_columns(["id"]))
    with pytest.raises(AttackError, match="at least two records"):
        sf.attack("bayes", copies, statistics=table.slice(0, 0))
    with pytest.raises(AttackError, match="at least two records"):
        sf.attack("bayes", copies, sample=table.slice(0, 1))
    with pytest.raises(AttackError, match="at least two records, got samples=-3"):
        sf.attack("bayes", copies, samples=-3)
    with pytest.raises(AttackError, match="must be a table of known records"):
        sf.attack("learned", copies, known=0.1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mixture", {"components": 0}),
        ("mixture", {"rows": "many"}),
        ("learned", {"iterations": 0}),
        ("udr", {"density": "flat"}),
        ("bayes", {"shrink": 3}),
        ("pca", {"scaled": "yes"}),
    ],
)
def test_parameters_are_checked(name: str, options: dict[str, Any], copies: list[pa.Table]) -> None:
    with pytest.raises(AttackError, match="must be"):
        sf.attack(name, copies, **options)


def test_copies_of_other_columns_are_pooled(scheme: sf.TableScheme, table: pa.Table, key: sf.Key) -> None:
    """One copy has accurate ages, the other incomes: combined they have both, and the better of each."""
    from sfumato.tables.view import View

    ages = scheme.with_view(View(("id", "age"))).release(table, "internal", key)
    both = scheme.release(table, "partner", key)
    found = sf.score(sf.attack("llse", [ages, both]), table)
    assert found.number("age").error.attack.estimate < 0.21
    assert found.number("income").error.attack.estimate < 0.51
    pooled = sf.score(sf.attack("bayes", [ages, both]), table)
    assert pooled.number("age").rmse.attack.estimate == pytest.approx(
        found.number("age").rmse.attack.estimate, rel=0.01
    )


def test_a_changed_key_makes_another_path(scheme: sf.TableScheme, table: pa.Table) -> None:
    """Two keys are two paths: combining copies then adds information, and the attacks use it."""
    released = [scheme.release(table, "partner", sf.Key.from_bytes(bytes([i] * 32))) for i in (1, 2)]
    error = sf.score(sf.attack("llse", released), table).number("age").error.attack.estimate
    assert error == pytest.approx(1 / 3, rel=0.05)  # 1/(1 + 1 + 1)
