"""Datasets of a vault: a table and its policy, the scheme fitted to its first version, and its later versions."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from sfumato.errors import PolicyError, SfumatoError, SourceError
from sfumato.keys.key import Key
from sfumato.ledger.chain import Entry
from sfumato.mechanisms import MECHANISMS
from sfumato.mechanisms._entity_rows import most_rows, rounded_up
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.models import of_type
from sfumato.models.gaussian_copula import GaussianCopula
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.fitting import fit
from sfumato.release.gate import Request, check_linear_maps, check_table
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme
from sfumato.tables.dialect import own_metadata
from sfumato.tables.readers import TableFile
from sfumato.tables.source import Source
from sfumato.vault.dataset_entries import ENTITY_ROWS, FIRST_RATIO, GIVEN, OVERLAPS, RATIO, TABLE, variance_ratio
from sfumato.vault.encrypted_store import EncryptedStore, plain_name
from sfumato.vault.fingerprints import DIGITS
from sfumato.vault.names import validated_name
from sfumato.vault.record_changes import compare_versions, loss_refusal
from sfumato.vault.running_moments import RunningMoments, are_running
from sfumato.vault.store import files_in
from sfumato.vault.stored_rows import Progress, encoded_schema, store_moments, store_rows
from sfumato.vault.table_parts import TablePart, parts_of

_MAX_RATIO = 1e12
"""A finite value for an infinite variance ratio: data that vary in a direction without noise."""

PUBLIC_KEY = Key.from_bytes(bytes(32))
"""A key that everybody knows, where hashes need one and nothing is secret."""


@dataclass(frozen=True)
class Dataset:
    """One version of a dataset, as the ledger records it."""

    name: str
    body: dict[str, Any]
    store: EncryptedStore

    @classmethod
    def of(cls, entry: Entry, store: EncryptedStore) -> Dataset:
        """The dataset that an entry is about."""
        return cls(entry.dataset, entry.body, store)

    @property
    def version(self) -> int:
        """The number of the version, counted from 1."""
        return int(self.body["version"])

    @property
    def rows(self) -> int:
        """The number of rows of this version."""
        return int(self.body["rows"])

    @property
    def columns(self) -> dict[str, str]:
        """The role of each column."""
        return dict(self.body["columns"])

    @property
    def levels(self) -> dict[str, float]:
        """The fidelity of each declared level, the most trusted one first."""
        return dict(self.body["levels"])

    @property
    def traced(self) -> bool:
        """Whether the copies of one level are fingerprinted, so that leaks can be traced."""
        return bool(self.body["traced"])

    @property
    def variance_ratio(self) -> float:
        """The largest ratio, over all directions, of the data's variance to the one the noise was fitted to."""
        return variance_ratio(self.body)

    @property
    def has_additive_noise(self) -> bool:
        """Whether some numbers carry additive noise, in their own columns or before a linear map."""
        return any(map(adds_noise, self.columns.values())) or any(_noisy_maps(self.scheme))

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.body["schema"])))

    @cached_property
    def scheme(self) -> TableScheme:
        """The scheme that was fitted to the first version; all versions use it."""
        scheme = TableScheme.loads(self.store.read_text(self.body["scheme"]), self.body["scheme"]["name"])
        return _of_version(scheme, self.body)

    def later_source(self, table: Any) -> Source:
        """A table that has the columns of this version, and may follow it."""
        source = self.scheme.policy.source(table, self.schema)
        _check_columns(source.schema, self.schema)
        return source

    @property
    def parts(self) -> list[TablePart]:
        """The parts that the table of this version is stored in."""
        return parts_of(self.body)

    @contextlib.contextmanager
    def source(self) -> Iterator[Source]:
        """The original table of this version."""
        with self.rows_after(0) as source:
            yield source

    @contextlib.contextmanager
    def rows_after(self, row: int) -> Iterator[Source]:
        """The rows of this version after so many; parts without any of them are not looked at."""
        parts, start = self.parts, 0
        while len(parts) > 1 and start + parts[0].rows <= row:
            start += parts.pop(0).rows
        with self.opened(parts) as source:
            if source is None:
                raise TypeError("a table has at least one part")
            yield source.starting_at(start).after(row - start) if row else source

    @contextlib.contextmanager
    def opened(self, parts: Sequence[TablePart]) -> Iterator[Source | None]:
        """Some parts of the table, one after the other; nothing of none."""
        with contextlib.ExitStack() as stack:
            sources = []
            for part in parts:
                opener = stack.enter_context(self.store.open(part.source))
                sources.append(Source.of(TableFile(plain_name(part.source["name"]), opener)))
            yield reduce(Source.extended, sources) if sources else None


def first_version(
    policy: Policy, table: Any, store: EncryptedStore, *, traced: bool, progress: Progress | None, number: int = 1
) -> dict[str, Any]:
    """Fit a policy to a table, store both, and return the body of the ledger entry.

    Args:
        policy: the policy.
        table: the table.
        store: the store.
        traced: whether copies are fingerprinted.
        progress: called with the number of rows that were read.
        number: the number of the version; above 1 only if nobody can read the earlier ones any more.

    """
    name = validated_name("dataset", policy.dataset)
    policy = replace(policy, digits=max(policy.digits, DIGITS)) if traced else policy
    source = policy.source(table)
    scheme = policy.fit(source, progress=progress)
    check_rows(scheme, source, traced=traced)
    # the policy cannot be changed later: check now, not at the first release
    check_linear_maps(Request.of(scheme, source, PUBLIC_KEY), min(scheme.policy.ladder))
    prefix = f"{store.folder(name)}/{number}"
    schema = own_metadata(source.schema)
    stored = store_rows(prefix, scheme, source, schema, store, progress=progress)
    moments = RunningMoments.of(scheme, source) if are_running(scheme) else None
    ratio = measured_ratio(scheme, source, moments) if _sets_noise_size(policy) else 1.0
    body: dict[str, Any] = {
        "version": number,
        "traced": traced,
        "columns": {column: policy.columns[column].role for column in sorted(policy.columns)},
        "levels": [[level, value.fidelity] for level, value in policy.ladder.levels.items()],
        RATIO: ratio,
        FIRST_RATIO: ratio,
        "policy": store.put_text(f"{store.folder(name)}/policy-{{}}.toml", policy.dumps()),
        "scheme": store.put_text(f"{store.folder(name)}/scheme-{{}}.json", scheme.dumps()),
    }
    if policy.table:
        body[TABLE] = policy.table
    table = {"rows": stored.rows, "schema": encoded_schema(schema)}
    body |= stored.body() | table | store_moments(prefix, moments, store)
    return body | given_fidelities(scheme, schema, body)


def next_version(
    dataset: Dataset, source: Source, *, may_lose: bool, progress: Progress | None
) -> dict[str, Any] | None:
    """Store the next version of a dataset, and return the body of its ledger entry; `None` if nothing changed.

    Args:
        dataset: the version before.
        source: the table, with the columns of the first version.
        may_lose: whether many records may be lost, or drawn again.

    """
    scheme, number = dataset.scheme, dataset.version + 1
    check_rows(scheme, source, traced=False)
    store, prefix = dataset.store, f"{dataset.store.folder(dataset.name)}/{number}"
    stored = store_rows(prefix, scheme, source, dataset.schema, store, progress=progress)
    found = compare_versions(store, [part.records for part in dataset.parts], [stored.records])
    same = found.appended == found.deleted == found.changed == 0
    refusal = None if may_lose else loss_refusal(dataset.name, dataset.rows, found, has_ids=bool(scheme.ids))
    if same or refusal is not None:
        for file in files_in(stored.body()):
            store.drop(file)
        if refusal is not None:
            raise refusal
        return None
    moments = RunningMoments.of(scheme, source) if are_running(scheme) else None
    measured = {"changes": asdict(found), RATIO: measured_ratio(scheme, source, moments)}
    if scheme.policy.entity is not None:
        measured[ENTITY_ROWS] = most_rows(source.batches([scheme.policy.entity]), scheme.policy.entity)
    body = later_body(dataset, [stored]) | store_moments(prefix, moments, store) | measured
    return body | given_fidelities(scheme, dataset.schema, body)


def later_body(dataset: Dataset, parts: Sequence[TablePart]) -> dict[str, Any]:
    """What the entry of the next version has of the one before, and the parts of its table."""
    constant = ("traced", "columns", "levels", "policy", "scheme", "schema", FIRST_RATIO, OVERLAPS, TABLE)
    body: dict[str, Any] = {name: dataset.body[name] for name in constant if name in dataset.body}
    for part in parts:
        body |= part.body()
    return body | {"version": dataset.version + 1, "rows": sum(part.rows for part in parts)}


def given_fidelities(scheme: TableScheme, schema: pa.Schema, body: Mapping[str, Any]) -> dict[str, Any]:
    """What the entry of a version says of its copies, so that a grant of a declared level need not read the scheme."""
    fitted, found = _of_version(scheme, body), list[tuple[str, float]]()
    for name, level in () if body["traced"] else scheme.policy.ladder.levels.items():
        with contextlib.suppress(SfumatoError):  # which a grant of this level raises
            fitted.models(schema, level)
            found.append((name, fitted.given(level).fidelity))
    return {GIVEN: [list(pair) for pair in found]}


def _of_version(scheme: TableScheme, body: Mapping[str, Any]) -> TableScheme:
    """The scheme for a version, given the body of its entry: entities may have more rows than in the first one."""
    return scheme.with_entity_rows(rounded_up(body[ENTITY_ROWS])) if ENTITY_ROWS in body else scheme


def _sets_noise_size(policy: Policy) -> bool:
    """Whether the policy sets the size of the noise of some column itself."""
    return any({"scale", "spread"} & set(column.options) for column in policy.columns.values())


def measured_ratio(scheme: TableScheme, source: Source, moments: RunningMoments | None) -> float:
    """The largest ratio, over all directions, of a table's variance to the one that the noise was fitted to.

    For margin-preserving columns it is that of their scores. Without running moments the table is measured again.
    """
    ratio = _fitted_ratio(scheme, source) if moments is None else moments.variance_ratio(scheme)
    return min(ratio, _MAX_RATIO)


def _fitted_ratio(scheme: TableScheme, source: Source) -> float:
    """The variance ratio of numbers that are mapped: of what the same policy is fitted to now."""
    columns = {name: replace(one, options=_any_clip(one.options)) for name, one in scheme.policy.columns.items()}
    later = fit(replace(scheme.policy, columns=columns), source).schemes
    noisy = [a or isinstance(b, GaussianScheme) for a, b in zip(_noisy_maps(scheme), scheme.schemes, strict=True)]
    ratios = [a.drift(b) for a, b, has_noise in zip(scheme.schemes, later, noisy, strict=True) if has_noise]
    return max([1.0, *ratios])


def _any_clip(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a column whose clip may move any number of values: a later version does not change a policy."""
    return {**options, "max_clipped": 1} if "clip" in options else dict(options)


def adds_noise(role: str) -> bool:
    """Whether columns of a role are numbers with additive noise."""
    return role in MECHANISMS and bool(MECHANISMS[role].adds_noise)


def is_linear_map(role: str) -> bool:
    """Whether columns of a role are combined by a secret linear map, such as a rotation."""
    return role in MECHANISMS and bool(MECHANISMS[role].is_linear_map)


def gaussian_scheme(scheme: TableScheme) -> GaussianScheme | None:
    """The part of a scheme that adds Gaussian noise; `None` if there is none."""
    return next((part for part in scheme.schemes if isinstance(part, GaussianScheme)), None)


def _noisy_maps(scheme: TableScheme) -> list[bool]:
    """For each part of a scheme, whether it is a linear map of numbers with noise."""
    level = next(iter(scheme.policy.ladder))
    return [mechanism.is_linear_map and part.model(level).is_perturbed for mechanism, part in scheme.fitted]


def check_rows(scheme: TableScheme, source: Source, *, traced: bool) -> None:
    """Raise an error for a table or a scheme that a vault cannot release copies of."""
    check_table(scheme, source, PUBLIC_KEY)
    if next(source.batches(list(source.schema.names[:1])), None) is None:
        raise SourceError(
            "a table must have at least one record to be added to a vault, and this one has none; check the file"
        )
    models = [part.model(next(iter(scheme.policy.ladder))) for part in scheme.schemes]
    if any(model.is_perturbed and not model.is_collusion_resistant for model in models):
        raise PolicyError(
            "copies from a vault must resist collusion, and the policy asks for noise that is independent between "
            "copies; use the role copula, gaussian or uniform"
        )
    if traced and scheme.policy.entity is not None:
        raise PolicyError(
            "tracing needs noise of its own for each record, and records of one entity share some; leave out --trace, "
            "or the role entity"
        )
    if traced and not of_type(models, GaussianNoise) and not of_type(models, GaussianCopula):
        raise PolicyError(
            "tracing needs a column with the role copula or gaussian, and the policy has none; leave out --trace"
        )


def _check_columns(found: pa.Schema, first: pa.Schema) -> None:
    """Raise `SourceError` for a later version that does not have the columns of the first one."""
    for field in first:
        if field.name not in found.names:
            raise SourceError(f"a version must have the columns of the first one, and {field.name!r} is missing")
        kind = found.field(field.name).type
        if kind != field.type:
            raise SourceError(f"column {field.name!r} must hold {field.type} as in the first version, got {kind}")
    extra = [name for name in found.names if name not in first.names]
    if extra:
        raise SourceError(f"a version must have the columns of the first one, and {extra[0]!r} is new; leave it out")
