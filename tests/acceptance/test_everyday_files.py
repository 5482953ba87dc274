"""Real-world-shaped files go in and come out without loss, or are refused with a sentence that says what to do."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from tests.acceptance.everyday_files import READ, File
from tests.acceptance.refused_files import REFUSED

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.levels import Ladder
from sfumato.policy.document import Column
from sfumato.release.encoders import WRITTEN
from sfumato.tables.dialect import PLAIN, Dialect
from sfumato.tables.file_options import FileOptions
from sfumato.tables.labels import label_of, labels_of
from sfumato.tables.readers import format_of
from sfumato.tables.source import Source

KEY = sf.Key.from_bytes(bytes(range(32)))


def read(path: Path, file: File) -> pa.Table:
    source = Source.of(path, options=FileOptions.of(file.options))
    return pa.Table.from_batches(source.batches(), source.schema)


def test_there_are_many() -> None:
    assert len(READ) + len(REFUSED) >= 40
    assert len({file.name for file in (*READ, *REFUSED)}) == len(READ) + len(REFUSED)


@pytest.mark.parametrize("file", READ, ids=lambda file: file.name)
def test_it_is_read_as_what_it_means(tmp_path: Path, file: File) -> None:
    file.write(tmp_path / file.name)
    assert read(tmp_path / file.name, file).to_pydict() == file.columns


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.name)
def test_it_is_refused_with_a_sentence(tmp_path: Path, file: File) -> None:
    file.write(tmp_path / file.name)
    with pytest.raises(SfumatoError, match=f"(?s){file.refused}"):
        read(tmp_path / file.name, file)


@pytest.mark.parametrize("file", [file for file in READ if format_of(file.name) in WRITTEN], ids=lambda file: file.name)
def test_a_copy_is_written_as_the_original_was(tmp_path: Path, file: File) -> None:
    """All columns kept and in order, so that the copy must be the original; cells that are written alike are equal."""
    path, out = tmp_path / file.name, tmp_path / f"copy-{file.name}"
    file.write(path)
    policy = sf.Policy(
        "everyday",
        Ladder({"low": sf.Level(0.5)}),
        {name: Column("keep") for name in file.columns},
        order="keep",
        file=FileOptions.of(file.options),
    )
    scheme = policy.fit(path)
    manifest = sf.release_file(scheme, path, out, "low", KEY)
    manifest.verify(out)
    assert sf.read_copy(out).to_pydict() == file.columns
    if format_of(file.name) in ("csv", "tsv") and not file.normal:
        assert _cells(out, _encoding(path, file)) == _cells(path, _encoding(path, file))
    if "sav" in file.name or "dta" in file.name:
        sex = Source.of(out).schema.field("sex")
        assert (label_of(sex), labels_of(sex)) == ("Sex of the patient", {1: "male", 2: "female"})


def _encoding(path: Path, file: File) -> str:
    return (Dialect.of_schema(Source.of(path, options=FileOptions.of(file.options)).schema) or PLAIN).encoding


def _cells(path: Path, encoding: str) -> list[list[str]]:
    text = path.read_bytes().decode(encoding)
    dialect = csv.Sniffer().sniff(text.splitlines()[0], ",;\t|")
    return list(csv.reader(io.StringIO(text), dialect))


@pytest.mark.parametrize("padding", range(0, 40, 4))
def test_lines_within_cells_are_not_divided(tmp_path: Path, padding: int) -> None:
    """In a file of several megabytes, wherever a block of the parser ends."""
    lines = (f'{i},"l{i} {"x" * (padding if i == 0 else 10)}\nyyyy, yyyyyyyyyyyyyyyyyyyy"\n' for i in range(30_000))
    (tmp_path / "in.csv").write_text("n,note\n" + "".join(lines))
    table = read(tmp_path / "in.csv", File("in.csv", lambda _: None))
    assert table["n"].to_pylist() == list(range(30_000))


def test_a_copy_with_tabs_of_a_german_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id;n\n1;1,5\n2;2,5\n")
    policy = sf.Policy.loads('dataset = "d"\norder = "keep"\n[levels]\nl = 0.5\n[columns]\nid = "keep"\nn = "keep"')
    sf.release_file(policy.fit(tmp_path / "in.csv"), tmp_path / "in.csv", tmp_path / "out.tsv", "l", KEY)
    assert (tmp_path / "out.tsv").read_text() == "id\tn\n1\t1,5\n2\t2,5\n"
    assert sf.read_copy(tmp_path / "out.tsv").to_pydict() == {"id": [1, 2], "n": [1.5, 2.5]}


@pytest.mark.parametrize("ending", ["sav", "dta", "xlsx"])
@pytest.mark.parametrize("value", [2**53 + 2, pa.scalar(0, pa.timestamp("us", "Europe/Berlin"))])
def test_what_a_format_would_change_is_refused(tmp_path: Path, ending: str, value: object) -> None:
    table = pa.table({"v": pa.array([value, value])})
    policy = sf.Policy.loads('dataset = "d"\norder = "keep"\n[levels]\nl = 0.5\n[columns]\nv = "keep"')
    with pytest.raises(SfumatoError, match="write Parquet or CSV"):
        sf.release_file(policy.fit(table), table, tmp_path / f"out.{ending}", "l", KEY)
    assert not list(tmp_path.iterdir())
