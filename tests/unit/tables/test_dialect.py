"""Dialects travel with schemas: a vault and a manifest know how the file of a table is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import SourceError
from sfumato.mining import Moments
from sfumato.tables.dialect import PLAIN, Dialect
from sfumato.tables.file_options import FileOptions
from sfumato.tables.source import Source

GERMAN = "nr;betrag;gruppe;tag\r\n" + "".join(
    f"{i:05d};{'1.' if i % 3 else ''}{200 + i % 700},5;{'ä' if i % 2 else 'NA'};{i % 28 + 1:02d}.03.2025\r\n"
    for i in range(900)
).replace(";200,5;", ";NA;")


@pytest.fixture
def german(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(GERMAN.encode("cp1252"))
    return path


def test_a_plain_file_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,x\n")
    assert not Source.of(tmp_path / "in.csv").schema.metadata
    assert PLAIN.in_schema(pa.schema([("a", pa.int64())])).metadata == {}


def test_a_vault_keeps_the_dialect_for_copies_and_later_versions(german: Path, tmp_path: Path, key: sf.Key) -> None:
    policy = sf.Policy.suggest(german, dataset="klinik")
    vault = sf.Vault.create(tmp_path / "vault", key=key)
    vault.add(policy, german)
    vault.recipient("amt")
    vault.grant("amt", "klinik", "partner")
    vault.release("amt", "klinik", tmp_path / "copy.csv")
    head, first = (tmp_path / "copy.csv").read_bytes().decode("cp1252").split("\r\n")[:2]
    assert head == "betrag;gruppe;tag"
    assert "," in first.split(";")[0]
    assert first.endswith(".03.2025")
    lines = GERMAN.split("\r\n")
    later = "\r\n".join([*lines[:-1], "00900;7,5;ä;03.04.2025", ""])  # of a day and a month that could be either
    german.write_bytes(later.encode("cp1252"))
    vault.update("klinik", german)
    assert vault.dataset("klinik").version == 2
    with vault.dataset("klinik").source() as source:
        last = pa.Table.from_batches(source.batches(), source.schema).to_pylist()[-1]
    assert (last["betrag"], str(last["tag"])) == (7.5, "2025-04-03")


def test_copies_are_mined_as_they_are_written(german: Path, tmp_path: Path, key: sf.Key) -> None:
    scheme = sf.Policy.suggest(german, plain_noise=True).fit(german)
    sf.release_file(scheme, german, tmp_path / "copy.csv", "internal", key)
    sf.release_file(scheme, german, tmp_path / "copy.parquet", "internal", key)
    text, binary = (sf.read_copy(tmp_path / f"copy.{ending}") for ending in ("csv", "parquet"))
    assert text.to_pydict() == binary.to_pydict()
    assert Moments().fit(tmp_path / "copy.csv").mean_.tolist() == Moments().fit(binary).mean_.tolist()


def test_a_character_that_the_encoding_lacks_is_refused(tmp_path: Path, key: sf.Key) -> None:
    schema = Dialect(encoding="cp1252").in_schema(pa.schema([("a", pa.string()), ("x", pa.float64())]))
    table = pa.table([["π"] * 50, [float(i) for i in range(50)]], schema=schema)
    policy = sf.Policy.loads('dataset = "d"\n[levels]\nl = 0.5\n[columns]\na = "keep"\nx = "gaussian"')
    with pytest.raises(sf.SfumatoError, match="which has no 'π'"):
        sf.release_file(policy.fit(table), table, tmp_path / "out.csv", "l", key)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"decimal": ";"}, "`decimal` in .file. must be a point or a comma, got ';'"),
        ({"separator": ""}, "must be one character"),
        ({"encoding": "klingon"}, "one that Python knows"),
        ({"encoding": "base64"}, "one of text"),
        ({"dates": "year first"}, "'day first' or 'month first'"),
        ({"missing": "NA"}, "a list of texts"),
        ({"header": 0}, "the number of a row"),
        ({"header": True}, "the number of a row"),
        ({"seperator": ";"}, "separator"),
    ],
)
def test_options_are_checked(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(SourceError, match=sentence):
        FileOptions.of(options)
    with pytest.raises(SourceError, match="KEY=VALUE"):
        FileOptions.parse(["sheet"])


def test_options_are_part_of_a_policy() -> None:
    text = 'dataset = "d"\n[levels]\nl = 0.5\n[columns]\nx = "gaussian"\n'
    plain, stated = sf.Policy.loads(text), sf.Policy.loads(text + '[file]\ndecimal = ","\nmissing = ["NA"]\n')
    assert stated.file == FileOptions(decimal=",", missing=("NA",))
    assert sf.Policy.loads(stated.dumps()) == stated
    assert stated.digest() != plain.digest()
    assert "file" not in plain.dumps()


def test_a_damaged_dialect_is_refused() -> None:
    with pytest.raises(SourceError, match="malformed"):
        Dialect.of_schema(pa.schema([("a", pa.int64())], {b"sfumato.file": b'{"no": 1}'}))


def test_missing_credentials_are_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match="credentials and addresses come from"):
        Source.of("s3://bucket/table.parquet")
