"""Tables in many files, on this machine."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests import lakes

import sfumato as sf
from sfumato.cli import main
from sfumato.engines import Secret
from sfumato.engines.local import Local
from sfumato.errors import ManifestError, PolicyError, ReleaseError, SourceError
from sfumato.mining import Frequencies, Moments, NaiveBayes
from sfumato.release.manifest import FOLDER, Manifest
from sfumato.release.partitioned import release_folder
from sfumato.release.perturbation import numbered_rows, perturb_rows
from sfumato.tables.partitioned import Part
from sfumato.tables.source import Source

WHOLE = lakes.table()


@pytest.mark.parametrize("layout", lakes.LAYOUTS)
@pytest.mark.parametrize("name", lakes.POLICIES)
def test_every_layout_gives_the_same_cells(name: str, layout: str, key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", layout)
    policy = lakes.POLICIES[name]
    scheme = policy.fit(folder, threads=2)
    assert scheme.digest() == policy.fit(WHOLE, threads=1).digest()
    for level in lakes.LEVELS:
        expected = lakes.ordered(scheme.release(WHOLE, level, key))
        made = []
        for threads in (1, 2):
            out = tmp_path / f"{level}-{threads}"
            manifest = release_folder(scheme, folder, out, level, key, engine=Local(threads))
            manifest.verify(out)
            assert Manifest.of(str(out)) == manifest
            assert lakes.rows_of(out).cast(expected.schema).equals(expected)
            made.append(lakes.files_of(out))
        assert made[0] == made[1]


def test_a_copy_has_the_files_of_its_source(key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "partitioned")
    (folder / "_SUCCESS").write_text("")
    scheme = lakes.POLICIES["gaussian"].fit(folder)
    manifest = release_folder(scheme, folder, tmp_path / "copy", "high", key)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    assert set(lakes.files_of(tmp_path / "copy")) == names | {FOLDER}
    assert manifest.rows == lakes.ROWS
    first = tmp_path / "copy" / min(names)
    assert "region" not in pq.read_schema(first).names  # the folder says it
    own = Manifest.of(first)
    own.verify(first)
    assert own.rows == pq.read_metadata(first).num_rows
    release_folder(scheme, folder, tmp_path / "copy", "high", key)  # an earlier copy may be replaced
    assert pa.dataset.dataset(tmp_path / "copy", partitioning="hive").count_rows() == lakes.ROWS


class _Recording(Local):
    """An engine that keeps the key that its workers get."""

    shared: sf.Key | None = None

    def shared_key(self, key: sf.Key) -> AbstractContextManager[Secret]:
        self.shared = key
        return super().shared_key(key)


def test_workers_get_the_key_of_the_dataset_alone(key: sf.Key, tmp_path: Path) -> None:
    """With it they make the same files, under the names of the master key and the scheme."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", "partitioned")
    scheme, engine = lakes.POLICIES["gaussian"].fit(folder), _Recording(1)
    manifest = release_folder(scheme, folder, tmp_path / "copy", "high", key, engine=engine)
    assert engine.shared == scheme.dataset_key(key) != key
    part = Manifest.of(next((tmp_path / "copy").rglob("*.parquet")))
    assert (part.key, part.scheme) == (manifest.key, manifest.scheme)
    assert manifest.key == key.fingerprint()


def test_a_changed_copy_is_found_out(key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["gaussian"].fit(folder)
    manifest = release_folder(scheme, folder, tmp_path / "copy", "high", key)
    one, two = sorted((tmp_path / "copy").rglob("*.parquet"))[:2]
    held = one.read_bytes()
    one.write_bytes(two.read_bytes())
    with pytest.raises(ManifestError, match="has been changed"):
        manifest.verify(tmp_path / "copy")
    one.write_bytes(held)
    manifest.verify(tmp_path / "copy")
    (tmp_path / "copy" / FOLDER).unlink()
    with pytest.raises(ManifestError, match="run the same command again"):
        Manifest.of(tmp_path / "copy")


def test_row_numbers_identify_records_without_an_id(key: sf.Key, tmp_path: Path) -> None:
    """The documented rule: SHA-256 of the file's name, and the row; other files may come and go."""
    policy = sf.Policy.loads('dataset = "d"\norder = "keep"\n[levels]\na = 0.5\n[columns]\nincome = "gaussian"')
    whole = WHOLE.select(["income"])
    folder = lakes.lay(whole, tmp_path / "lake", "many")
    scheme = policy.fit(folder)
    release_folder(scheme, folder, tmp_path / "copy", "a", key)
    name = "y1/part-1.parquet"
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    source = Source.of(folder / name)
    named = Source.of(Part(name, str(folder / name), "", (), source.schema))
    assert named.start == start
    [(numbers, batch)] = list(numbered_rows(scheme, named))
    [expected] = perturb_rows(scheme, numbers, batch, [policy.ladder.level("a")], key)
    assert pq.read_table(tmp_path / "copy" / name)["income"].combine_chunks().equals(expected.column("income"))
    pq.write_table(whole.slice(0, 5), folder / "more.parquet")
    release_folder(scheme, folder, tmp_path / "later", "a", key)
    assert (tmp_path / "later" / name).read_bytes() == (tmp_path / "copy" / name).read_bytes()


def test_row_numbers_that_overlap_are_refused(key: sf.Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nincome = "gaussian"')
    folder = lakes.lay(WHOLE.select(["income"]), tmp_path / "lake", "many")
    scheme = policy.fit(folder)
    ends = {"y0/part-0.parquet": 2**64 - 10, "y1/part-1.parquet": 6}  # 17 rows, around the end
    far = {f"y{i % 3}/part-{i}.parquet": 10**6 * i for i in range(2, 6)}
    monkeypatch.setattr(Part, "start", property(lambda part: (ends | far)[part.name]))
    with pytest.raises(SourceError, match=r"y0/part-0\.parquet.*y1/part-1\.parquet.*rename one"):
        release_folder(scheme, folder, tmp_path / "copy", "a", key)
    ends["y1/part-1.parquet"] = 7
    release_folder(scheme, folder, tmp_path / "copy", "a", key)


_RUN = """
import sys
import sfumato as sf
from sfumato.mining import Frequencies, Moments, NaiveBayes
from sfumato.release.partitioned import release_folder
source, target = sys.argv[1:]
scheme = sf.TableScheme.load(source + ".scheme")
key = sf.Key.from_bytes(bytes(range(32)))
release_folder(scheme, source, target, "high", key, progress=lambda _: print(".", flush=True))
"""


@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_killed_run_goes_on_where_it_was(after: int, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["gaussian"].fit(folder)
    scheme.save(f"{folder}.scheme")
    secret = sf.Key.from_bytes(bytes(range(32)))
    release_folder(scheme, folder, tmp_path / "whole", "high", secret)
    run = subprocess.Popen([sys.executable, "-c", _RUN, folder, tmp_path / "copy"], stdout=subprocess.PIPE)
    assert run.stdout is not None
    for _ in range(after):
        run.stdout.readline()
    while not after and not (tmp_path / "copy").exists():  # in the midst of the first file
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    receipts = [json.loads(path.read_text()) for path in (tmp_path / "copy" / "_sfumato").rglob("*.json")]
    assert after <= len(receipts) < 6 or after == 0
    times = {one["name"]: (tmp_path / "copy" / one["name"]).stat().st_mtime_ns for one in receipts}
    release_folder(scheme, folder, tmp_path / "copy", "high", secret)
    assert {name: (tmp_path / "copy" / name).stat().st_mtime_ns for name in times} == times  # were not made again
    assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "whole")


def test_receipts_hold_for_this_request_alone(key: sf.Key, tmp_path: Path) -> None:
    """A file that changed, another level, another key: all is made again."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["gaussian"].fit(folder)

    def interrupted(level: str, secret: sf.Key) -> None:
        made = []

        def stop(_: int) -> None:
            made.append(1)
            if len(made) == 4:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            release_folder(scheme, folder, tmp_path / "copy", level, secret, progress=stop)

    release_folder(scheme, folder, tmp_path / "first", "high", key)
    for level, secret in (("low", key), ("high", sf.Key.generate())):
        interrupted(level, secret)
        assert not (tmp_path / "copy" / FOLDER).exists()
        release_folder(scheme, folder, tmp_path / "copy", "high", key)
        assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "first")
    interrupted("high", key)
    changed = folder / "y1" / "part-1.parquet"
    rows = pq.read_table(changed)
    pq.write_table(rows.set_column(3, "income", pc.multiply(rows["income"], 2.0)), changed)
    release_folder(scheme, folder, tmp_path / "copy", "high", key)
    release_folder(scheme, folder, tmp_path / "fresh", "high", key)
    assert lakes.files_of(tmp_path / "copy") == lakes.files_of(tmp_path / "fresh")
    changed.unlink()
    release_folder(scheme, folder, tmp_path / "copy", "high", key)
    assert not (tmp_path / "copy" / "y1" / "part-1.parquet").exists()  # what is no longer there is not shown


def test_folders_that_cannot_be(key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "partitioned")
    scheme = lakes.POLICIES["gaussian"].fit(folder)
    for target in (folder, folder / "copy", tmp_path):
        with pytest.raises(ReleaseError, match="must be outside of its source"):
            release_folder(scheme, folder, target, "high", key)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.parquet").write_text("mine")
    with pytest.raises(ReleaseError, match=r"replaces nothing but an earlier one.*thesis\.parquet"):
        release_folder(scheme, folder, tmp_path / "other", "high", key)
    assert (tmp_path / "other" / "thesis.parquet").read_text() == "mine"
    with pytest.raises(ReleaseError, match="made from a folder of files or a Parquet file"):
        release_folder(scheme, WHOLE, tmp_path / "copy", "high", key)
    perturbed = sf.Policy.loads(lakes.POLICIES["gaussian"].dumps().replace('region = "keep"', 'region = "uniform"'))
    for policy in (perturbed, sf.Policy.loads(perturbed.dumps().replace('region = "uniform"', 'region = "drop"'))):
        with pytest.raises(PolicyError, match="names of folders are released with a copy and disclose 'region'"):
            release_folder(policy.fit(folder), folder, tmp_path / "copy", "high", key)
    assert not (tmp_path / "copy").exists()


def test_files_that_do_not_fit_together(key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    policy = lakes.POLICIES["gaussian"]
    scheme = policy.fit(folder)
    other = folder / "z.parquet"
    new = WHOLE.set_column(0, "record", pc.add(WHOLE["record"], 10**6)).slice(0, 3)
    cases = [
        (new.drop(["age"]), "has no 'age'"),
        (new.append_column("more", new["age"]), "has 'more'"),
        (new.set_column(2, "age", pa.array(["old"] * 3)), "'age' must hold double"),
        (WHOLE.slice(700, 1), "a record id must occur once"),
    ]
    for rows, said in cases:
        pq.write_table(rows, other)
        with pytest.raises(SourceError, match=said):
            release_folder(scheme, folder, tmp_path / "copy", "high", key)
    other.unlink()
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(SourceError, match=r"notes\.txt.*begin its name with _"):
        policy.fit(folder)
    (folder / "notes.txt").rename(folder / "_notes.txt")
    policy.fit(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="at least one file"):
        policy.fit(tmp_path / "empty")


def test_csv_and_arrow_files_may_be_mixed_in(key: sf.Key, tmp_path: Path) -> None:
    """Types are those of the first file; the copy is Parquet."""
    whole = WHOLE.select(["record", "region", "age", "income"])
    policy = sf.Policy.loads(
        'dataset = "d"\n[levels]\na = 0.5\n[columns]\nrecord = "id"\nregion = "keep"\nage = "gaussian"\n'
        'income = "gaussian"'
    )
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(whole.slice(0, 1000), folder / "a.parquet")
    pa.csv.write_csv(whole.slice(1000, 1000), folder / "b.csv")
    with pa.ipc.new_file(folder / "c.arrow", whole.schema) as file:
        file.write_table(whole.slice(2000))
    scheme = policy.fit(folder)
    release_folder(scheme, folder, tmp_path / "copy", "a", key)
    assert sorted(lakes.files_of(tmp_path / "copy")) == sorted(["a.parquet", "b.parquet", "c.parquet", FOLDER])
    expected = lakes.ordered(scheme.release(whole, "a", key))
    assert lakes.rows_of(tmp_path / "copy").equals(expected)
    pq.write_table(whole.slice(0, 3), folder / "c.parquet")
    with pytest.raises(ReleaseError, match=r"two would be c\.parquet"):
        release_folder(scheme, folder, tmp_path / "copy", "a", key)


def test_a_folder_can_become_one_file(key: sf.Key, tmp_path: Path) -> None:
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["together"].fit(folder)
    sf.release_file(scheme, folder, tmp_path / "copy.parquet", "high", key)
    Manifest.of(tmp_path / "copy.parquet").verify(tmp_path / "copy.parquet")
    assert lakes.rows_of(tmp_path / "copy.parquet").equals(lakes.ordered(scheme.release(WHOLE, "high", key)))


def test_the_command_makes_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = lakes.lay(WHOLE, tmp_path / "lake", "partitioned")
    (tmp_path / "policy.toml").write_text(lakes.POLICIES["together"].dumps())
    sf.Key.generate().save(tmp_path / "key")
    said = ["--policy", "policy.toml", "--key-file", "key", "--level", "high"]

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, list(words))

    done = run("release", "lake", "copy", *said)
    assert "Wrote copy: 3,000 rows" in done.stdout, done.output
    assert "3,000 rows, 5 columns, unaltered" in run("show", "copy").stdout
    assert "records of lake" in run("mine", "copy").stdout
    assert json.loads(run("attack", "llse", "copy", "--truth", "lake", "--json").stdout)["rows"] == lakes.ROWS
    refused = run("release", "lake", "copy.parquet", *said, "--engine", "dask")
    assert refused.exit_code == 2
    assert "releases a folder, or a Parquet file, to a folder" in refused.stderr
    for words in (["--engine", "dask", "--master", "x"], ["--scheduler", "tcp://x"], ["--format", "delta"]):
        assert run("release", "lake", "other", *said, *words).exit_code == 2
    assert folder.exists()
    assert not (tmp_path / "other").exists()


def test_many_files_say_what_one_says(key: sf.Key, tmp_path: Path) -> None:
    """Mining and attacks, against the same copy in one file; values are found in another order in each file."""
    folder = lakes.lay(WHOLE, tmp_path / "lake", "many")
    scheme = lakes.POLICIES["together"].fit(folder)
    release_folder(scheme, folder, tmp_path / "copy", "high", key)
    whole = scheme.release(WHOLE, "high", key)
    many, one = (Moments().fit(copy) for copy in (str(tmp_path / "copy"), whole))
    np.testing.assert_allclose(many.covariance_, one.covariance_, rtol=1e-9)
    asked = [("region",), ("ward", "region")]
    many, one = (Frequencies(columns=asked).fit(copy) for copy in (str(tmp_path / "copy"), whole))
    for names in asked:
        keys = [(name, "ascending") for name in names]
        assert many.table(*names).sort_by(keys).equals(one.table(*names).sort_by(keys))
    many, one = (NaiveBayes().fit(copy, "region") for copy in (str(tmp_path / "copy"), whole))
    np.testing.assert_allclose(many.prior_, one.prior_, rtol=1e-9)
    np.testing.assert_allclose(many.class_densities_[0].original, one.class_densities_[0].original, atol=1e-6)
    score = sf.score(sf.attack("llse", [whole]), WHOLE)
    found = sf.attack_folder("llse", [tmp_path / "copy"], folder)
    assert found.rmse["income"] == pytest.approx(score.number("income").rmse.attack.estimate, rel=1e-2)


def test_a_large_file_is_shared_out_by_its_row_groups(key: sf.Key, tmp_path: Path) -> None:
    """Records without ids keep their numbers, so that each has the noise that a copy in one file has."""
    table = WHOLE.select(["age", "income"])
    pq.write_table(table, tmp_path / "table.parquet", row_group_size=256)
    policy = sf.Policy.loads(
        'dataset = "d"\norder = "keep"\n[levels]\na = 0.5\n[columns]\nage = "gaussian"\nincome = "gaussian"'
    )
    scheme = policy.fit(tmp_path / "table.parquet")
    manifest = release_folder(scheme, tmp_path / "table.parquet", tmp_path / "copy", "a", key)
    manifest.verify(tmp_path / "copy")
    names = sorted(path.name for path in (tmp_path / "copy").glob("*.parquet"))
    assert names == [f"part-{i:05}.parquet" for i in range(4)]  # 768, 768, 768 and 696 rows
    expected = scheme.release(table, "a", key)
    assert pa.concat_tables(pq.read_table(tmp_path / "copy" / name) for name in names).equals(expected)


def test_a_file_that_is_no_parquet_is_copied_to_a_file(key: sf.Key, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(WHOLE.select(["age"]), tmp_path / "table.csv")
    scheme = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nage = "gaussian"').fit(WHOLE.select(["age"]))
    with pytest.raises(ReleaseError, match="a folder of files or a Parquet file"):
        release_folder(scheme, tmp_path / "table.csv", tmp_path / "copy", "a", key)
