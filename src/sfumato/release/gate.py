"""The release gate: the one decision whether copies of a table may leave.

Every path to the outside (one file, a partitioned table, data frames, the vault, HTTP) asks `clear`, and every writer
takes a `Clearance`, which only `clear` makes. The gate refuses, in this order: a request that no grant allows, a
table that does not fit its policy, repeated record ids, rotated or projected copies that too few known records or a
sample undo, and levels at which an attack does better than the policy's thresholds allow.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from sfumato.engines import Secret
from sfumato.errors import ReleaseError
from sfumato.kernels import Floats, Words
from sfumato.keys.key import DatasetKey, Key
from sfumato.levels import Level
from sfumato.mechanisms import Scheme
from sfumato.models import of_type
from sfumato.models.rotation import Rotation
from sfumato.release.kept_formats import check_format
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import Manifest
from sfumato.release.perturbation import all_ids, numbered_rows, perturb_sample
from sfumato.tables.partitioned import Part
from sfumato.tables.sampling import sampled
from sfumato.tables.source import Source
from sfumato.tables.unique_ids import ensure_disjoint, ensure_distinct
from sfumato.tables.view import EVERYTHING

Sampler = Callable[[int], tuple[Words, pa.Table]]
"""Takes at most the given number of rows of a table, with their row numbers."""

T = TypeVar("T")


class Issuer(abc.ABC):
    """The authority that answers for a copy: it authorises the request, records it, and signs the manifest."""

    @abc.abstractmethod
    def authorise(self) -> None:
        """Refuse a request that no grant in force allows."""

    @property
    @abc.abstractmethod
    def was_released(self) -> bool:
        """Whether this very copy has been released before, so that its risk was assessed then."""

    @property
    @abc.abstractmethod
    def other_copies(self) -> Sequence[tuple[Level, Key]]:
        """The best copies that were released under other keys, whose noise is independent of this one's."""

    @abc.abstractmethod
    def begin(self, draft: Manifest) -> Manifest:
        """The manifest with what is known beforehand of recipient and signer."""

    @abc.abstractmethod
    def digest_algorithm(self) -> str:
        """The hash of the copy's digest: that of the digest that was recorded for it, if there is one."""

    @abc.abstractmethod
    def finish(self, manifest: Manifest) -> Manifest:
        """Record the copy and return its signed manifest; if this raises, the copy is not delivered."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """A table of which copies are requested, and how the gate can look at it."""

    layout: TableLayout
    table: T
    """A `Source`, or a data frame of a cluster."""
    schema: pa.Schema
    sample: Sampler
    """Takes some rows of all columns that the policy does not drop, in whatever view the copy will be."""
    check_ids: Callable[[], None]
    """Refuses repeated record ids."""

    @classmethod
    def of(cls, layout: TableLayout, source: Source, key: Key) -> Request[Source]:
        """A request for copies of a table that is read here."""
        return Request(layout, source, source.schema, sampler(layout, source), lambda: check_ids(layout, source, key))


@dataclass(frozen=True)
class DatasetSecret:
    """Gives a worker the key of a dataset, through what its engine shares."""

    shared: Secret

    def __call__(self) -> DatasetKey:
        """The key."""
        return DatasetKey(self.shared().expose())


class _Stamp(enum.Enum):
    """What makes a clearance; an enum, so that it survives the way to a worker."""

    CLEARED = enum.auto()


class Clearance(Generic[T]):
    """The gate's permission to write certain copies of one table: the only thing that writers accept.

    Only `clear` makes one, it cannot be changed, and a copy of it for workers or for one file allows no more.
    """

    __slots__ = ("issuer", "layout", "levels", "secret", "table")

    layout: TableLayout
    table: T
    levels: tuple[Level, ...]
    secret: Secret
    issuer: Issuer | None

    def __init__(
        self,
        stamp: _Stamp,
        layout: TableLayout,
        table: T,
        levels: tuple[Level, ...],
        secret: Secret,
        issuer: Issuer | None,
    ) -> None:
        if stamp is not _Stamp.CLEARED:
            raise ReleaseError("copies must be cleared by the release gate before they are written; call gate.clear")
        for name, value in zip(self.__slots__, (issuer, layout, levels, secret, table), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a clearance cannot be changed, so {name!r} stays as the gate set it; ask the gate again")

    def __reduce__(self) -> tuple[object, ...]:
        parts = (self.layout, self.table, self.levels, self.secret, self.issuer)
        return Clearance, (_Stamp.CLEARED, *parts)

    @property
    def level(self) -> Level:
        """The level, where there is one."""
        [level] = self.levels
        return level

    def for_part(self, part: Part, layout: TableLayout) -> Clearance[Source]:
        """The permission for one file of a partitioned table, as this layout shows it."""
        return Clearance(_Stamp.CLEARED, layout, Source.of(part), self.levels, self.secret, self.issuer)

    def for_workers(self) -> Clearance[None]:
        """The permission without the table, to be sent to workers that each make a part of the copy."""
        return Clearance(_Stamp.CLEARED, self.layout, None, self.levels, self.secret, None)

    def require_no_issuer(self) -> None:
        """Refuse to write a copy that must be recorded and signed in a way that does neither."""
        if self.issuer is not None:
            raise ReleaseError("a copy that is recorded and signed is written as a stream; use `copying.CopyStream`")


def clear(
    request: Request[T],
    levels: Sequence[Level],
    key: Key,
    *,
    issuer: Issuer | None = None,
    secret: Secret | None = None,
) -> Clearance[T]:
    """Decide whether copies of a table at some levels may leave; raises the reason if not.

    Args:
        request: the table.
        levels: the levels of the copies.
        key: the owner's key.
        issuer: the authority that answers for the copies, if they come from a vault.
        secret: the way in which workers get the key, if it is not simply at hand.

    """
    if issuer is not None:
        issuer.authorise()
    request.layout.check_schema(request.schema, key)
    request.check_ids()
    if issuer is None or not issuer.was_released:
        check_linear_maps(request, max(levels, default=max(request.layout.policy.ladder)))
        _check_thresholds(request, levels, key, () if issuer is None else issuer.other_copies)
    return Clearance(_Stamp.CLEARED, request.layout, request.table, tuple(levels), secret or (lambda: key), issuer)


def sampler(layout: TableLayout, source: Source) -> Sampler:
    """Takes some rows of a table that is read here, in whatever view copies will be."""
    return lambda rows: sampled(numbered_rows(layout.with_view(EVERYTHING), source), rows)


def check_ids(layout: TableLayout, source: Source, key: Key) -> None:
    """Refuse a table in which two records have the same id or, without ids, the same row number."""
    if layout.ids and source.rows != 1:  # of one, which streams of requests bring
        ensure_distinct(lambda: all_ids(layout, source, key))
    elif source.parts:
        ensure_disjoint(source.parts, (part.rows() for part in source.parts))


def check_linear_maps(request: Request[T], level: Level) -> None:
    """Refuse rotated or projected copies that known records or a sample undo, unless the policy accepts the risk."""
    for mechanism, scheme in request.layout.fitted:
        required = mechanism.must_withstand
        if required is not None:
            from sfumato.risk import breach, sample

            records, model = _records_before_map(request, scheme, level)
            breach.assess_known_record_risk(records, model, required).require_resistance(required, mechanism.role)
            sample.require_sample_resistance(records, model, mechanism.role)


def _records_before_map(request: Request[T], scheme: Scheme, level: Level) -> tuple[Floats, Rotation]:
    """Complete records as they are before the linear map, and the model of a copy of them."""
    from sfumato.release.evidence import original_before_map
    from sfumato.risk import breach

    [model] = of_type([scheme.model(level)], Rotation)
    _, rows = request.sample(breach.ROWS)
    return original_before_map(rows, model), model


def accepted_risks(layout: TableLayout) -> dict[str, str]:
    """The reasons why the policy accepts the risk of rotated or projected copies, by role."""
    return {mechanism.role: mechanism.accepted_risk for mechanism in layout.mechanisms if mechanism.accepted_risk}


def _check_thresholds(
    request: Request[T], levels: Sequence[Level], key: Key, others: Sequence[tuple[Level, Key]]
) -> None:
    """Refuse levels at which an attack does better than the policy allows; the highest is the most exposed.

    What is attacked is a copy of all rows and columns, whatever part is released: those who share a level can combine
    their parts.
    """
    targets = request.layout.policy.targets
    if not targets or not levels:
        return
    from sfumato.release.evidence import copy_evidence, original_records, pooled_evidence
    from sfumato.risk import thresholds

    whole = request.layout.with_view(EVERYTHING)
    row_numbers, rows = request.sample(thresholds.ROWS)
    if rows.num_rows:
        held = [(max(levels), key), *others]
        copies = [perturb_sample(whole, row_numbers, rows, [level], secret)[0] for level, secret in held]
        evidence = pooled_evidence([copy_evidence(copy, Manifest.of(copy)) for copy in copies])
        thresholds.require_thresholds(targets, evidence, original_records(rows, Manifest.of(copies[0]).models))


def check_table(layout: TableLayout, source: Source, key: Key) -> None:
    """Refuse a table that does not fit the policy, or that has a repeated record id."""
    layout.check_schema(source.schema, key)
    forms = {name: layout.pseudonym(name).form for name in source.schema.names if layout.has_pseudonyms(name)}
    stated = {name: form for name, form in forms.items() if form is not None}
    for batch in source.batches(list(stated)) if stated else ():
        for name, form in stated.items():
            check_format(batch.column(name), name, form)
    check_ids(layout, source, key)
