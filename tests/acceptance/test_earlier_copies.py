"""Copies that were released earlier, by other software, become points of the path: pooling them gains nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato.attacks import ATTACKS, score
from sfumato.audit.audit import audit
from sfumato.audit.states import State
from sfumato.cli import main
from sfumato.errors import PolicyError, SourceError
from sfumato.kernels import Floats
from sfumato.mechanisms._adopted_scheme import AdoptedScheme
from sfumato.release.adoption import adopt
from sfumato.release.evidence import copy_evidence, original_records
from sfumato.release.manifest import Manifest

ROWS = 40_000
SIZES = np.array([8.0, 120.0])
KEY = sf.Key.from_bytes(bytes(range(32)))
WIDTH = 6.5
"""Standard errors that a statistic may differ by: false alarms are below 1e-9 for all checks here."""


def tables(noise: Floats | None = None) -> tuple[pa.Table, pa.Table]:
    """A table and a copy of it, with independent normal noise or another."""
    rng = np.random.default_rng(22)
    values = rng.multivariate_normal([50, 1000], [[100, 600], [600, 10_000]], ROWS)
    drawn = rng.normal(size=(ROWS, 2)) * SIZES if noise is None else noise
    shown = values + drawn
    ids = pa.array(np.arange(ROWS) + 7)
    return (
        pa.table({"id": ids, "age": values[:, 0], "income": values[:, 1]}),
        pa.table({"id": ids, "age": shown[:, 0], "income": shown[:, 1]}),
    )


def matrix(table: pa.Table) -> Floats:
    return np.column_stack([table.column(name).to_numpy() for name in ("age", "income")])


def gain(given: Floats, copy: Floats, original: Floats) -> float:
    """How many standard errors what a copy lacks is related to the noise of a less faithful one, beyond its own."""
    better, worse = copy - original, given - copy
    products = better * worse
    return float(np.abs(products.mean(axis=0) / (products.std(axis=0) / np.sqrt(len(products)))).max())


def test_further_copies_lie_on_one_path_with_the_earlier_one() -> None:
    original, earlier = tables()
    made = adopt(original, earlier, by=["id"])
    assert made.policy.settings["adopted"] == {"fidelity": 0.64}
    assert {name: column.role for name, column in made.policy.columns.items()} == {
        "id": "id",
        "age": "adopted",
        "income": "adopted",
        "age_earlier": "drop",
        "income_earlier": "drop",
    }
    scheme = made.policy.fit(made.table)
    top, same, low = scheme.release_levels(made.table, [0.8, "earlier", 0.3], KEY)
    arranged_table = scheme.arranged(made.table, KEY)
    truth, given = (
        matrix(arranged_table),
        np.column_stack([arranged_table.column(f"{n}_earlier") for n in ("age", "income")]),
    )
    assert set(top.column_names) <= {"id", "age", "income"}
    assert np.abs(matrix(same) - given).max() < 1e-3  # the lattice
    for copy, fidelity in ((top, 0.8), (low, 0.3)):
        share = (matrix(copy) - truth).var(axis=0) / SIZES**2
        expected = (1 - fidelity) / fidelity / (0.36 / 0.64)
        assert np.abs(share / expected - 1).max() < WIDTH * np.sqrt(2 / ROWS) + 0.005  # measured sizes are rounded
    assert gain(given, matrix(top), truth) < WIDTH
    assert gain(matrix(low), given, truth) < WIDTH
    found = audit(arranged_table, {"top": top, "earlier": same, "low": low}, attacks=("llse",), without=("utility",))
    assert found.state is not State.UNSOUND


def test_copies_that_ignore_the_earlier_one_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a path that does not pass through the earlier copy."""
    original, earlier = tables()
    made = adopt(original, earlier)
    monkeypatch.setattr(AdoptedScheme, "_share", lambda self, level: 0.0)
    scheme = made.policy.fit(made.table)
    [top] = scheme.release_levels(made.table, [0.8], KEY)
    arranged_table = scheme.arranged(made.table, KEY)
    given = np.column_stack([arranged_table.column(f"{n}_earlier") for n in ("age", "income")])
    assert gain(given, matrix(top), matrix(arranged_table)) > 2 * WIDTH


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda rng, _: rng.uniform(-1, 1, (ROWS, 2)) * SIZES * 3**0.5, "be normal"),
        (lambda rng, x: rng.normal(size=x.shape) * SIZES + 0.3 * (x - x.mean(axis=0)), "be independent of the numbers"),
        (lambda rng, x: rng.normal(size=x.shape) * SIZES * np.where(x[:, :1] > 50, 1.3, 0.6), "be independent"),
        (lambda rng, x: rng.normal(size=x.shape) * SIZES + SIZES, "have mean 0"),
    ],
)
def test_noise_that_does_not_fit_is_refused(make, reason: str) -> None:  # type: ignore[no-untyped-def]
    original, _ = tables()
    with pytest.raises(SourceError, match=reason):
        adopt(*tables(make(np.random.default_rng(1), matrix(original))))


def test_noise_of_another_size_than_stated_is_refused() -> None:
    with pytest.raises(SourceError, match="have the stated `sd`"):
        adopt(*tables(), sizes={"age": 9.0})


def test_correlated_noise_is_adopted() -> None:
    noise = np.random.default_rng(3).multivariate_normal([0, 0], [[64, 480], [480, 14_400]], ROWS)
    made = adopt(*tables(noise))
    [[found]] = made.policy.settings["adopted"]["correlations"]
    assert abs(found - 0.5) < 0.03
    scheme = made.policy.fit(made.table)
    [low] = scheme.release_levels(made.table, [0.3], KEY)
    added = matrix(low) - matrix(scheme.arranged(made.table, KEY))
    assert abs(np.atleast_2d(np.corrcoef(added.T))[0, 1] - 0.5) < 0.03


def test_records_that_were_not_released_have_noise_of_their_own() -> None:
    original, earlier = tables()
    made = adopt(original, earlier.slice(0, ROWS // 2), by=["id"])
    policy = sf.Policy.loads(made.policy.dumps().replace("[levels]", 'order = "keep"\n[levels]', 1))
    [top] = policy.fit(made.table).release_levels(made.table, [0.8], KEY)
    shares = [
        (matrix(top) - matrix(original))[part].var(axis=0) / SIZES**2 for part in (slice(20_000), slice(20_000, None))
    ]
    assert np.abs(shares[0] / shares[1] - 1).max() < WIDTH * np.sqrt(4 / (ROWS // 2))


def test_what_was_released_is_never_shown() -> None:
    original, earlier = tables()
    made = adopt(original, earlier)
    text = made.policy.dumps().replace('age_earlier = "drop"', 'age_earlier = "keep"')
    with pytest.raises(PolicyError, match="it is read, and must not be shown"):
        sf.Policy.loads(text).fit(made.table)


def test_a_copy_promises_no_error_that_its_noise_does_not_have() -> None:
    """The noise is independent, and the columns are nearly one: at lower levels a linear attacker averages them."""
    rng = np.random.default_rng(23)
    names, ids = ("a", "b", "c", "d"), pa.array(np.arange(4000))
    values = rng.normal(size=(4000, 1)) + 0.5 * rng.normal(size=(4000, 4))
    shown = values + 0.7 * rng.normal(size=values.shape)
    original, earlier = (pa.table({"id": ids, **dict(zip(names, of.T, strict=True))}) for of in (values, shown))
    made = adopt(original, earlier, by=["id"])
    scheme = made.policy.fit(made.table)
    copy = scheme.release(made.table, 0.3, KEY)
    manifest = Manifest.of(copy)
    estimate = ATTACKS["bayes"]().estimate(copy_evidence(copy, manifest))
    found = score(estimate, original_records(scheme.arranged(made.table, KEY), manifest.models))
    assert min(one.error.attack.estimate for one in found.numbers) < 0.65
    [promise] = [sentence for sentence in manifest.promises if sentence.startswith("Numbers")]
    assert "its shape was stated" in promise
    assert not any("vary together" in limit for limit in manifest.limits)


def test_a_record_must_be_released_whole() -> None:
    original, earlier = tables()
    made = adopt(original, earlier)
    holed = made.table.set_column(
        made.table.schema.get_field_index("age_earlier"),
        "age_earlier",
        pa.array(made.table.column("age_earlier").to_numpy(), mask=np.arange(ROWS) == 5),
    )
    with pytest.raises(SourceError, match="with all its numbers or not at all"):
        made.policy.fit(made.table).release(holed, "earlier", KEY)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, table in zip(("people", "given"), tables(), strict=True):
        pq.write_table(table, f"{name}.parquet")
    options = ["--id", "id", "-o", "policy.toml", "--joined", "joined.parquet"]
    done = CliRunner().invoke(main, ["adopt", "people.parquet", "given.parquet", *options])
    assert done.exit_code == 0, done.output
    assert "income: normal noise with standard deviation 1" in done.output
    assert "The earlier copy is the level 'earlier', of fidelity 0.64. Grant it to those who have it." in done.output
    vault = sf.Vault.create("vault")
    vault.add(sf.Policy.load("policy.toml"), "joined.parquet")
    vault.recipient("clinic")
    vault.grant("clinic", "people", "earlier")
    vault.release("clinic", "people", "copy.parquet")
    copy, given = (pq.read_table(name) for name in ("copy.parquet", "given.parquet"))
    ours, theirs = (np.sort(table.column("age").to_numpy()) for table in (copy, given))
    assert np.abs(ours - theirs).max() < 1e-3
    assert CliRunner().invoke(main, ["adopt", "people.parquet", "given.parquet", *options]).exit_code == 1
