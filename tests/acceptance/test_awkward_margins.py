"""Awkward columns with the role copula, from the draft of a policy to a trace: nothing crashes, and nothing warns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.audit import audit
from sfumato.audit.messages import text
from sfumato.audit.report import page
from sfumato.mining import ask
from sfumato.mining.report.page import page as profile_page
from sfumato.mining.report.profile import profile
from sfumato.vault.preview import collusion, preview

KEY = sf.Key.from_bytes(bytes(range(32)))
ODD = 'we "ird, name'
QUESTIONS = (
    "select town, count(*) from copy group by town",
    "select avg(day) from copy",
    'select town, avg("amount") from copy group by town',
    'select flag, avg("constant") from copy group by flag',
    """select count(*) from copy where "we ""ird, name" > 0 and town = 'a'""",
    'select same, count("nothing") from copy group by same',
    'select avg("nothing") from copy',
    "select count(*) from copy where day > '2022-06-01' and flag",
    "select town, avg(constant) from copy where town = 'nowhere' group by town",
    "select clock, count(*) from copy group by clock",
    "select count(*) from copy where moment > '2024-03-01'",
)


def _table(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.arange(rows),
            "nothing": pa.nulls(rows, pa.float64()),
            "same": ["x"] * rows,
            "flag": rng.random(rows) < 0.3,
            "moment": np.datetime64("2024-01-01T00", "s") + rng.integers(0, 9000, rows) * np.timedelta64(3600, "s"),
            "duration": pa.array(rng.integers(0, 10**6, rows), pa.duration("s")),
            "clock": pa.array(rng.integers(0, 86400, rows).astype(np.int32), pa.time32("s")),
            "day": pa.array(rng.integers(19000, 20000, rows).astype(np.int32)).cast(pa.date32()),
            ODD: rng.normal(size=rows),
            "constant": np.full(rows, 7),
            "amount": pa.array(np.round(rng.random(rows) * 100, 2)).cast(pa.decimal128(8, 2)),
            "town": rng.choice(list("abc"), rows),
        }
    )


@pytest.mark.parametrize("rows", [1, 2, 40, 499, 500])
def test_drafts_of_small_tables_work_as_they_are(rows: int) -> None:
    table = _table(rows)
    policy = sf.Policy.suggest(table, dataset="e")
    assert ({column.role for column in policy.columns.values()} & {"copula"} == {"copula"}) == (rows >= 500)
    policy.fit(table).release(table, "partner", KEY)


@pytest.mark.slow
def test_everything_that_is_done_with_a_copy(tmp_path: Path) -> None:
    table = _table(800)
    policy = sf.Policy.suggest(table, dataset="e")
    assert {column.role for column in policy.columns.values()} == {"id", "drop", "copula"}  # nothing but nulls
    text_of = policy.dumps().replace('nothing = "drop"', 'nothing = "copula"')
    policy = sf.Policy.loads(text_of)
    scheme = policy.fit(table)
    copies = {level: scheme.release(table, level, KEY) for level in ("internal", "public")}
    found = audit(scheme.arranged(table, KEY), copies)
    assert found.soundness.sound
    assert not found.disclosed_columns  # a constant is no disclosure
    assert "the values themselves" in text(found)
    assert "Read off the published margins" in page(found)
    assert "moment" in profile_page(profile(copies["internal"]))
    for question in QUESTIONS:
        assert ask(copies["internal"], question).num_columns > 0
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(policy, table, traced=True)
    for name in ("one", "two"):
        vault.recipient(name)
        vault.grant(name, "e", "internal")
    stolen = sf.read_copy(vault.release("one", "e")[0])
    vault.release("two", "e")
    assert len(preview(vault, "e", 0.5)["columns"]) == 11
    assert collusion(vault, "e", ["one", "two"])["coarsened"]
    assert {one.recipients for one in vault.trace("e", stolen).accused} <= {("one",)}


def test_means_of_heavy_tails_come_with_a_warning() -> None:
    """Whether their largest values were moved far inwards is not in the copy; of normal values it hardly matters."""
    rng = np.random.default_rng(5)
    table = pa.table({"id": np.arange(4000), "income": rng.lognormal(10, 1, 4000), "height": rng.normal(170, 9, 4000)})
    copy = sf.Policy.suggest(table, dataset="e").fit(table).release(table, "partner", KEY)
    limits = {number.name: number.limits for number in profile(copy).numbers}
    assert limits["height"] == ()
    assert "moved inwards" in limits["income"][0]
