"""Every parser of bytes that somebody else may have written, with valid inputs to start from and a number of cases."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from tests import wards
from tests.fuzz import mutation
from tests.fuzz.mutation import Mutator
from tests.fuzz.requests import HttpParser

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.keys.lock import unwrap, wrap
from sfumato.keys.signature import is_signed
from sfumato.ledger.database import is_url
from sfumato.mining import Moments
from sfumato.release.certificate import check
from sfumato.release.manifest import METADATA, sidecar
from sfumato.service.copy_responses import negotiate_format
from sfumato.survey.definition import Survey
from sfumato.survey.example import EXAMPLE
from sfumato.tables.source import Source
from sfumato.tables.view import View
from sfumato.vault import tokens
from sfumato.vault.log_query import parse_query
from sfumato.vault.names import parse_end, validated_name

OLD = Path(__file__).parents[1] / "compatibility" / "v0.1"
"""Files of an earlier version."""

SECRET = sf.Key.from_bytes(bytes(range(32)))


@dataclass(frozen=True)
class Parser:
    """A parser and its cases."""

    parse: Callable[[bytes], object]
    """Reads an input; it may raise `SfumatoError` and nothing else."""
    mutant: Callable[[], Mutator]
    """Makes the generator of inputs."""
    sweep: int
    """Cases in `make sweep`."""
    cases: int = 20
    """Cases in `make test`."""


@cache
def scratch() -> Path:
    """A folder of this process, for parsers of files."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _stored(name: str, content: bytes) -> Path:
    path = scratch() / name
    path.write_bytes(content)
    return path


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


@cache
def _copy() -> pa.Table:
    return wards.policy().fit(wards.table(60)).release(wards.table(60), "partner", SECRET)


def _manifest(content: bytes) -> None:
    """A manifest, and all that is read from it to show, check, mine and attack copies."""
    found = sf.Manifest.loads(content)
    found.dumps()
    found.signed_content()
    for model in found.models:
        found.path_identity(model)
        model.promises(sf.Level(0.5))
        model.limits()
        for column in model.columns:
            model.describe(column, str)
    is_signed(found.signed_content(), found.signature, found.signer)


def _manifest_inside(content: bytes) -> None:
    """A manifest in the metadata of a table, on which a certificate is checked and which is mined."""
    table = _copy().replace_schema_metadata({METADATA: content})
    for use in (check, Moments().fit):
        with contextlib.suppress(SfumatoError):
            use(table)


def _manifest_beside(content: bytes) -> None:
    path = scratch() / "copy.csv"
    if not path.exists():
        pa.csv.write_csv(_copy(), path)
    sidecar(path).write_bytes(content)
    check(path)


def _table(suffix: str) -> Callable[[bytes], None]:
    def parse(content: bytes) -> None:
        path = _stored(f"table{suffix}", content)
        with contextlib.suppress(SfumatoError):
            sf.Manifest.of(path)
        source = Source.of(path)
        for _ in source.batches():
            pass

    return parse


def _drafted(content: bytes) -> None:
    """A CSV table, and a policy that is suggested for it."""
    sf.Policy.suggest(_stored("drafted.csv", content))


def _scheme(content: bytes) -> None:
    sf.TableScheme.load(_stored("scheme.json", content)).release(wards.table(60), 0.3, SECRET)


def _key(content: bytes) -> None:
    path = scratch() / "key"
    if not path.exists():
        path.touch(0o600)
    path.write_bytes(content)
    sf.Key.load(path)


def _lock(content: bytes) -> None:
    """A wrapped master key, in a column of the ledger that holds JSON."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    unwrap(document, SECRET, "vault/1")


def _backup(content: bytes) -> None:
    secret = sf.Key.from_bytes(bytes.fromhex((OLD / "vault.key").read_text().split()[1]))
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        sf.Vault.restore(_stored("backup", content), f"{folder}/restored", secret=secret)


def _condition(content: bytes) -> None:
    view, table = View(where=_text(content)), wards.table(20)
    view.check(table.column_names, table.column_names)
    for batch in table.to_batches():
        view.filter(batch)


def _name(content: bytes) -> None:
    text = _text(content)
    is_url(text)
    with contextlib.suppress(SfumatoError):
        validated_name("dataset", text)
    with contextlib.suppress(SfumatoError):
        parse_end(text)
    with contextlib.suppress(SfumatoError):
        _query(text)


def _query(text: str) -> None:
    parse_query(text, text, None, text, text, 5)


def _accepted(content: bytes) -> None:
    from sfumato.service.problems import HTTPProblem

    with contextlib.suppress(HTTPProblem):
        negotiate_format(_text(content), None)


@cache
def _vault() -> sf.Vault:
    vault = sf.Vault.create(str(scratch() / "vault"), secret=SECRET)
    vault.recipient("clinic")
    return vault


def _token(content: bytes) -> None:
    assert tokens.authenticate(_vault(), _text(content)) is None


def _survey(content: bytes) -> None:
    survey = Survey.loads(content.decode("utf-8", "replace"))
    assert Survey.loads(survey.dumps()) == survey
    assert survey.version


def _policy(content: bytes) -> None:
    policy = sf.Policy.loads(content.decode("utf-8", "replace"))
    assert sf.Policy.loads(policy.dumps()) == policy


def _fitted(content: bytes) -> None:
    sf.Policy.loads(content.decode("utf-8", "replace")).fit(wards.table(60))


def _written(suffix: str) -> bytes:
    out = io.BytesIO()
    table = wards.table(40).append_column("stay", pa.array([{"days": i, "note": [str(i)]} for i in range(40)]))
    if suffix == "csv":
        pa.csv.write_csv(wards.table(40), out)
    elif suffix == "parquet":
        pa.parquet.write_table(table, out, compression="zstd")
    else:
        make = pa.ipc.new_file if suffix == "arrow" else pa.ipc.new_stream
        options = pa.ipc.IpcWriteOptions(compression="zstd" if suffix == "arrow" else None)
        with make(out, table.schema, options=options) as writer:
            writer.write_table(table)
    return out.getvalue()


def _files(pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(OLD.glob(pattern))]


def _manifests() -> list[bytes]:
    table = wards.table(200)
    copula = sf.Policy.loads(_COPULA).fit(table).release(table, "partner", sf.Key.from_bytes(bytes(32)))
    own = [sf.Manifest.of(copy).dumps().encode() for copy in (_copy(), copula)]
    return [*_files("*.manifest.json")[:8], *own]


def _schemes() -> list[bytes]:
    copula = sf.Policy.loads(_COPULA).fit(wards.table(200)).dumps()
    return [*_files("*.scheme.json"), wards.policy().fit(wards.table(60)).dumps().encode(), copula.encode()]


_COPULA = wards.POLICY.replace('"gaussian"', '"copula"').replace(
    'diagnosis = { role = "uniform", domain', 'diagnosis = { role = "copula", order'
)
"""A policy with margin-preserving columns."""


def _policies() -> list[bytes]:
    from tests.conftest import TINY_POLICY

    audit = '[audit]\nage = "rmse >= 1"\n[columns]\n'
    return [*_files("*.toml"), TINY_POLICY.encode(), wards.POLICY.replace("[columns]\n", audit).encode()]


def _ward_policies() -> list[bytes]:
    options = ("scale = 2", "clip = [0, 90]", "integer = true", 'nulls = "perturb"', "publish = true")
    changed = [wards.POLICY.replace('age = "gaussian"', f'age = {{ role = "gaussian", {one} }}') for one in options[:3]]
    return [text.encode() for text in (wards.POLICY, *changed, wards.POLICY.replace('"keep"', '"uniform"'), _COPULA)]


def _surveys() -> list[bytes]:
    guided = EXAMPLE.replace('mode = "randomised"', 'mode = "guided"')
    return [EXAMPLE.encode(), guided.encode()]


def _backups() -> Mutator:
    """Archives with some changed bytes, or with a changed row of the ledger."""
    content = (OLD / "vault.backup").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]

    def mutant(rng: Random) -> bytes:
        if rng.randrange(4) == 0:
            return mutation.changed_bytes(rng, content)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for member, stored in members:
                changed = stored
                if member.name == "ledger.jsonl":
                    lines = stored.splitlines()
                    row = rng.randrange(len(lines))
                    lines[row] = json.dumps(mutation.changed_document(rng, json.loads(lines[row]))).encode()
                    changed = b"\n".join(lines) + b"\n"
                header = tarfile.TarInfo(member.name)
                header.size = len(changed)
                archive.addfile(header, io.BytesIO(changed))
        return out.getvalue()

    return mutant


def _locks() -> Mutator:
    sealed = wrap(sf.Key.from_bytes(bytes(32)), SECRET, "vault/1")
    return mutation.of_json(json.dumps(sealed).encode())


_CONDITIONS = ("region == 'north' and age >= 40", "not (id in [1, 2.5, 'x'])", "diagnosis != 'flu' or income < -1e300")
_PIECES = ("region", "age", " and ", " or ", "not ", "(", ")", "[", "]", "==", "<", " in ", "'x'", "1", "1e9", "-", ",")
_NAMES = ("ward", "a" * 100, "2026-12-31", "2026-12-31T10:00:00+02:00", "0001-01-01", "9999-12-31T23:59:59-23:59")
_ACCEPTED = ("text/csv;q=0.5, application/vnd.apache.parquet", "*/*", "text/*;q=1.0, */*;q=0")
_TOKEN = "sfu_0123456789ab_" + "A" * 43

PARSERS: dict[str, Parser] = {
    "key file": Parser(_key, lambda: mutation.of_bytes(*_files("*.key")), 150_000),
    "name and date": Parser(_name, lambda: mutation.of_text([*_NAMES, "-", "T", ":", "+", "Z"], _NAMES), 200_000),
    "accept header": Parser(
        _accepted, lambda: mutation.of_text([*_ACCEPTED, ";", "q=", "/", ",", "*"], _ACCEPTED), 200_000
    ),
    "condition on rows": Parser(_condition, lambda: mutation.of_text(_PIECES, _CONDITIONS), 60_000),
    "access token": Parser(_token, lambda: mutation.of_text([_TOKEN, "sfu_", "_", "\0"], [_TOKEN]), 10_000),
    "lock": Parser(_lock, _locks, 60_000),
    "policy": Parser(_policy, lambda: mutation.of_toml(*_policies()), 50_000),
    "fitted policy": Parser(_fitted, lambda: mutation.of_toml(*_ward_policies()), 15_000),
    "survey definition": Parser(_survey, lambda: mutation.of_toml(*_surveys()), 60_000),
    "manifest": Parser(_manifest, lambda: mutation.of_json(*_manifests()), 100_000),
    "manifest in metadata": Parser(_manifest_inside, lambda: mutation.of_json(_manifests()[-1]), 15_000),
    "manifest beside": Parser(_manifest_beside, lambda: mutation.of_json(*_files("ward.csv.m*")), 15_000),
    "scheme": Parser(_scheme, lambda: mutation.of_json(*_schemes()), 10_000),
    "csv table": Parser(_table(".csv"), lambda: mutation.of_bytes(_written("csv"), *_files("*.csv")), 25_000),
    "csv draft": Parser(_drafted, lambda: mutation.of_bytes(_written("csv")), 5_000, 5),
    "parquet table": Parser(
        _table(".parquet"), lambda: mutation.of_bytes(_written("parquet"), *_files("ward.parquet")), 30_000
    ),
    "arrow file": Parser(_table(".arrow"), lambda: mutation.of_bytes(_written("arrow")), 15_000),
    "arrow stream": Parser(_table(".feather"), lambda: mutation.of_bytes(_written("stream")), 15_000),
    "backup": Parser(_backup, _backups, 2_000, 3),
    "http request": Parser(HttpParser(SECRET), HttpParser.mutants, 20_000),
}
