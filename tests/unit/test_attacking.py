"""The door for users: copies in, estimates and scores out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import wards

import sfumato as sf
from sfumato.audit.attack import LEARN, known_share
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
    told: list[int] = []
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    estimate = sf.attack("llse", files, progress=told.append)
    assert (estimate.values == sf.attack("llse", copies).values).all()
    assert sum(told) == 5000
    found = sf.score(estimate, table)
    assert 0.15 < found.number("age").error.attack.value < 0.25
    assert found.summary()["numbers"][0]["column"] == "age"


def test_the_truth_may_come_in_another_order(copies: list[pa.Table], table: pa.Table) -> None:
    shuffled = table.take(np.random.default_rng(1).permutation(table.num_rows))
    estimate = sf.attack("bayes", copies)
    assert sf.score(estimate, shuffled).number("age").rmse == sf.score(estimate, table).number("age").rmse


def test_copies_of_different_records_are_matched(scheme: sf.TableScheme, table: pa.Table, key: sf.Key) -> None:
    north, late = table.slice(0, 3000), table.slice(1000)
    held = [scheme.release(north, "internal", key), scheme.release(late, "partner", key)]
    estimate = sf.attack("llse", held)
    assert len(estimate) == 2000
    assert estimate.records.column("id").to_pylist() == table.column("id").to_pylist()[1000:3000]
    assert sf.score(estimate, table).number("income").error.attack.value < 0.25
    hidden = sf.Policy.loads(wards.POLICY.replace('id = "id"', 'id = { role = "id", publish = false }')).fit(table)
    nameless = [hidden.release(north, "internal", key), hidden.release(table, "partner", key)]
    with pytest.raises(AttackError, match="without ids must hold the same records"):
        sf.attack("llse", nameless)


def test_what_is_learnt_from_the_first_records_is_applied_to_all(key: sf.Key) -> None:
    table = wards.table(LEARN + 5000)
    copy = wards.policy().fit(table).release(table, "partner", key)
    found = sf.score(sf.attack("mixture", [copy]), table)
    assert found.rows == LEARN + 5000
    assert 0.45 < found.number("age").error.attack.value < 0.51


def test_every_kind_of_knowledge_counts(copies: list[pa.Table], table: pa.Table) -> None:
    other = wards.table(5000, seed=9)

    def error(name: str, **knowledge: object) -> float:
        estimate = sf.attack(name, copies[1:], **knowledge)  # type: ignore[arg-type]
        return sf.score(estimate, table).number("age").rmse.attack.value

    perfect = error("bayes", statistics=table)
    assert error("bayes", samples=20) > perfect * 1.01
    assert error("bayes", sample=other) == pytest.approx(perfect, rel=0.01)
    for name in ("udr", "mixture", "learned"):
        assert error(name, sample=other) < 1.1 * perfect
    known = table.take(pa.array(np.arange(0, 5000, 5)))
    assert error("learned", known=known) < 1.1 * perfect
    places, some = known_share(copies[1:], table, 0.2)
    assert len(places) == some.num_rows == 1000
    left = sf.score(sf.attack("learned", copies[1:], known=(places, some)), table, leave_out=places)
    assert left.rows == 4000
    with pytest.raises(AttackError, match="learns from records that it knows"):
        error("learned")


def test_a_prior_can_be_told(copies: list[pa.Table], table: pa.Table) -> None:
    sure = sf.attack("collusion", copies, prior={"diagnosis": {"flu": 0.98, "cold": 0.01, "gout": 0.01}})
    assert set(sure.beliefs[0].guess()) == {0}  # its belief outweighs what any copy shows
    with pytest.raises(AttackError, match="sum to 1"):
        sf.attack("collusion", copies, prior={"diagnosis": {"flu": 0.5}})
    with pytest.raises(AttackError, match="'age' is none"):
        sf.attack("collusion", copies, prior={"age": {1: 1.0}})


def test_mistakes_get_a_clear_word(copies: list[pa.Table], table: pa.Table, key: sf.Key) -> None:
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


def test_more_mistakes_get_a_clear_word(copies: list[pa.Table], table: pa.Table) -> None:
    found = sf.score(sf.attack("learned", copies, known=table.slice(0, 500)), table)
    assert found.category("diagnosis").success.attack.value > 0.7
    with pytest.raises(AttackError, match="did you mean 'income'"):
        found.number("incom")
    with pytest.raises(AttackError, match="says nothing of a category"):
        found.category("age")
    with pytest.raises(AttackError, match="lacks income"):
        sf.score(sf.attack("bayes", copies), table.drop_columns(["income"]))
    with pytest.raises(AttackError, match="must have the copies' id 'id'"):
        sf.score(sf.attack("bayes", copies), table.drop_columns(["id"]))
    with pytest.raises(AttackError, match="must have the copies' id 'id'"):
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
    """One shows ages well, the other incomes: together they have both, and the better of each."""
    from sfumato.tables.view import View

    ages = scheme.seen(View(("id", "age"))).release(table, "internal", key)
    both = scheme.release(table, "partner", key)
    found = sf.score(sf.attack("llse", [ages, both]), table)
    assert found.number("age").error.attack.value < 0.21
    assert found.number("income").error.attack.value < 0.51
    pooled = sf.score(sf.attack("bayes", [ages, both]), table)
    assert pooled.number("age").rmse.attack.value == pytest.approx(found.number("age").rmse.attack.value, rel=0.01)


def test_a_changed_key_makes_another_path(scheme: sf.TableScheme, table: pa.Table) -> None:
    """Two keys are two paths: pooling then gains, and the attacks know it."""
    held = [scheme.release(table, "partner", sf.Key.generate()) for _ in range(2)]
    error = sf.score(sf.attack("llse", held), table).number("age").error.attack.value
    assert error == pytest.approx(1 / 3, rel=0.05)  # 1/(1 + 1 + 1)
