"""The vault in both databases: its entries, its errors, and that repeating an operation changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests import wards
from tests.conftest import Site

import sfumato as sf
from sfumato.errors import CustodyError, GrantError, PolicyError, SourceError, VaultError
from sfumato.ledger.reader import Query
from sfumato.release.certificate import check
from sfumato.vault.dataset_entries import first_variance_ratio, variance_ratio
from sfumato.vault.messages import version_warnings


def test_a_release_is_the_copy_that_the_scheme_makes(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    path, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
    loose = wards.policy().fit(wards.table()).release(wards.table(), "partner", vault.keys()[1])
    assert sf.read_copy(path).equals(loose)
    assert manifest.digest == sf.Manifest.of(loose).digest
    assert check(path, vault.public_key) == manifest
    [entry] = vault.log(Query(action="released"))
    assert (entry.recipient, entry.body["digest"], entry.body["rows"]) == ("clinic", manifest.digest, wards.ROWS)
    assert (manifest.recipient, manifest.version, manifest.level) == ("clinic", 1, "partner")


def test_repeating_changes_nothing(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner", columns=["age"], until="2999-01-01")
    first, _ = vault.release("clinic", "ward", tmp_path / "a.parquet")
    before = vault.log()
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.recipient("clinic", note="St. Mary's")
    vault.grant("clinic", "ward", "partner", columns=["age"], until="2999-01-01")
    vault.update("ward", wards.table())
    second, _ = vault.release("clinic", "ward", tmp_path / "b.parquet")
    assert vault.log() == before
    assert second.read_bytes() == first.read_bytes()


def test_a_view_has_the_noise_of_the_full_copy(vault: sf.Vault, tmp_path: Path) -> None:
    vault.recipient("all")
    vault.grant("all", "ward", "partner")
    vault.grant("clinic", "ward", "partner", columns=["region", "income"], where="region == 'north' and id >= 1100")
    full = sf.read_copy(vault.release("all", "ward", tmp_path / "full.parquet")[0])
    part = sf.read_copy(vault.release("clinic", "ward", tmp_path / "part.csv")[0])
    expected = full.filter((pc.field("region") == "north") & (pc.field("id") >= 1100)).select(["region", "income"])
    assert part.replace_schema_metadata(None).equals(expected.replace_schema_metadata(None))
    manifest = sf.Manifest.of(tmp_path / "part.csv")
    manifest.verify(tmp_path / "part.csv")
    assert [model.columns for model in manifest.models] == [("income",), ("region",)]
    assert any("Only the rows with region == 'north' and id >= 1100" in limit for limit in manifest.limits)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("age > 40", "may only use columns that are released unchanged"),
        ("salary > 40", "may only use columns that are released unchanged"),
        ("__import__('os').system('true')", "compares a column with constants"),
        ("region == age", "compared with a number, a string"),
        ("region =", "must be a comparison"),
        ("1 < id < 3", "compares a column with constants"),
    ],
)
def test_invalid_conditions(vault: sf.Vault, where: str, reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        vault.grant("clinic", "ward", "partner", where=where)
    assert vault.grants() == []


def test_errors(vault: sf.Vault, tmp_path: Path) -> None:
    out = tmp_path / "copy.parquet"
    entries = len(vault.log())
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: vault.release("clinic", "ward", out), GrantError, "has none"),
        (lambda: vault.release("clinc", "ward", out), VaultError, "did you mean 'clinic'"),
        (lambda: vault.grant("clinic", "wrad", "partner"), VaultError, "did you mean 'ward'"),
        (lambda: vault.grant("clinic", "ward", "parner"), sf.SfumatoError, "did you mean 'partner'"),
        (lambda: vault.grant("clinic", "ward", 1.5), sf.SfumatoError, "strictly between 0"),
        (lambda: vault.grant("clinic", "ward", "partner", columns=["agee"]), PolicyError, "did you mean 'age'"),
        (lambda: vault.grant("clinic", "ward", "partner", columns=[]), PolicyError, "at least one column"),
        (lambda: vault.grant("clinic", "ward", "partner", until="soon"), VaultError, "written like 2026-12-31"),
        (lambda: vault.recipient("../etc"), VaultError, "letters, digits"),
        (lambda: vault.revoke("clinic", "ward"), VaultError, "has no grant"),
        (lambda: vault.add(wards.policy(), wards.table(seed=4)), VaultError, "sfumato update ward"),
        (lambda: vault.add(wards.policy("a b"), wards.table()), VaultError, "letters, digits"),
        (lambda: vault.update("ward", wards.table().drop(["age"])), SourceError, "'age' is missing"),
        (lambda: vault.trace("ward", wards.table()), VaultError, "no copy of this dataset was released"),
    ]
    for call, error, reason in calls:
        with pytest.raises(error, match=reason):
            call()
    assert len(vault.log()) == entries
    assert not out.exists()


def test_an_update_with_an_unknown_category_changes_nothing(vault: sf.Vault) -> None:
    bad = wards.changed(wards.table(), "diagnosis", slice(0, 1), "plague")
    with pytest.raises(sf.SfumatoError, match="plague"):
        vault.update("ward", bad)
    assert vault.dataset("ward").version == 1
    assert vault.verify().notes == []


def test_grants_end(site: Site, tmp_path: Path) -> None:
    now = [dt.datetime(2026, 5, 1, tzinfo=dt.UTC)]
    vault = site.create(clock=lambda: now[0])
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", 0.37, until="2026-05-31")
    now[0] = dt.datetime(2026, 5, 31, 23, 59, tzinfo=dt.UTC)
    vault.release("clinic", "ward", tmp_path / "a.parquet")
    now[0] = dt.datetime(2026, 6, 1, 0, 0, tzinfo=dt.UTC)
    with pytest.raises(GrantError, match="ended at 2026-06-01"):
        vault.release("clinic", "ward", tmp_path / "b.parquet")
    vault.grant("clinic", "ward", 0.37)
    vault.revoke("clinic", "ward")
    assert vault.revoke("clinic", "ward").action == "revoked"
    with pytest.raises(GrantError, match="was revoked on 2026-06-01"):
        vault.release("clinic", "ward", tmp_path / "b.parquet")
    vault.grant("clinic", "ward", 0.37)
    vault.disable("clinic")
    with pytest.raises(GrantError, match="was disabled"):
        vault.release("clinic", "ward", tmp_path / "b.parquet")
    with pytest.raises(GrantError, match="was disabled"):
        vault.recipient("clinic")
    vault.enable("clinic")
    vault.release("clinic", "ward", tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_grant_that_is_revoked_while_the_copy_is_made_stops_it(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    out = tmp_path / "copy.parquet"

    def revoke(_: int) -> None:
        vault.revoke("clinic", "ward")

    with pytest.raises(GrantError, match="was revoked"):
        vault.release("clinic", "ward", out, progress=revoke)
    assert list(tmp_path.glob("copy*")) == []
    assert vault.log(Query(kind="release")) == []


def test_versions_record_changes_and_repeated_noise_draws(vault: sf.Vault, tmp_path: Path) -> None:
    """Records: 10 deleted, 20 with another number, 5 with another category, 3 appended."""
    vault.grant("clinic", "ward", "partner")
    first = sf.read_copy(vault.release("clinic", "ward", tmp_path / "1.parquet")[0])
    later = wards.changed(wards.table(), "age", slice(50, 70), 1.0)
    later = wards.changed(later, "diagnosis", slice(100, 105), "flu")
    changed = int(pc.sum(pc.not_equal(later["diagnosis"], wards.table()["diagnosis"])).as_py())
    extra = wards.table(3, seed=9).set_column(0, "id", pa.array([1, 2, 3]))
    later = pa.concat_tables([extra, later.slice(10)])
    entry = vault.update("ward", later)
    assert entry.body["changes"] == {
        "appended": 3,
        "deleted": 10,
        "changed": 20 + changed,
        "redrawn": 20,
        "unchanged": 290 - 20 - changed,
    }
    [warning] = version_warnings(entry)
    assert warning.startswith("SECOND NOISE: 20 records have new noise")
    assert "33.3% instead of 50.0%" in warning  # level 0.5: the mean of two copies
    second = sf.read_copy(vault.release("clinic", "ward", tmp_path / "2.parquet")[0])
    kept, again = (
        dict(zip(copy["id"].to_pylist(), copy["income"].to_pylist(), strict=True)) for copy in (first, second)
    )
    same = [record for record in kept if record in again and kept[record] == again[record]]
    assert len(same) == 270  # an unchanged record keeps its noise; a changed number redraws all of that record's
    [_, release] = vault.log(Query(kind="release"))
    assert release.body["exposure"]["draws"] == {"1": 283, "2": 20}
    assert release.body["exposure"]["error"] == pytest.approx(1 / (1 + 2 / 1.0), rel=0.05)  # and a little drift
    assert vault.log(Query(kind="release"))[0].body["exposure"] == {"draws": {"1": 300}, "error": 0.5, "alone": 0.5}


def test_rows_are_appended_and_a_repeated_command_appends_once(vault: sf.Vault, tmp_path: Path) -> None:
    """Text files, dictionary columns and another order of columns are taken as `update` takes them."""
    vault.grant("clinic", "ward", "partner")
    first = sf.read_copy(vault.release("clinic", "ward", tmp_path / "1.parquet")[0])
    more = wards.table(340).slice(wards.ROWS)
    pa.csv.write_csv(more.select(["income", "age", "id", "region", "diagnosis"]), tmp_path / "day.csv")
    entry = vault.append("ward", tmp_path / "day.csv")
    changes = {"appended": 40, "deleted": 0, "changed": 0, "redrawn": 0, "unchanged": wards.ROWS}
    assert (entry.body["rows"], entry.body["changes"]) == (340, changes)
    assert vault.append("ward", more) == entry
    second = sf.read_copy(vault.release("clinic", "ward", tmp_path / "2.parquet")[0])
    earlier = second.filter(pc.is_in(second["id"], value_set=first["id"]))
    assert earlier.equals(first)
    assert vault.dataset("ward").version == 2
    with pytest.raises(SourceError, match="id"):
        vault.append("ward", more.slice(1))  # the same records again, one fewer
    assert vault.verify().sound


def test_an_update_that_loses_records_must_be_told_so(vault: sf.Vault) -> None:
    day = wards.table(400).slice(wards.ROWS)
    files = vault.store.names()
    with pytest.raises(VaultError, match=r"lacks 300 of the 300 records of ward; .* `sfumato append ward FILE`"):
        vault.update("ward", day)
    with pytest.raises(VaultError, match=r"at least 95% of the records, and this table lacks 16 of the 300"):
        vault.update("ward", wards.table().slice(16))
    assert vault.store.names() == files
    assert vault.update("ward", wards.table().slice(15)).body["changes"]["deleted"] == 15
    assert vault.update("ward", day, replace=True).body["changes"]["deleted"] == 285


def test_without_ids_an_update_must_leave_records_in_their_rows(site: Site) -> None:
    """Dropping the first row gives each record the row number of its neighbour, and so new noise."""
    vault, table = site.create(), wards.table().drop(["id"])
    vault.add(sf.Policy.loads(wards.POLICY.replace('id = "id"\n', "")), table)
    with pytest.raises(VaultError, match=r"299 of the 300 rows of ward would change and get new noise.*an id column"):
        vault.update("ward", table.slice(1))
    more = wards.table(310).slice(300).drop(["id"])
    assert vault.append("ward", more).body["changes"]["unchanged"] == 300
    corrected = wards.changed(pa.concat_tables([table, more]), "age", slice(0, 9), 1.0)
    assert vault.update("ward", corrected).body["changes"]["redrawn"] == 9
    assert vault.update("ward", table.slice(1), replace=True).body["changes"]["deleted"] == 11


def test_a_restored_value_is_no_new_noise_draw(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    there = wards.changed(wards.table(), "age", slice(0, 7), 1.0)
    for number, version in enumerate([wards.table(), there, wards.table()]):
        if number:
            vault.update("ward", version)
        vault.release("clinic", "ward", tmp_path / f"{number}.parquet")
    exposure = vault.log(Query(kind="release"))[-1].body["exposure"]
    assert exposure == {
        "draws": {"1": 293, "2": 7},
        "error": pytest.approx(1 / 3, rel=1e-2),
        "alone": pytest.approx(0.5),
    }
    assert sf.read_copy(tmp_path / "0.parquet").equals(sf.read_copy(tmp_path / "2.parquet"))


def test_drift_is_recorded_and_the_first_covariance_stays(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "1.parquet")
    ages = wards.table()["age"].to_numpy()
    wide = wards.table().set_column(2, "age", pa.array(45 + 3 * (ages - 45)))
    entry = vault.update("ward", wide)
    assert variance_ratio(entry.body) > 4
    assert first_variance_ratio(entry.body) == 1
    vault.release("clinic", "ward", tmp_path / "2.parquet")
    one, two = (sf.Manifest.of(tmp_path / f"{i}.parquet") for i in (1, 2))
    assert one.models == two.models
    assert one.scheme == two.scheme
    similar = vault.update("ward", wards.changed(wards.table(), "age", slice(0, 3), 1.0))
    assert variance_ratio(similar.body) < 1.25
    repeated = vault.log(Query(kind="release"))[-1].body["exposure"]
    assert repeated["alone"] < 0.2  # at fidelity 0.5: the residual error is smaller because of the drift


def test_the_residual_error_of_smaller_noise_is_recorded(site: Site, tmp_path: Path) -> None:
    """With a tenth of the noise in one column, or too small a declared spread, the worst column counts."""
    for number, option in enumerate(["scale = 0.1", "spread = 1.8"]):
        vault = site.create()
        text = wards.POLICY.replace('age = "gaussian"', f'age = {{ role = "gaussian", {option} }}')
        vault.add(sf.Policy.loads(text), wards.table())
        vault.recipient("clinic")
        vault.grant("clinic", "ward", "partner")
        vault.release("clinic", "ward", tmp_path / f"{number}.parquet")
        [release] = vault.log(Query(kind="release"))
        spread = np.std(wards.table()["age"].to_numpy())
        noise = 0.01 if number == 0 else (1.8 / spread) ** 2
        # the published covariance of 300 rows, and with it the noise, is rounded up by an eighth at most
        assert noise / (1 + noise) <= release.body["exposure"]["error"] * 1.01 <= 1.27 * noise / (1 + noise)
        wide = wards.table().set_column(2, "age", pa.array(wards.table()["age"].to_numpy() * 100))
        assert variance_ratio(vault.update("ward", wide).body) > 100 * first_variance_ratio(vault.dataset("ward").body)


def test_joint_categories_share_their_draws(site: Site, tmp_path: Path) -> None:
    text = wards.POLICY.replace('region = "keep"', 'region = { role = "uniform", joint = "pair" }')
    text = text.replace('"cold", "gout"] }', '"cold", "gout"], joint = "pair" }')
    vault = site.create()
    vault.add(sf.Policy.loads(text), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    vault.release("clinic", "ward", tmp_path / "1.parquet")
    before = wards.table()["diagnosis"].to_pylist()
    after = ["gout" if i < 9 and one != "gout" else one for i, one in enumerate(before)]
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    vault.update("ward", wards.table().set_column(4, "diagnosis", pa.array(after)))
    vault.release("clinic", "ward", tmp_path / "2.parquet")
    exposure = vault.log(Query(kind="release"))[-1].body["exposure"]
    assert exposure["draws"] == {"1": 300 - moved, "2": moved}  # the region of these was drawn twice


def test_a_vault_does_not_release_independent_noise(site: Site) -> None:
    text = wards.POLICY.replace('age = "gaussian"', 'age = { role = "independent", of = "gaussian" }')
    with pytest.raises(PolicyError, match="independent between copies"):
        site.create().add(sf.Policy.loads(text), wards.table())


def test_a_failed_operation_leaves_no_file(vault: sf.Vault) -> None:
    before = vault.store.names()
    with pytest.raises(VaultError, match="already"):
        vault.add(wards.policy(), wards.table(seed=4))
    assert vault.store.names() == before


def test_passwords_of_stores_are_not_stored(site: Site, tmp_path: Path) -> None:
    with pytest.raises(VaultError, match="must not hold a password") as refused:
        sf.Vault.create(tmp_path / "v", store="s3://me:sekret@bucket/x")
    assert "sekret" not in str(refused.value)
    with pytest.raises(VaultError, match="fsspec"):
        sf.Vault.create(tmp_path / "v", store="weird://x")


@pytest.mark.parametrize(
    "where",
    ["id == 99999999999999999999999", "id in [99999999999999999999999]", "region == 5"],
)
def test_conditions_of_wrong_types(vault: sf.Vault, where: str) -> None:
    with pytest.raises(sf.SfumatoError):
        vault.grant("clinic", "ward", "partner", where=where)
    assert vault.grants() == []


def test_a_release_overwrites_only_earlier_copies(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner")
    vault.recipient("lab")
    vault.grant("lab", "ward", "public")
    (tmp_path / "mine.csv").write_text("a\n1\n")
    vault.release("lab", "ward", tmp_path / "lab.parquet")
    for name in ("mine.csv", "lab.parquet"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(VaultError, match="overwrites only an earlier copy"):
            vault.release("clinic", "ward", tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    assert [e.recipient for e in vault.log(Query(action="released"))] == ["lab"]


def test_an_empty_version_and_a_grant_that_ended(vault: sf.Vault) -> None:
    with pytest.raises(SourceError, match="at least one record"):
        vault.update("ward", wards.table().slice(0, 0))
    with pytest.raises(VaultError, match="must end in the future"):
        vault.grant("clinic", "ward", "partner", until="2020-01-01")


def test_the_manifest_has_the_requested_and_the_released_fidelity(site: Site, tmp_path: Path) -> None:
    vault = site.create()
    vault.add(wards.policy(), wards.table(), traced=True)
    vault.recipient("clinic")
    for requested in ("partner", 0.63, 0.3, 0.499):
        vault.grant("clinic", "ward", requested)
        _, manifest = vault.release("clinic", "ward", tmp_path / "copy.parquet")
        assert manifest.requested_fidelity == (0.5 if requested == "partner" else requested)
        assert manifest.fidelity < manifest.requested_fidelity
        assert manifest.fidelity > manifest.requested_fidelity - 0.02


def test_a_grant_until_the_last_date(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner", until="9999-12-31")
    vault.release("clinic", "ward", tmp_path / "copy.parquet")


def test_errors_of_a_vault_in_a_database(postgres: object, tmp_path: Path) -> None:
    url = postgres.database()  # type: ignore[attr-defined]
    with pytest.raises(VaultError, match="there is no vault in postgresql"):
        sf.Vault.open(url)
    with pytest.raises(VaultError, match="needs a store for its tables"):
        sf.Vault.create(url, secret="some passphrase")
    with pytest.raises(CustodyError, match="passphrase or a key"):
        sf.Vault.create(url, store=str(tmp_path))
    vault = sf.Vault.create(url, store=str(tmp_path), secret="some passphrase")
    vault.add(wards.policy(), wards.table())
    vault.recipient("clinic")
    vault.grant("clinic", "ward", "partner")
    with pytest.raises(VaultError, match="name the output file"):
        vault.release("clinic", "ward")
    with pytest.raises(VaultError) as refused:
        sf.Vault.open(url.replace("owner@127.0.0.1", "owner:hunter2@127.0.0.1").replace(":", ":", 1) + "nowhere")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(VaultError, match="a folder or a database"):
        sf.Vault.open("mysql://owner:hunter2@127.0.0.1/x")


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(VaultError, match=r"thesis\.txt"):
        sf.Vault.create(tmp_path)
    with pytest.raises(VaultError, match="there is no vault in"):
        sf.Vault.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
