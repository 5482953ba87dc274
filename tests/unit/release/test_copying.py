"""Files in and out, the manifest that travels with them, and what is written when something goes wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import ManifestError, ReleaseError, SourceError
from sfumato.tables.atomic import atomic_path
from sfumato.tables.formats import BATCH
from sfumato.tables.source import Source
from sfumato.tables.unique_ids import ensure_distinct

KEY = sf.Key.from_bytes(bytes(range(32)))
FORMATS = ("parquet", "arrow", "csv")


@pytest.mark.parametrize("out", FORMATS)
def test_a_copy_comes_back_from_every_format(
    tiny: pa.Table, tiny_scheme: sf.TableScheme, tmp_path: Path, out: str
) -> None:
    path = tmp_path / f"copy.{out}"
    manifest = sf.release_file(tiny_scheme, tiny, path, "middle", KEY)
    memory = tiny_scheme.release(tiny, "middle", KEY)
    copy = sf.read_copy(path)
    assert sf.Manifest.of(copy) == sf.Manifest.of(path) == manifest == sf.Manifest.of(memory)
    for name in memory.column_names:
        assert copy.column(name).to_pylist() == memory.column(name).to_pylist(), name
    manifest.verify(path)
    manifest.verify(copy)
    assert json.loads((tmp_path / f"copy.{out}.manifest.json").read_text())["digest"] == manifest.digest
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name, f"{path.name}.manifest.json"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_is_read_from_every_format(tmp_path: Path, kind: str) -> None:
    table = pa.table({"id": [5, 6, 7], "n": [1.5, None, 3.25], "c": ["x", "", None]})
    path = tmp_path / f"in.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pyarrow.ipc.new_stream(path, table.schema) as stream:  # a stream is read as well as a file
            stream.write_table(table)
    else:
        pyarrow.csv.write_csv(table, path)
    read = pa.Table.from_batches(Source.of(path).batches())
    assert read.to_pylist() == table.to_pylist()


def test_other_readers_find_the_manifest_inside(tiny: pa.Table, tiny_scheme: sf.TableScheme, tmp_path: Path) -> None:
    for ending in ("parquet", "arrow"):
        path = tmp_path / f"copy.{ending}"
        sf.release_file(tiny_scheme, tiny, path, "low", KEY)
        (tmp_path / f"copy.{ending}.manifest.json").unlink()
    table = pq.read_table(tmp_path / "copy.parquet")
    assert sf.Manifest.of(table).level == "low"
    with pyarrow.ipc.open_file(tmp_path / "copy.arrow") as file:
        assert sf.Manifest.of(file.read_all()) == sf.Manifest.of(table)


def test_the_manifest_says_what_was_asked_and_given(tiny: pa.Table, tiny_scheme: sf.TableScheme) -> None:
    manifest = sf.Manifest.of(tiny_scheme.release(tiny, 0.3, KEY))
    assert manifest.requested_fidelity == 0.3
    assert 0.29 < manifest.fidelity < 0.3
    assert manifest.level is None
    assert any("Collusion-resistant" in promise for promise in manifest.promises)
    assert any("note" in limit for limit in manifest.limits)
    text = manifest.dumps()
    for value in tiny.column("note").to_pylist()[:3]:
        assert value not in text
    assert KEY.expose().hex() not in text


def test_an_unsafe_copy_says_so() -> None:
    table = pa.table({"n": np.arange(50.0)})
    policy = sf.Policy.loads(
        'dataset = "d"\n[levels]\na = 0.5\n[columns]\nn = { role = "independent", of = "gaussian" }'
    )
    manifest = sf.Manifest.of(policy.fit(table).release(table, "a", KEY))
    assert any("UNSAFE" in warning for warning in manifest.warnings)
    assert not any("Collusion-resistant" in promise for promise in manifest.promises)
    assert not manifest.models[0].collusion_resistant  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", ["cell", "row", "column"])
def test_a_changed_copy_is_noticed(tiny: pa.Table, tiny_scheme: sf.TableScheme, damage: str) -> None:
    copy = tiny_scheme.release(tiny, "low", KEY)
    manifest = sf.Manifest.of(copy)
    manifest.verify(copy)
    if damage == "cell":
        values = copy.column("float").to_pylist()
        values[3] += 1
        index = copy.column_names.index("float")
        copy = copy.set_column(index, copy.schema.field(index), pa.array(values))
    copy = copy.slice(1) if damage == "row" else copy.drop_columns("flag") if damage == "column" else copy
    with pytest.raises(ManifestError, match="it has been changed"):
        manifest.verify(copy)


def test_a_copy_without_a_manifest_or_with_a_broken_one_is_refused(tmp_path: Path) -> None:
    plain = pa.table({"n": [1]})
    with pytest.raises(ManifestError, match="this table has none"):
        sf.Manifest.of(plain)
    pq.write_table(plain, tmp_path / "p.parquet")
    with pytest.raises(ManifestError, match="inside or beside it"):
        sf.Manifest.of(tmp_path / "p.parquet")
    for text in (
        "",
        "[]",
        "{}",
        '{"sfumato": 1}',
        '{"sfumato": 1, "models": [{"kind": "unheard"}]}',
        '{"sfumato": 99}',
    ):
        with pytest.raises(ManifestError):
            sf.Manifest.loads(text)


def test_a_copy_is_made_from_the_original_only(tiny: pa.Table, tiny_scheme: sf.TableScheme) -> None:
    with pytest.raises(SourceError, match="itself a copy"):
        tiny_scheme.release(tiny_scheme.release(tiny, "high", KEY), "low", KEY)


def test_a_copy_in_which_nothing_is_perturbed_says_so() -> None:
    table = pa.table({"n": [1, 2]})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nn = "keep"')
    manifest = sf.Manifest.of(policy.fit(table).release(table, "a", KEY))
    assert manifest.promises == ()
    assert manifest.warnings == ("NOTHING IS PERTURBED in this copy.",)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_separators_and_leading_zeros(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(
        "\ufeff" + "\n".join(separator.join(row) for row in (["zip", "n"], ["01234", "7"], ["98765", "08"]))
    )
    read = pa.Table.from_batches(Source.of(path).batches())
    assert read.to_pydict() == {"zip": ["01234", "98765"], "n": ["7", "08"]}


def test_strange_csv_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    for content in (b"", b"\xff\xfea,b\n", b"a,a\n1,2", b"a,b\n1", b"1,2\n3,4"):
        path.write_bytes(content)
        with pytest.raises(SourceError):
            pa.Table.from_batches(Source.of(path).batches())


@pytest.mark.parametrize("ending", FORMATS)
def test_types_that_a_format_does_not_keep_are_verified_all_the_same(tmp_path: Path, ending: str) -> None:
    import decimal

    letters = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["x", "y"])
    table = pa.table(
        {
            "kept": letters,
            "stirred": letters,
            "half": pa.array(np.array([1, 2, 3], np.float16)),
            "wide": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], pa.decimal256(50, 2)),
            "day": pa.array([0, 86_400_000, None], pa.date64()),
            "time": pa.array([1, 2, None], pa.time32("s")),
            "nothing": pa.nulls(3),
        }
    )
    policy = sf.Policy.loads(
        'default = "keep"\ndataset = "d"\n[levels]\na = 0.5\n[columns]\nstirred = "uniform"\nhalf = "gaussian"'
    )
    path = tmp_path / f"copy.{ending}"
    sf.release_file(policy.fit(table), table, path, "a", KEY).verify(path)
    sf.Manifest.of(path).verify(sf.read_copy(path))


def test_lists_are_refused_in_csv_only(tmp_path: Path) -> None:
    table = pa.table({"n": [1.0, 2.0], "l": [[1], [2, 3]]})
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nn = "gaussian"\nl = "keep"')
    scheme = policy.fit(table)
    sf.release_file(scheme, table, tmp_path / "c.parquet", "a", KEY).verify(tmp_path / "c.parquet")
    with pytest.raises(ReleaseError, match="no lists or bytes"):
        sf.release_file(scheme, table, tmp_path / "c.csv", "a", KEY)


def test_nothing_lies_hidden_under_nulls(tmp_path: Path) -> None:
    """Neither the noise of a null cell nor the value under a null of a public column."""
    hidden = np.array([False, True, False])
    secrets = {name: pa.array(np.array([1.0, value, 3.0]), mask=hidden) for name, value in (("n", 777.0), ("k", 888.0))}
    assert np.frombuffer(secrets["k"].buffers()[1], np.float64)[1] == 888.0  # what must not be found in the copy
    unused = pa.DictionaryArray.from_arrays([0, 0, 0], ["used", "unused secret"])
    table = pa.table({**secrets, "d": unused})
    policy = sf.Policy.loads(
        'dataset = "d"\norder = "keep"\n[levels]\na = 0.5\n[columns]\nn = "gaussian"\nk = "keep"\nd = "keep"'
    )
    copy = policy.fit(table).release(table, "a", KEY)
    for name in ("n", "k"):
        [chunk] = copy.column(name).chunks
        assert np.frombuffer(chunk.buffers()[1], np.float64)[1] == 0.0, name
    assert copy.schema.field("d").type == pa.string()
    with pa.OSFile(str(tmp_path / "f"), "wb") as sink, pyarrow.ipc.new_file(sink, copy.schema) as file:
        file.write_table(copy)
    assert b"unused secret" not in (tmp_path / "f").read_bytes()


def test_one_column_of_csv_keeps_its_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("n\n1\n\n3\n")
    assert pa.Table.from_batches(Source.of(tmp_path / "in.csv").batches()).column("n").to_pylist() == [1, None, 3]


def test_two_manifests_do_not_tell_the_record_between_them() -> None:
    """Published statistics have three digits, and the scheme's name is keyed: neither tests a guess of one record."""
    values = np.random.default_rng(1).normal(50, 10, (20_000, 2)) @ np.array([[1, 0.5], [0, 1]])
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\na = "gaussian"\nb = "gaussian"')
    models = []
    for rows in (20_000, 19_999):
        table = pa.table({"a": values[:rows, 0], "b": values[:rows, 1]})
        manifest = sf.Manifest.of(policy.fit(table).release(table, "a", KEY))
        models.append(manifest.models[0].covariance)  # type: ignore[attr-defined]
        assert policy.fit(table).digest() not in manifest.dumps()
    assert models[0] == models[1]


def test_layout_of_source_and_threads_do_not_show_in_the_file(tmp_path: Path) -> None:
    rows = 3 * BATCH + 17
    table = pa.table(
        {"id": np.arange(rows)[::-1], "n": np.random.default_rng(1).normal(size=rows), "c": np.arange(rows) % 5}
    )
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nid = "id"\nn = "gaussian"\nc = "uniform"')
    files = set()
    for group, threads in ((rows, 1), (1000, 2), (BATCH + 1, 3)):
        source = tmp_path / "in.parquet"
        pq.write_table(table, source, row_group_size=group)
        scheme = policy.fit(source, threads=threads)
        sf.release_file(scheme, source, tmp_path / "out.parquet", 0.4, KEY, threads=threads)
        files.add((tmp_path / "out.parquet").read_bytes())
    assert len(files) == 1


def test_reading_and_writing_fail_with_a_sentence_and_no_file(
    tiny: pa.Table, tiny_scheme: sf.TableScheme, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(tiny, whole, row_group_size=10)
    for cut in (0, 3, 200, whole.stat().st_size - 5):
        broken = tmp_path / "broken.parquet"
        broken.write_bytes(whole.read_bytes()[:cut])
        with pytest.raises(SourceError, match="could not be read as parquet"):
            sf.release_file(tiny_scheme, broken, tmp_path / "out.parquet", "low", KEY)
    data = bytearray(whole.read_bytes())
    data[60:600] = bytes(540)
    broken.write_bytes(data)
    with pytest.raises(SourceError):
        sf.release_file(tiny_scheme, broken, tmp_path / "out.parquet", "low", KEY)
    with pytest.raises(ReleaseError, match="must not replace its source"):
        sf.release_file(tiny_scheme, whole, whole, "low", KEY)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(ReleaseError, match="must name a file"):
        sf.release_file(tiny_scheme, whole, tmp_path / "folder.parquet", "low", KEY)
    (tmp_path / "folder.parquet").rmdir()
    with pytest.raises(ReleaseError, match="must name a file in a folder that exists"):
        sf.release_file(tiny_scheme, whole, tmp_path / "no" / "out.parquet", "low", KEY)
    with pytest.raises(SourceError, match="must end in one of"):
        sf.release_file(tiny_scheme, whole, tmp_path / "out.docx", "low", KEY)
    with pytest.raises(ReleaseError, match="not as sas"):
        sf.release_file(tiny_scheme, whole, tmp_path / "out.sas7bdat", "low", KEY)
    with pytest.raises(ReleaseError, match="an Excel workbook has no time zones"):
        sf.release_file(tiny_scheme, whole, tmp_path / "out.xlsx", "low", KEY)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.parquet", "whole.parquet"]


def test_a_csv_whose_types_change_is_refused_clearly(tmp_path: Path) -> None:
    lines = ["n"] + ["1"] * 700_000 + ["not a number"]
    (tmp_path / "in.csv").write_text("\n".join(lines))
    policy = sf.Policy.loads('dataset = "d"\n[levels]\na = 0.5\n[columns]\nn = "gaussian"')
    with pytest.raises(SourceError, match=r"column 'n' holds string.*some cells are no numbers"):
        policy.fit(tmp_path / "in.csv")


def test_an_earlier_file_survives_a_failed_run(tmp_path: Path) -> None:
    target = tmp_path / "f"
    target.write_text("before")

    def fail() -> None:
        with atomic_path(target) as part:
            part.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(ReleaseError, match="is as it was"):
        fail()
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["f"]  # noqa: PTH208


def test_leftovers_of_killed_runs_are_swept_and_those_of_live_ones_are_not(tmp_path: Path) -> None:
    import socket

    dead = tmp_path / f".f.{socket.gethostname()}-999999999-ab.part"
    live = tmp_path / f".f.{socket.gethostname()}-{os.getpid()}-ab.part"
    for file in (dead, live):
        file.write_text("x")
    with atomic_path(tmp_path / "f") as part:
        part.write_text("new")
    assert not dead.exists()
    assert live.exists()


def test_repeated_ids_are_found_in_any_order() -> None:
    def batches(*lists: list[int]) -> object:
        return lambda: (np.array(ids, dtype=np.int64).view(np.uint64) for ids in lists)

    ensure_distinct(batches([1, 2, 3], [], [4]))  # type: ignore[arg-type]
    ensure_distinct(batches([3, -1], [2, 1]))  # type: ignore[arg-type]
    for lists in ([[1, 1]], [[1, 2], [2]], [[5, 3], [4, -9], [3]], [[-9, 1, -9]]):
        with pytest.raises(SourceError, match="occurs again"):
            ensure_distinct(batches(*lists))  # type: ignore[arg-type]
    many = np.random.default_rng(1).permutation(400_000).astype(np.uint64)
    ensure_distinct(lambda: np.array_split(many, 7))
    with pytest.raises(SourceError, match="and 77 "):
        ensure_distinct(lambda: [*np.array_split(many, 7), np.array([77], np.uint64)])


def test_a_scheme_file_must_be_whole(tmp_path: Path, tiny_scheme: sf.TableScheme) -> None:
    tiny_scheme.save(tmp_path / "s.json")
    text = (tmp_path / "s.json").read_text()
    emptied, halved, doubled = (json.loads(text) for _ in range(3))
    emptied["fitted"][0]["root"] = []
    halved["fitted"][0]["root"][0] = [0.5]
    doubled["fitted"][0]["step"] *= 2
    miscounted = json.loads(text)
    miscounted["fitted"][-1]["domains"][0]["count"] += 1
    damaged = [json.dumps(data) for data in (emptied, halved, doubled, miscounted)]
    for broken in ("", "[]", "{}", text[: len(text) // 2], text.replace('"root"', '"rot"'), *damaged):
        (tmp_path / "s.json").write_text(broken)
        with pytest.raises(ReleaseError, match="fit it again"):
            sf.TableScheme.load(tmp_path / "s.json")
