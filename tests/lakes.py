"""Tables in many files for tests: every mechanism, laid out in several ways."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.tables.source import Source

ROWS = 3000
LAYOUTS = ("one", "many", "partitioned", "row groups")
LEVELS = ("high", 0.55, "low")

_HEAD = 'dataset = "lake"\n[levels]\nhigh = 0.8\nlow = 0.2\n'
_REST = {
    "region": '"keep"',
    "age": '"drop"',
    "income": '"drop"',
    "born": '"drop"',
    "ward": '"drop"',
    "code": '"drop"',
    "sick": '"drop"',
}


def _policy(settings: str = "", named: bool = True, **columns: str) -> sf.Policy:
    said = "".join(f"{name} = {role}\n" for name, role in (_REST | columns).items())
    record = '"id"' if named else '{ role = "id", publish = false }'
    return sf.Policy.loads(f"{_HEAD}{settings}[columns]\nrecord = {record}\n{said}")


def _mapped(role: str, more: str = "") -> sf.Policy:
    settings = f'[{role}]\naccept = "this is a test"\n{more}'
    return _policy(settings, named=False, age=f'"{role}"', income=f'"{role}"')


POLICIES = {
    "gaussian": _policy(age='"gaussian"', income='{ role = "gaussian", clip = [0, 90000] }', born='"gaussian"'),
    "uniform": _policy(
        ward='{ role = "uniform", domain = ["A", "B", "C", "D"], nulls = "perturb" }',
        code='{ role = "uniform", domain = { min = 0, max = 9 }, joint = "pair" }',
        sick='{ role = "uniform", joint = "pair" }',
    ),
    "copula": _policy(
        age='"copula"', income='{ role = "copula", top = 90000 }', born='"copula"', ward='"copula"', sick='"copula"'
    ),
    "independent": _policy(
        age='{ role = "independent", of = "gaussian" }',
        ward='{ role = "independent", of = "uniform", domain = ["A", "B", "C"] }',
    ),
    "everything": _policy(
        age='"gaussian"',
        born='"gaussian"',
        income='{ role = "independent", of = "gaussian" }',
        ward='{ role = "uniform", domain = ["A", "B", "C", "D"], nulls = "perturb" }',
        code='{ role = "uniform", domain = { min = 0, max = 9 }, joint = "pair" }',
        sick='{ role = "uniform", joint = "pair" }',
    ),
    "together": _policy(age='"gaussian"', income='"gaussian"', ward='{ role = "uniform", domain = ["A", "B", "C"] }'),
    "rotation": _mapped("rotation", "shuffle = false\n"),
    "shuffled": _mapped("rotation"),
    "projection": _mapped("projection", "dimensions = 3\nshuffle = false\n"),
}


def table(rows: int = ROWS, seed: int = 5) -> pa.Table:
    """Records of a hospital, in no order."""
    draw = np.random.default_rng(seed)
    base = draw.normal(size=(rows, 2))
    start = dt.date(1970, 1, 1)
    return pa.table(
        {
            "record": pa.array(draw.permutation(rows) * 7 - 50),
            "region": np.array(["north", "south", "east coast"])[draw.integers(0, 3, rows)],
            "age": pa.array(45 + 18 * base[:, 0], mask=draw.random(rows) < 0.05),
            "income": 30_000 + 9_000 * (base[:, 0] + base[:, 1]),
            "born": pa.array([start + dt.timedelta(days=int(d)) for d in 4000 * base[:, 1]]),
            "ward": pa.array(np.array(list("ABC"))[draw.integers(0, 3, rows)], mask=draw.random(rows) < 0.1),
            "code": draw.integers(0, 10, rows),
            "sick": base[:, 0] > 0.5,
        }
    )


def lay(whole: pa.Table, folder: Path, layout: str) -> Path:
    """The table in files: one, some of uneven sizes in nested folders, one partition a region, or no folder at all."""
    if layout == "row groups":
        _write(whole, folder / "table.parquet")
        return folder / "table.parquet"
    if layout == "partitioned":
        for region in ("north", "south", "east coast"):
            rows = whole.filter(pa.compute.equal(whole["region"], region)).drop(["region"])
            for i, start in enumerate(range(0, rows.num_rows, 400)):
                _write(rows.slice(start, 400), folder / f"region={region.replace(' ', '%20')}" / f"{i}.parquet")
        return folder
    ends = [0, whole.num_rows] if layout == "one" else [0, 17, 700, 700, 1900, 1901, whole.num_rows]
    for i, (first, last) in enumerate(pairwise(ends)):
        _write(whole.slice(first, last - first), folder / f"y{i % 3}" / f"part-{i}.parquet")
    return folder


def _write(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, row_group_size=256)


def rows_of(uri: str | Path) -> pa.Table:
    """All rows of a file or a folder, in an order that does not depend on where they lay."""
    source = Source.of(uri)
    return ordered(pa.Table.from_batches(source.batches(), source.schema))


def ordered(rows: pa.Table) -> pa.Table:
    rows = rows.select(sorted(rows.column_names)).replace_schema_metadata(None)
    named = "record" in rows.column_names
    keys = ["record"] if named else rows.column_names
    return rows.sort_by([(name, "ascending") for name in keys]).combine_chunks()


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by name."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
