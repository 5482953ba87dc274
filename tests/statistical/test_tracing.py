"""Traitor tracing: innocent recipients have standard normal scores for any file, and the source is identified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.leaks import DAMAGES, damaged

import sfumato as sf
from sfumato.experiments._leaked_copies import NUMBERS, POLICY, patients, two_significant_digits, vault_with_recipients
from sfumato.tables.source import Source
from sfumato.vault.leak_alignment import Leak, alignments, close_alignments
from sfumato.vault.likelihood_ratio import score
from sfumato.vault.suspects import release_groups
from sfumato.vault.traced_columns import traced_columns
from sfumato.vault.tracing import _Scores

from . import pvalues as p
from .conftest import Verdict
from .pvalues import Array

TIMES = [0.0, *(1 + np.arange(1, 31) / 1024)]
APART = range(2, 30, 3)  # copies that are not neighbours: given the others, their scores are independent
MARGINS = POLICY.replace("gaussian", "copula") + 'ward = "copula"\n'


def _with_ties(rows: int, rng: np.random.Generator) -> pa.Table:
    """Patients with whole ages, some of them missing, weights in fives, and wards that depend on the income."""
    table = patients(rows, rng)
    age, weight = np.round(table["age"].to_numpy()), 5 * np.round(table["weight"].to_numpy() / 5)
    ward = np.array(["east", "north", "west"])[np.digitize(table["income"].to_numpy(), [24_000, 32_000])]
    table = table.set_column(1, "age", pa.array(age.astype(np.int64), mask=rng.random(rows) < 0.1))
    return table.set_column(4, "weight", pa.array(weight)).append_column("ward", pa.array(ward))


def _noise(rng: np.random.Generator, rows: int, factor: Array) -> Array:
    steps = np.sqrt(np.diff(TIMES))[:, None, None] * rng.normal(size=(len(TIMES) - 1, len(factor), rows))
    path = np.concatenate([np.zeros((1, len(factor), rows)), steps.cumsum(axis=0)])
    out: Array = np.einsum("ab,tbr->tar", factor, path)
    return out


@pytest.mark.statistical(checks=2)
def test_an_innocent_score_is_standard_normal(verdict: Verdict, rng: np.random.Generator) -> None:
    """For four kinds of files: a damaged copy of another recipient, the original, a mixture of two, and other data."""
    factor = np.array([[2.0, 0, 0], [1.0, 1.0, 0], [0.3, 0.2, 5.0]])
    shape, rows = factor @ factor.T, 400
    innocent: list[float] = []
    guilty: list[float] = []
    biased: list[float] = []
    for trial in range(120):
        truth = np.array([[10.0], [100.0], [0.0]]) + factor @ rng.normal(size=(3, rows))
        noise = _noise(rng, rows, factor)
        thief, friend = 3 * int(rng.integers(1, 9)), 3 * int(rng.integers(1, 9)) + 1
        kinds = [
            two_significant_digits(truth + noise[thief]),
            truth,
            truth + np.where(rng.random((3, rows)) < 0.5, noise[thief], noise[friend]),
            rng.normal(size=(3, rows)),
        ]
        cells = kinds[trial % 4]
        cells = np.where(rng.random((3, rows)) < 0.1, rng.permutation(cells.ravel()).reshape(cells.shape), cells)
        scores = {j: score(cells, truth, noise, TIMES, j, shape).z for j in APART if j not in (thief, friend)}
        innocent += scores.values()
        if trial % 4 == 0:
            guilty.append(score(cells, truth, noise, TIMES, thief, shape).z)
        # a faulty variance, which ignores the correlation of the columns
        plain = np.diag(np.diag(shape))
        biased += [score(cells, truth, noise, TIMES, j, 0.7 * plain).z for j in APART if j not in (thief, friend)]
    sample = np.array(innocent)
    verdict.accept(p.normal_p(sample), "scores of the innocent are standard normal")
    verdict.accept(p.variance_p(sample, 1.0), "with variance 1")
    verdict.reject(p.variance_p(np.array(biased), 1.0), "a wrong covariance")
    verdict.reject(p.normal_p(np.array(guilty)), "the scores of the source")


@pytest.mark.statistical(checks=2)
@pytest.mark.parametrize(
    ("policy", "made"),
    [
        pytest.param(POLICY, patients, marks=pytest.mark.slow, id="gaussian"),
        pytest.param(MARGINS, _with_ties, id="copula"),
    ],
)
def test_matching_by_values_accuses_nobody(
    verdict: Verdict,
    rng: np.random.Generator,
    tmp_path: Path,
    policy: str,
    made: Callable[[int, np.random.Generator], pa.Table],
) -> None:
    """Without ids, each row of an unrelated file is matched to the nearest one, which must not count as evidence.

    Files are scored by the two searches in turn, since the scores of one file in both are not independent.
    """
    vault = vault_with_recipients(str(tmp_path), made(1500, rng), 24, policy)
    with vault.ledger.reading(vault.keys()) as reading:
        [group], _ = release_groups(reading, "clinic", vault.store, vault.keys())
    traced, sample = traced_columns(group.dataset.scheme, [*NUMBERS, "ward"]), []
    assert traced is not None
    assert vault.trace("clinic", made(1400, rng).drop(["id"])).accused == ()
    for turn in range(8):
        leak = Leak.of(Source.of(made(1400, rng).drop(["id"])), 10_000, traced.columns)
        found: dict[float, float] = {}
        for match in (alignments, close_alignments)[turn % 2](group, traced, leak):
            found |= {copy.fidelity: one.z for copy, one in _Scores(group, match, traced).of_all().items()}
        assert len(found) == 24
        sample += [found[fidelity] for fidelity in sorted(found)[1::3]]
    verdict.accept(p.normal_p(np.array(sample)), "scores after matching are standard normal")
    verdict.accept(p.variance_p(np.array(sample), 1.0), "with variance 1")
    verdict.reject(p.variance_p(np.array(sample) * 3, 1.0), "a variance that is nine times too large")


@pytest.mark.parametrize("ids", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_source_of_a_leak_is_identified(rng: np.random.Generator, tmp_path: Path, ids: bool) -> None:
    """Among 20 recipients, after each kind of damage and all together; the false-alarm rate is below 1e-6."""
    vault = vault_with_recipients(str(tmp_path), patients(3000, rng), 20)
    for damages in [set(), *({damage} for damage in DAMAGES), set(DAMAGES)]:
        thief = f"r{rng.integers(20)}"
        copy = sf.read_copy(Path(vault.location) / f"copies/clinic/{thief}.v1.parquet")
        found = vault.trace("clinic", damaged(copy, damages, rng, ids=ids))
        if not found.accused and not ids and len(damages) == len(DAMAGES):
            continue  # 3,000 rows without ids may not be enough after everything; nobody may be accused wrongly
        assert [suspect.recipients for suspect in found.accused] == [(thief,)], (damages, found.suspects[:2])


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        pytest.param(["id", "age", "income", "systolic", "weight", "ward"], 3000, marks=pytest.mark.slow),
        (["age", "income", "systolic", "weight", "ward"], 3000),
        (["id", "age", "weight", "ward"], 12_000),  # nothing but values that repeat
    ],
)
def test_a_margin_preserving_copy_is_traced(
    rng: np.random.Generator, tmp_path: Path, columns: list[str], rows: int
) -> None:
    table = _with_ties(rows, rng)
    vault = vault_with_recipients(str(tmp_path), table, 8, MARGINS)
    copy = sf.read_copy(Path(vault.location) / "copies/clinic/r3.v1.parquet").select(columns)
    found = vault.trace("clinic", copy.take(rng.permutation(rows)[: 3 * rows // 4]))
    assert [suspect.recipients for suspect in found.accused] == [("r3",)], found.suspects[:3]
    assert found.original_share < 0.02
    original = vault.trace("clinic", table.select(columns))
    assert original.accused == ()
    assert original.original_share > 0.9 or not {"id", "income"} <= set(columns)


def test_both_sources_of_a_mixture_are_identified(rng: np.random.Generator, tmp_path: Path) -> None:
    vault = vault_with_recipients(str(tmp_path), patients(3000, rng), 8)
    one, two = (sf.read_copy(Path(vault.location) / f"copies/clinic/r{n}.v1.parquet") for n in (2, 5))
    names = ["age", "income", "systolic", "weight"]
    pick = rng.random(3000) < 0.5
    mixtures: dict[str, Callable[[Array, Array], Array]] = {
        "average": lambda a, b: (a + b) / 2,
        "either": lambda a, b: np.where(pick, a, b),
        "difference": lambda a, b: 2 * a - b,  # the weight of the second copy is negative
    }
    for mix, combine in mixtures.items():
        cells = {name: combine(one[name].to_numpy(), two[name].to_numpy()) for name in names}
        found = vault.trace("clinic", pa.table({"id": one["id"], **cells}))
        assert {suspect.recipients[0] for suspect in found.accused} == {"r2", "r5"}, mix


@pytest.mark.parametrize("digits", [9, 1])
def test_two_columns_in_another_order_are_traced(rng: np.random.Generator, tmp_path: Path, digits: int) -> None:
    """Many rows are near each other in two columns; noise that is very close to that of a copy tells them apart."""
    vault = vault_with_recipients(str(tmp_path), patients(20_000, rng), 3)
    copy = sf.read_copy(Path(vault.location) / "copies/clinic/r1.v1.parquet").select(["age", "weight"])
    stolen = copy.take(rng.permutation(20_000)[:3000])
    rounded = pa.table({name: stolen[name].to_numpy().round(digits) for name in stolen.column_names})
    found = vault.trace("clinic", rounded)
    assert found.matched_by in ("values", "close values")  # once in fifty, the first search is enough
    assert [suspect.recipients for suspect in found.accused] == [("r1",)], found.suspects[:2]


def test_versions_share_the_noise_of_unchanged_records(rng: np.random.Generator, tmp_path: Path) -> None:
    """One recipient holds the second version too, which must not make her the source of the other's first version."""
    table = patients(3000, rng)
    vault = vault_with_recipients(str(tmp_path), table, 2)
    ages = np.array(table["age"].to_numpy())
    ages[:10] += 1
    vault.update("clinic", table.set_column(1, "age", pa.array(ages)))
    vault.release("r0", "clinic")
    copies = {name: sf.read_copy(Path(vault.location) / f"copies/clinic/{name}.parquet") for name in ("r0.v2", "r1.v1")}
    for name, copy in copies.items():
        for damages in (set(), set(DAMAGES)):
            found = vault.trace("clinic", damaged(copy, damages, rng))
            assert [suspect.recipients for suspect in found.accused] == [(name[:2],)], (name, damages)


def test_recipients_of_the_same_copy_are_suspected_together(rng: np.random.Generator, tmp_path: Path) -> None:
    """Two versions without fingerprints differ in a few records."""
    table = patients(2000, rng)
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(sf.Policy.loads(POLICY), table)
    for name in ("early", "late", "other"):
        vault.recipient(name)
        vault.grant(name, "clinic", "public" if name == "other" else "partner")
    path, _ = vault.release("early", "clinic")
    vault.release("other", "clinic")
    vault.update("clinic", table.slice(5))
    vault.release("late", "clinic")
    [suspect] = vault.trace("clinic", path).accused
    assert set(suspect.recipients) == {"early", "late"}


@pytest.mark.parametrize("beside", [0.71875, 0.75 - 2**-10, 0.75 + 2**-10, 0.75])
def test_a_copy_that_the_restored_ledger_lacks_accuses_nobody(
    rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: float
) -> None:
    """Carol received a copy after the backup from which the vault was restored; Dave is registered after it.

    Carol's fingerprint is 3/4 of the band; Dave's is `beside` plus `2^-16`, as once in many restorations.
    """
    number = int(f"{int(beside * 2**15):015b}"[::-1], 2)
    monkeypatch.setattr("sfumato.vault.fingerprints.secrets.randbits", lambda bits: number - 3)
    vault = vault_with_recipients(str(tmp_path), patients(3000, rng), 2)
    vault.backup(tmp_path / "old.tar")
    vault.recipient("carol")
    vault.grant("carol", "clinic", "partner")
    leaked, _ = vault.release("carol", "clinic", tmp_path / "carol.parquet")
    key = sf.Key.load(tmp_path / "vault.key")
    again = sf.Vault.restore(tmp_path / "old.tar", tmp_path / "again", secret=key)
    found = again.trace("clinic", leaked)
    assert found.accused == ()
    assert any(suspect.unrecorded for suspect in found.suspects)
    again.recipient("dave")
    again.grant("dave", "clinic", "partner")
    copy, manifest = again.release("dave", "clinic")
    assert manifest.fidelity != sf.Manifest.of(leaked).fidelity  # nobody gets a fingerprint that may have been used
    assert again.trace("clinic", leaked).accused == ()
    assert [suspect.recipients for suspect in again.trace("clinic", copy).accused] == [("dave",)]


@pytest.mark.parametrize("level", [0.6, 0.45, 0.3])
def test_a_copy_made_without_the_vault_accuses_nobody(rng: np.random.Generator, tmp_path: Path, level: float) -> None:
    table, master = patients(3000, rng), sf.Key.generate()
    policy = sf.Policy.loads(POLICY)
    loose = policy.fit(table).release(table, level, master)
    vault = sf.Vault.create(tmp_path / "vault", key=master)
    vault.add(policy, table)
    for name, granted in (("alice", "internal"), ("bob", "partner"), ("eve", "public")):
        vault.recipient(name)
        vault.grant(name, "clinic", granted)
        vault.release(name, "clinic")
    found = vault.trace("clinic", loose)
    assert found.accused == ()
    assert any(suspect.unrecorded for suspect in found.suspects)


def test_only_recipients_with_the_leaked_cells_are_suspected(rng: np.random.Generator, tmp_path: Path) -> None:
    """Copies of one level without fingerprints: of one column, of some rows, and of a version that others lack."""
    table = patients(4000, rng).append_column("half", pa.array(np.arange(4000) % 2))
    vault = sf.Vault.create(tmp_path / "vault")
    vault.add(sf.Policy.loads(POLICY + 'half = "keep"\n'), table.slice(0, 2000))
    for name in ("xavier", "zoe", "yan", "odd"):
        vault.recipient(name)
    vault.grant("xavier", "clinic", "partner", columns=["id", "age"])
    vault.grant("odd", "clinic", "partner", where="half == 1")
    for name in ("zoe", "yan"):
        vault.grant(name, "clinic", "partner")
    for name in ("xavier", "zoe", "odd"):
        vault.release(name, "clinic")
    vault.update("clinic", table)
    path, _ = vault.release("yan", "clinic")
    full = sf.read_copy(path)
    first = pc.is_in(full["id"], value_set=table.slice(0, 2000)["id"])
    late = full.filter(pc.invert(first)).select(["id", "income"])
    assert [s.recipients for s in vault.trace("clinic", late).accused] == [("yan",)]
    early = full.filter(first).filter(pc.field("half") == 0).select(["id", "income"])
    [suspect] = vault.trace("clinic", early).accused
    assert set(suspect.recipients) == {"yan", "zoe"}


def test_cells_that_are_not_numbers_are_ignored(rng: np.random.Generator, tmp_path: Path) -> None:
    vault = vault_with_recipients(str(tmp_path), patients(1000, rng), 3)
    path, _ = vault.release("r1", "clinic", tmp_path / "copy.csv")
    (tmp_path / "leak.csv").write_text(path.read_text() + '"total","n/a","x","","?"\n')
    assert [s.recipients for s in vault.trace("clinic", tmp_path / "leak.csv").accused] == [("r1",)]


def test_a_large_file_without_ids_is_matched_by_row_order(rng: np.random.Generator, tmp_path: Path) -> None:
    rows = 140_000
    vault = sf.Vault.create(tmp_path / "vault")
    policy = 'dataset = "clinic"\norder = "keep"\n[levels]\na = 0.5\nb = 0.3\n[columns]\nage = "gaussian"\n'
    vault.add(sf.Policy.loads(policy), pa.table({"age": rng.normal(size=rows)}))
    for name in ("a", "b"):
        vault.recipient(name)
        vault.grant(name, "clinic", name)
        path, _ = vault.release(name, "clinic")
    found = vault.trace("clinic", path)
    assert ([s.recipients for s in found.accused], found.matched_by, found.rows) == ([("b",)], "row order", rows)


@pytest.mark.slow
def test_a_thousand_leaks(rng: np.random.Generator, tmp_path: Path) -> None:
    """100 recipients of one level, 10,000 x 4 cells: the source is always identified, and nobody for unrelated files.

    Every tenth file has no ids either.
    """
    table = patients(10_000, rng)
    vault = vault_with_recipients(str(tmp_path), table, 100)
    for trial in range(1000):
        thief = f"r{rng.integers(100)}"
        copy = sf.read_copy(Path(vault.location) / f"copies/clinic/{thief}.v1.parquet")
        damages = set(DAMAGES) if trial % 2 else {damage for damage in DAMAGES if rng.random() < 0.5}
        found = vault.trace("clinic", damaged(copy, damages, rng, ids=trial % 10 != 0))
        assert [suspect.recipients for suspect in found.accused] == [(thief,)], (trial, damages, found.suspects[:2])
    for trial in range(100):
        foreign = patients(10_000, rng)
        if trial % 2:  # the same records, perturbed with another key
            foreign = (
                sf.Policy.loads(POLICY.replace('"clinic"', '"other"'))
                .fit(table)
                .release(table, "partner", sf.Key.generate())
            )
        assert vault.trace("clinic", foreign).accused == ()
