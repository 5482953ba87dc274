"""MappedRows copies: what stays, what is hidden, what is refused, and what the owner is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from tests import realdata

import sfumato as sf
from sfumato.attacks.evidence.arrays import Array, linear_map_model
from sfumato.audit.audit import audit
from sfumato.audit.audit_input import AuditInput
from sfumato.audit.linear_map_risk import assess_linear_map, text
from sfumato.audit.soundness import soundness
from sfumato.errors import AttackError, PolicyError, ReleaseError
from sfumato.models.projection import distortion, worst_distortion
from sfumato.release.manifest import attach
from sfumato.vault import overview

TAKEN = 'accept = "this is a test"\n'


def policy(settings: str = TAKEN, *, size: int = 4, role: str = "rotation", rest: str = "") -> sf.Policy:
    columns = "".join(f'c{i} = "{role}"\n' for i in range(size))
    return sf.Policy.loads(f'dataset = "d"\n[levels]\na = 0.8\nb = 0.4\n[{role}]\n{settings}[columns]\n{columns}{rest}')


def values(table: pa.Table, names: list[str] | None = None) -> Array:
    return np.column_stack([table.column(name).to_numpy() for name in names or table.column_names])


@pytest.fixture
def table(rng: np.random.Generator) -> pa.Table:
    centres = rng.normal(size=(3, 4)) * 20
    real = centres[rng.integers(0, 3, 600)] + rng.gamma(2.0, size=(600, 4)) * [1, 2, 3, 4]
    return pa.table({f"c{i}": real[:, i] for i in range(4)})


@pytest.mark.parametrize("settings", ["", "translation = true\n"])
def test_mining_gives_what_the_original_gives(settings: str, table: pa.Table, key: sf.Key) -> None:
    scheme = policy(TAKEN + settings).fit(table)
    copy, real = values(scheme.release(table, "a", key)), values(scheme.arranged(table, key))
    np.testing.assert_allclose(pdist(copy), pdist(real), rtol=0, atol=1e-7)
    lengths = [np.linalg.norm(part, axis=1) for part in (copy, real)]
    assert np.allclose(lengths[0], lengths[1], rtol=0.01) == (settings == "")  # a translation hides them
    means = [KMeans(3, n_init=5, random_state=0).fit(part).labels_ for part in (copy, real)]
    assert len(set(zip(*means, strict=True))) == 3  # the same clusters, by whatever names
    np.testing.assert_allclose(linkage(copy), linkage(real), rtol=0, atol=1e-7)  # the same tree
    nearest = [NearestNeighbors(n_neighbors=4).fit(part).kneighbors(part)[1] for part in (copy, real)]
    assert (nearest[0] == nearest[1]).all()


def test_standardising_scaling_and_clipping(table: pa.Table, key: sf.Key) -> None:
    columns = 'c0 = { role = "rotation", scale = 3.0 }\nc1 = { role = "rotation", clip = [0, 10], max_clipped = 1 }\n'
    text = f'dataset = "d"\ndefault = "drop"\n[levels]\na = 0.5\n[rotation]\n{TAKEN}%s[columns]\n{columns}'
    plain, standard = (sf.Policy.loads(text % more).fit(table) for more in ("", "standardise = true\n"))
    for scheme in (plain, standard):
        copy = scheme.release(table, "a", key)
        [model] = sf.Manifest.of(copy).models
        real = values(scheme.arranged(table, key), ["c0", "c1"])
        standardised = (np.clip(real, [-np.inf, 0], [np.inf, 10]) - model.centre) / model.unit  # type: ignore[attr-defined]
        np.testing.assert_allclose(pdist(values(copy)), pdist(standardised), rtol=0, atol=1e-7)
        if scheme is standard:
            np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=3 / 32)
            np.testing.assert_allclose(standardised.std(axis=0, ddof=1), [3, 1], rtol=2 / 32)


def test_the_order_of_rows_is_secret(rng: np.random.Generator, key: sf.Key) -> None:
    """And the same for all levels; nothing of the table's order is left in it."""
    rows = 70_000  # more than a batch
    table = pa.table({"c0": np.arange(rows) * 1.0, "c1": rng.normal(size=rows), "row_number": np.arange(rows)})
    said = policy(TAKEN, size=2, rest='row_number = "keep"\n')
    one, other = said.fit(table).release_levels(table, ["a", "b"], key)
    row_numbers = one.column("row_number").to_numpy()
    assert row_numbers.tolist() == other.column("row_number").to_pylist()
    assert sorted(row_numbers) == list(range(rows))
    assert abs(np.corrcoef(row_numbers, np.arange(rows))[0, 1]) < 6 / np.sqrt(rows)
    stranger = said.fit(table).release(table, "a", sf.Key.generate()).column("row_number").to_numpy()
    assert abs(np.corrcoef(row_numbers, stranger)[0, 1]) < 6 / np.sqrt(rows)
    arranged = said.fit(table).arranged(table, key)
    assert arranged.column("row_number").to_pylist() == row_numbers.tolist()
    unshuffled = (
        policy(TAKEN + "shuffle = false\n", size=2, rest='row_number = "keep"\n').fit(table).release(table, "a", key)
    )
    assert unshuffled.column("row_number").to_pylist() == list(range(rows))


def test_a_name_would_undo_the_order(table: pa.Table, key: sf.Key) -> None:
    named = table.append_column("id", pa.array(range(600)))
    with pytest.raises(PolicyError, match="publish = false"):
        policy(rest='id = "id"\n').fit(named).release(named, "a", key)
    hidden = policy(rest='id = { role = "id", publish = false }\n').fit(named).release(named, "a", key)
    assert "id" not in hidden.column_names
    policy(TAKEN + "shuffle = false\n", rest='id = "id"\n').fit(named).release(named, "a", key)


def test_what_few_known_records_undo_is_refused(table: pa.Table, key: sf.Key, tmp_path: Path) -> None:
    scheme = policy("").fit(table)
    for attempt in (
        lambda: scheme.release(table, "a", key),
        lambda: sf.release_file(scheme, table, tmp_path / "copy.parquet", "a", key),
    ):
        with pytest.raises(ReleaseError, match=r"must withstand 10 .* known records? (is|are) enough"):
            attempt()
    assert not list(tmp_path.iterdir())
    for settings in (TAKEN, f"withstand = 1\n{TAKEN}"):
        assert len(policy(settings).fit(table).release(table, "a", key)) == 600
    noisy = sf.Policy.loads(policy("noise = true\n").dumps().replace("0.8", "0.99")).fit(table)
    with pytest.raises(ReleaseError, match="must withstand 10"):  # little noise
        noisy.release(table, "a", key)
    assert len(noisy.release(table, "b", key)) == 600
    wide = pa.table({f"c{i}": np.random.default_rng(i).normal(size=400) for i in range(40)})
    assert len(policy("", size=40).fit(wide).release(wide, "a", key)) == 400  # forty columns withstand ten records


def test_a_projection_to_fewer_dimensions_is_tested_too(key: sf.Key) -> None:
    """Nine known records give half of the others, although a dimension is lost."""
    values = realdata.cancer()[0].astype(float)
    table = pa.table({f"c{i}": values[:, i] for i in range(9)})
    scheme = policy("dimensions = 8\n", size=9, role="projection").fit(table)
    with pytest.raises(ReleaseError, match="role projection must withstand 10"):
        scheme.release(table, "a", key)
    taken = policy("dimensions = 8\n" + TAKEN, size=9, role="projection").fit(table)
    copy, original = taken.release(table, "a", key), taken.arranged(table, key)
    known = np.arange(0, 683, 76)
    estimate = sf.attack("known-rows", [copy], known=(known, original.take(known)))
    found = sf.score(estimate, original, leave_out=known, epsilon=0.15).breaches["euclidean"]
    assert found.attack.estimate > 0.3 + found.baseline.estimate
    few = policy("dimensions = 2\n", size=9, role="projection").fit(table)
    assert len(few.release(table, "a", key)) == 683  # seven lost dimensions protect


def test_a_copy_that_a_sample_undoes_is_refused(key: sf.Key) -> None:
    """Ten known records do not break 26 columns, but a sample of a thousand does."""
    skewed = np.random.default_rng(3).gamma(0.3, size=(4400, 26))
    skewed = (skewed - skewed.mean(axis=0)) / skewed.std(axis=0) * 1.2 ** np.arange(26)
    table = pa.table({f"c{i}": column for i, column in enumerate(skewed.T)})
    scheme = policy("", size=26).fit(table)
    with pytest.raises(ReleaseError, match=r"sample of 1,000 records"):
        scheme.release(table, "a", key)


def test_breaches_are_scored_before_the_map(rng: np.random.Generator, key: sf.Key) -> None:
    """A large mean hides no error where records are standardised."""
    table = pa.table({f"c{i}": 1000 + rng.normal(size=500) for i in range(4)})
    scheme = policy("standardise = true\n" + TAKEN).fit(table)
    copy, original = scheme.release(table, "a", key), scheme.arranged(table, key)
    known = np.arange(2)
    estimate = sf.attack("known-rows", [copy], known=(known, original.take(known)))
    found = sf.score(estimate, original, leave_out=known, epsilon=0.05).breaches["euclidean"]
    assert found.baseline.estimate < 0.01  # in raw units, the mean alone would be within a thousandth
    assert found.attack.estimate < 0.1


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> sf.Vault:
    monkeypatch.setenv("SFUMATO_PASSPHRASE", "a long passphrase")
    return sf.Vault.create(tmp_path / "vault")


def test_the_reason_enters_the_ledger(table: pa.Table, vault: sf.Vault, tmp_path: Path) -> None:
    vault.add(policy('accept = "the partner signed a contract"\n'), table)
    vault.recipient("bob")
    vault.grant("bob", "d", level="a")
    vault.release("bob", "d", tmp_path / "copy.parquet")
    [entry] = [entry for entry in vault.log() if entry.action == "released"]
    assert entry.body["accepted"] == {"rotation": "the partner signed a contract"}
    assert vault.verify().sound
    assert "c0, c1, c2, c3" in overview.dataset_overview(vault, "d")["linear maps, not included"]
    found = vault.audit("d")
    assert found.soundness.sound
    assert max(risk.recovered for risk in found.column_risks) > 0.95


def test_a_policy_that_would_always_be_refused_is_not_kept(table: pa.Table, vault: sf.Vault) -> None:
    with pytest.raises(ReleaseError, match="must withstand 10"):
        vault.add(policy(""), table)
    assert [entry.action for entry in vault.log()] == ["made"] or not vault.log()[1:]
    vault.add(policy(TAKEN), table)


def test_a_leak_is_traced_in_the_secret_order(vault: sf.Vault, tmp_path: Path) -> None:
    """One column with noise, and no ids: the row number in the copy is all that identifies a row."""
    rng = np.random.default_rng(5)
    people = pa.table({f"c{i}": rng.normal(size=3000) for i in range(4)} | {"age": rng.normal(50, 10, 3000)})
    vault.add(policy(rest='age = "gaussian"\n'), people, traced=True)
    for name in ("ann", "bob"):
        vault.recipient(name)
        vault.grant(name, "d", level="a")
        vault.release(name, "d", tmp_path / f"{name}.parquet")
    found = vault.trace("d", tmp_path / "ann.parquet")
    assert [suspect.recipients for suspect in found.suspects if suspect.accused] == [("ann",)]


def test_noise_before_a_turn_is_counted_as_other_noise_is(table: pa.Table, vault: sf.Vault, tmp_path: Path) -> None:
    vault.add(policy("noise = true\n"), table)
    vault.recipient("bob")
    vault.grant("bob", "d", level="b")
    vault.release("bob", "d", tmp_path / "copy.parquet")
    [entry] = [entry for entry in vault.log() if entry.action == "released"]
    assert entry.body["exposure"]["error"] == pytest.approx(0.6)
    assert "accepted" not in entry.body
    grown = table.set_column(0, "c0", pa.array(table.column("c0").to_numpy() * 20))
    vault.update("d", grown, replace=True)
    now, before = (np.linalg.eigvalsh(np.cov(values(one).T))[-1] for one in (grown, table))
    assert now > 2 * before
    assert vault.dataset("d").variance_ratio == pytest.approx(now / before, rel=0.1)


@pytest.mark.parametrize(
    "settings", ["noise = true\n", *(pytest.param(one, marks=pytest.mark.slow) for one in ("", "translation = true\n"))]
)
@pytest.mark.long
def test_an_audit_of_rotated_copies(settings: str, key: sf.Key) -> None:
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.gamma(2.0, size=5000) * (i + 1) for i in range(4)})
    scheme = policy(TAKEN + settings).fit(table)
    copies = dict(zip("ab", scheme.release_levels(table, ["a", "b"], key), strict=True))
    arranged = scheme.arranged(table, key)
    with pytest.raises(AttackError, match="secret row order"):
        audit(table, copies)
    found = audit(arranged, copies)
    assert found.soundness.sound
    assert (found.disclosed_columns == ()) == ("noise" in settings)  # without noise, known records disclose all columns
    assert found.soundness.checks
    assert {risk.column for risk in found.column_risks} == {"c0", "c1", "c2", "c3"}
    assert max(risk.recovered for risk in found.column_risks) > (0.6 if "noise" in settings else 0.95)
    swapped = arranged.set_column(3, "c3", pa.array(np.roll(arranged.column("c3").to_numpy(), 1)))
    assert not audit(swapped, copies, attacks=["known-sample"]).soundness.sound


def test_each_fault_of_rotated_copies_is_found(key: sf.Key) -> None:
    rng = np.random.default_rng(2)
    table = pa.table({f"c{i}": rng.gamma(2.0, size=5000) * (i + 1) for i in range(4)})

    def faults(settings: str, spoil: Callable[[Array, Array], tuple[Array, Array]]) -> set[str]:
        scheme = policy(TAKEN + settings).fit(table)
        made = scheme.release_levels(table, ["a", "b"], key)
        spoilt = zip("ab", spoil(*map(values, made)), made, strict=True)
        copies = {
            name: attach(pa.table(dict(zip(copy.column_names, rows.T, strict=True))), sf.Manifest.of(copy))
            for name, rows, copy in spoilt
        }
        return {alarm.fault for alarm in soundness(AuditInput.of(scheme.arranged(table, key), copies)).alarms}

    assert faults("", lambda a, b: (a, b)) == faults("noise = true\n", lambda a, b: (a, b)) == set()
    assert faults("", lambda a, b: (a * 1.001, b)) == {"distances are not preserved"}
    assert "some rows are not mapped like the others" in faults("", lambda a, b: (np.where(a == a[7], a[8], a), b))
    assert faults("noise = true\n", lambda a, b: (a, b + 0.3 * rng.normal(size=b.shape) * b.std()))
    gain = faults("noise = true\n", lambda a, b: (a, b + 0.2 * (a - a.mean(axis=0))))
    assert "combining them discloses more than the better one" in gain


@pytest.mark.long
def test_the_risk_is_assessed_before_a_rotation(table: pa.Table) -> None:
    found = assess_linear_map(policy(""), table)
    assert found.refused
    assert found.fewest_known_records in {1, 2, 3, 4}
    assert "DO NOT RELEASE" in text(found)
    taken = assess_linear_map(policy(TAKEN), table)
    assert not taken.refused
    assert "accepts the risk: this is a test" in text(taken)
    noisy = assess_linear_map(policy("noise = true\n"), table)
    assert noisy.known_records.curve[0].known_records == 1
    assert "at least as safe" in text(noisy)
    thrown = assess_linear_map(policy("dimensions = 30\n" + TAKEN, role="projection"), table)
    assert "no remedy" in text(thrown)
    assert thrown.summary()["released_dimensions"] == 30
    for rows in (1, 2):
        assert assess_linear_map(policy(""), table.slice(0, rows)).refused
    assert not assess_linear_map(policy(""), table.slice(0, 0)).refused
    with pytest.raises(PolicyError, match="rotation or projection"):
        assess_linear_map(
            sf.Policy.loads('dataset = "d"\ndefault = "drop"\n[levels]\na = 0.5\n[columns]\nc0 = "gaussian"\n'), table
        )


@pytest.mark.parametrize("ell", [4, 50, 2000])
def test_a_projection_keeps_distances_as_it_says(ell: int, table: pa.Table) -> None:
    """Of eight matrices, all pairs are within the bound that one in a million breaks."""
    for turn in range(8):
        key = sf.Key.from_bytes(bytes([turn]) * 32)
        scheme = policy(f"dimensions = {ell}\n{TAKEN}", role="projection").fit(table)
        copy = scheme.release(table.slice(0, 100), "a", key)
        kept = pdist(values(copy)) / pdist(values(scheme.arranged(table.slice(0, 100), key)))
        assert np.abs(kept - 1).max() < worst_distortion(ell, 4)
    assert distortion(ell, 0.5) < distortion(ell, 0.99) < worst_distortion(ell, 4)
    said = sf.Manifest.of(copy)
    assert f"projected to {ell}" in said.promises[0]
    assert any("no remedy" in limit for limit in said.limits)


def test_only_some_columns_cannot_be_shown(table: pa.Table, key: sf.Key) -> None:
    from sfumato.tables.view import View

    whole = table.append_column("ward", pa.array(["x"] * 600))
    scheme = policy(rest='ward = "keep"\n').fit(whole)
    with pytest.raises(PolicyError, match="shown together"):
        scheme.with_view(View(("rotated_1", "ward"))).release(whole, "a", key)
    assert scheme.with_view(View(("ward",))).release(whole, "a", key).column_names == ["ward"]


def test_which_attack_knows_what(table: pa.Table, key: sf.Key) -> None:
    scheme = policy().fit(table)
    copy = scheme.release(table, "a", key)
    found = sf.attack("known-input", [copy], known=table.slice(10, 4))
    assert found.explanation["linked"] == found.explanation["spanned"] == 4
    score = sf.score(found, scheme.arranged(table, key), epsilon=0.01)
    assert score.breaches["euclidean"].attack.estimate == 1
    with pytest.raises(AttackError, match="secret row order"):
        sf.score(found, table)
    with pytest.raises(AttackError, match="`guess` must"):
        sf.attack("known-input", [copy], known=table.slice(10, 4), guess="wild")
    wide = pa.table({f"c{i}": np.random.default_rng(i).normal(size=100) for i in range(14)})
    rotated = policy(size=14).fit(wide).release(wide, "a", key)
    with pytest.raises(AttackError, match="all reflections"):
        sf.attack("known-sample", [rotated], sample=wide, method="energy")


@pytest.mark.long
def test_tables_that_leave_an_attack_nothing_to_hold_on_to(key: sf.Key) -> None:
    """A column without variance, fewer distinct rows than columns, a sample smaller than the number of columns."""
    rng = np.random.default_rng(3)
    flat = pa.table({f"c{i}": rng.normal(size=500) if i else np.full(500, 3.0) for i in range(4)})
    few = pa.table({f"c{i}": np.repeat(rng.normal(size=2), 250) for i in range(4)})
    wide = pa.table({f"c{i}": rng.gamma(4.0, size=400) for i in range(30)})
    for table, size in ((flat, 4), (few, 4), (wide, 30)):
        assert assess_linear_map(policy(size=size), table).samples
    scheme = policy().fit(flat)
    copy = scheme.release(flat, "a", key)
    for name in ("known-input", "known-sample"):
        assert len(sf.attack(name, [copy], known=flat.slice(0, 100))) == 500
    with pytest.raises(AttackError, match="ica"):
        sf.attack("ica", [policy().fit(few).release(few, "a", key)], known=few.slice(0, 100))


def test_the_least_number_of_known_records_is_exact() -> None:
    """Whatever the number of columns: it is looked for between the numbers that the curve shows."""
    from sfumato.risk.breach import BREACHED_SHARE, assess_known_record_risk

    rng = np.random.default_rng(4)
    records = rng.normal(size=(2000, 100)) * 0.82 ** np.arange(100)
    found = assess_known_record_risk(records, linear_map_model(100))
    enough = found.fewest_known()
    assert enough is not None
    by_count = {point.known_records: point for point in found.curve}
    assert by_count[enough - 1].breached_share[-1] < BREACHED_SHARE <= by_count[enough].breached_share[-1]


def test_what_the_mean_finds_is_not_held_against_a_copy() -> None:
    """Records that are much alike are found within 15 % without any copy; where all are, the copy counts as broken."""
    from sfumato.risk.breach import BREACHED_SHARE, assess_known_record_risk

    rng = np.random.default_rng(6)
    found = assess_known_record_risk(10 + 1.7 * rng.normal(size=(2000, 6)), linear_map_model(6))
    assert 0.15 < found.baseline[-1] < 0.6
    assert found.curve[0].breached_share[-1] >= BREACHED_SHARE  # one known record, and no more than the mean tells
    assert found.fewest_known() == 2
    assert assess_known_record_risk(10 + 0.1 * rng.normal(size=(2000, 6)), linear_map_model(6)).fewest_known() == 1


def test_a_view_has_an_order_of_its_own(table: pa.Table, key: sf.Key) -> None:
    from sfumato.tables.view import View

    whole = table.append_column("ward", pa.array(["x", "y", "z"] * 200))
    scheme = policy(rest='ward = "keep"\n').fit(whole).with_view(View(None, "ward == 'y'"))
    copy = scheme.release(whole, "a", key)
    arranged = scheme.arranged(whole, key)
    assert len(copy) == len(arranged) == 200
    names = [f"c{i}" for i in range(4)]
    np.testing.assert_allclose(
        pdist(values(copy, [f"rotated_{i + 1}" for i in range(4)])), pdist(values(arranged, names))
    )


def test_one_turn_a_table(table: pa.Table) -> None:
    with pytest.raises(PolicyError, match="has one linear map"):
        sf.Policy.loads(
            'dataset = "d"\n[levels]\na = 0.5\n[columns]\n'
            'c0 = "rotation"\nc1 = "rotation"\nc2 = "projection"\nc3 = "projection"\n'
        )
    with pytest.raises(PolicyError, match="needs a reason"):
        policy("withstand = 3\n")
    with pytest.raises(PolicyError, match="between 1e-9 and 1e9"):
        sf.Policy.loads(
            'dataset = "d"\n[levels]\na = 0.5\n[columns]\nc0 = { role = "rotation", scale = 1e90 }\nc1 = "rotation"\n'
        )
    with pytest.raises(PolicyError, match="must be a table"):
        sf.Policy.loads('rotation = 3\ndataset = "d"\n[levels]\na = 0.5\n[columns]\nc0 = "rotation"\nc1 = "rotation"\n')
