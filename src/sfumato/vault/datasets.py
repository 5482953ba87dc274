"""Datasets: a table and its policy, the scheme that was fitted to its first version, and its later versions."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from sfumato.errors import PolicyError, SourceError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.levels import Level
from sfumato.mechanisms import Scheme
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.mechanisms._linear_map import LinearMapScheme
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.unchanged import Unchanged
from sfumato.policy.document import Column, Policy
from sfumato.release.scheme import TableScheme
from sfumato.tables.source import Source
from sfumato.vault.fingerprints import DIGITS
from sfumato.vault.names import checked
from sfumato.vault.record_changes import changes, write_records
from sfumato.vault.store import Store, altered

DRIFT = 1.25
"""Data that vary this many times as much as the noise was shaped for, in some direction, are reported."""

_MOST = 1e12
"""A stretch that is infinite in mathematics: data that vary where the noise does not."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Dataset:
    """One version of a dataset, as the ledger has it."""

    name: str
    body: dict[str, Any]
    store: Store

    @classmethod
    def of(cls, entry: Entry, store: Store) -> Dataset:
        """The dataset that an entry speaks of."""
        return cls(entry.dataset, entry.body, store)

    @property
    def version(self) -> int:
        """Counted from 1."""
        return int(self.body["version"])

    @property
    def has_numbers(self) -> bool:
        """Whether there are columns with noise."""
        return "gaussian" in self.body["columns"].values() or any(_is_noisy(part) for part in self.scheme.schemes)

    @property
    def traced(self) -> bool:
        """Whether recipients of one level get copies that tell them apart."""
        return bool(self.body["traced"])

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.body["schema"])))

    @cached_property
    def scheme(self) -> TableScheme:
        """The scheme of the first version, which stays in force."""
        if not self.store.is_whole(self.body["scheme"]):
            raise altered(self.body["scheme"]["name"])
        with self.store.fetch(self.body["scheme"]["name"]) as path:
            return TableScheme.load(path)

    @contextlib.contextmanager
    def source(self) -> Iterator[Source]:
        """The table itself, as it was kept."""
        if not self.store.is_whole(self.body["source"]):
            raise altered(self.body["source"]["name"])
        with self.store.fetch(self.body["source"]["name"]) as path:
            yield Source.of(path)


def prepare(policy: Policy, table: Any, store: Store, *, traced: bool, progress: Progress | None) -> dict[str, Any]:
    """Fit a policy to a table, keep everything in the store, and return what the ledger shall say of it."""
    name = checked("dataset", policy.dataset)
    policy = replace(policy, digits=max(policy.digits, DIGITS)) if traced else policy
    source = Source.of(table)
    scheme = policy.fit(source, progress=progress)
    _check(scheme, source, traced=traced)
    scheme.check_motion(source)  # a policy cannot be changed: better now than at the first release
    first = _stretch(scheme, source, progress) if _has_own_sizes(policy) else 1.0
    body = {
        "version": 1,
        "traced": traced,
        "columns": {column: policy.columns[column].role for column in sorted(policy.columns)},
        "levels": [[level, value.fidelity] for level, value in policy.ladder.levels.items()],  # in their order
        "stretch": first,
        "first stretch": first,
        "policy": store.put_text(f"datasets/{name}/policy-{{}}.toml", policy.dumps()),
        "scheme": store.put_text(f"datasets/{name}/scheme-{{}}.json", scheme.dumps()),
    }
    return body | _kept(name, 1, scheme, source, source.schema.remove_metadata(), store, progress)


def succeed(dataset: Dataset, table: Any, *, progress: Progress | None) -> dict[str, Any] | None:
    """Keep the next version of a dataset, and return what the ledger shall say of it; nothing if it is the same."""
    scheme, number = dataset.scheme, dataset.version + 1
    source = Source.of(table, dataset.schema)
    _check_columns(source.schema, dataset.schema)
    _check(scheme, source, traced=False)
    stretch = _stretch(scheme, source, progress)
    kept = _kept(dataset.name, number, scheme, source, dataset.schema, dataset.store, progress)
    found = changes(dataset.store, dataset.body["records"], kept["records"])
    if found.appended == found.deleted == found.changed == 0:
        for file in (kept["source"], kept["records"]):
            dataset.store.drop(file["name"])
        return None
    same = ("traced", "columns", "levels", "policy", "scheme", "first stretch")
    body = {name: dataset.body[name] for name in same}
    return body | kept | {"version": number, "changes": asdict(found), "stretch": stretch}


def _has_own_sizes(policy: Policy) -> bool:
    return any({"scale", "spread"} & set(column.options) for column in policy.columns.values())


def _stretch(scheme: TableScheme, source: Source, progress: Progress | None) -> float:
    """By how much the numbers of a table vary more than the noise was shaped for, where they do so most."""
    shaped = [part for part in scheme.schemes if isinstance(part, GaussianScheme)]
    if any(map(_is_noisy, scheme.schemes)):
        later = scheme.policy.fit(source, progress=progress).schemes
        grown = [old.drift(new) for old, new in zip(scheme.schemes, later, strict=True) if _is_noisy(old)]
        return min(max(1.0, *grown), _MOST)
    if not shaped:
        return 1.0
    options = scheme.policy.options("gaussian")
    own = {name: Column("gaussian", {k: v for k, v in said.items() if k == "clip"}) for name, said in options.items()}
    policy = Policy(scheme.policy.dataset, scheme.policy.ladder, own, default="drop")
    return min(shaped[0].drift(policy.fit(source, progress=progress).schemes[0]), _MOST)


def _is_noisy(part: Scheme) -> bool:
    """Whether a scheme adds noise before a turn."""
    return isinstance(part, LinearMapScheme) and part.is_noisy


def is_drifting(body: dict[str, Any]) -> bool:
    """Whether a version varies more than the first one, for which the noise was shaped."""
    return float(body["stretch"]) > DRIFT * float(body["first stretch"])


def left(fidelity: float, stretch: float) -> float:
    """What is left to the best attacker where the data vary `stretch` times as much as the noise was shaped for.

    With `f = 1/(1+σ²)`, and noise `σ²/stretch` in units of that variance.
    """
    noise = Level(fidelity).noise / stretch
    return noise / (1 + noise)


def _check(scheme: TableScheme, source: Source, *, traced: bool) -> None:
    scheme.check(source, Key.from_bytes(bytes(32)))
    if next(source.batches(list(source.schema.names[:1])), None) is None:
        raise SourceError(
            "a vault keeps tables with at least one record, and this one has none; see what it should hold"
        )
    models = [part.model(next(iter(scheme.policy.ladder))) for part in scheme.schemes]
    if any(not model.collusion_resistant for model in models if not isinstance(model, Unchanged)):
        raise PolicyError("a vault does not release noise that is independent between copies; use gaussian or uniform")
    if traced and not any(isinstance(model, GaussianNoise) for model in models):
        raise PolicyError("tracing needs a column with the role gaussian, and the policy has none; leave it out")


def _check_columns(found: pa.Schema, first: pa.Schema) -> None:
    """Refuse a later version that has not the columns of the first."""
    for field in first:
        if field.name not in found.names:
            raise SourceError(f"a version must have the columns of the first one, and {field.name!r} is missing")
        kind = found.field(field.name).type
        if kind != field.type:
            raise SourceError(f"column {field.name!r} must hold {field.type} as in the first version, got {kind}")
    extra = [name for name in found.names if name not in first.names]
    if extra:
        raise SourceError(f"a version must have the columns of the first one, and {extra[0]!r} is new; leave it out")


def _kept(
    name: str,
    number: int,
    scheme: TableScheme,
    source: Source,
    schema: pa.Schema,
    store: Store,
    progress: Progress | None,
) -> dict[str, Any]:
    """Keep a version's table and the file of its records."""
    rows = 0

    def write(path: Path) -> None:
        nonlocal rows
        with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd", compression_level=1) as file:
            for batch in source.batches(schema.names):
                file.write_batch(batch.cast(schema))
                rows += batch.num_rows
                if progress:
                    progress(batch.num_rows)

    # what is wrong with the table shows in the first pass, before anything is kept
    records = store.put(f"datasets/{name}/{number}-{{}}.records", lambda path: write_records(scheme, source, path))
    table = store.put(f"datasets/{name}/{number}-{{}}.parquet", write)
    shown = base64.b64encode(schema.serialize()).decode()
    return {"rows": rows, "source": table, "records": records, "schema": shown}
