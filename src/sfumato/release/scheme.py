"""The plan: a policy fitted to a table, ready to make copies of it at any level."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.local import Local
from sfumato.errors import CustodyError, PolicyError, ReleaseError, SfumatoError, SourceError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms import Mechanism, Scheme
from sfumato.mechanisms._linear_map import LinearMapMechanism
from sfumato.models import Model
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.models.rotation import Rotation
from sfumato.models.unchanged import Unchanged
from sfumato.policy.columns import bare, bare_type, check_columns, in_place
from sfumato.policy.document import Policy
from sfumato.release import statements
from sfumato.release.evidence import before_turning, copy_evidence, records, together
from sfumato.release.manifest import METADATA, Manifest, attach
from sfumato.risk import breach as advising
from sfumato.risk import thresholds
from sfumato.risk.breach import Advice
from sfumato.tables import content_digest as digest
from sfumato.tables.atomic import replace_text
from sfumato.tables.partitioner import ensure_apart, ensure_distinct
from sfumato.tables.record_ids import hashed, record_ids
from sfumato.tables.row_order import arranged, lots, shuffled
from sfumato.tables.sampling import sampled
from sfumato.tables.source import Source, cut
from sfumato.tables.view import EVERYTHING, View

Taking = Callable[[int], tuple[Words, pa.Table]]
"""Takes so many rows of a table, with their places."""

SOFTWARE = f"sfumato {version('sfumato')}"


@dataclass(frozen=True)
class TableScheme:
    """A policy with everything fitted: a pure function from (table, level, key) to a copy."""

    policy: Policy
    mechanisms: tuple[Mechanism, ...]
    schemes: tuple[Scheme, ...]
    tree: PathTree
    view: View = EVERYTHING
    """The part of the table that a copy shows; whatever it is, copies lie on the same path."""

    def seen(self, view: View) -> TableScheme:
        """The same scheme, for copies that show a part of the table."""
        return replace(self, view=view)

    def release(self, table: Any, level: Level | float | str, key: Key, *, threads: int | None = None) -> pa.Table:
        """A copy at a level, as a pyarrow table with its manifest."""
        return self.release_levels(table, [level], key, threads=threads)[0]

    def release_spark(self, frame: Any, level: Level | float | str, key: Key) -> Any:
        """A copy of a Spark data frame, as one: see `release.dataframes`."""
        return importlib.import_module("sfumato.release.spark").release_dataframe(self, frame, level, key)

    def release_levels(
        self, table: Any, levels: Sequence[Level | float | str], key: Key, *, threads: int | None = None
    ) -> list[pa.Table]:
        """Copies at several levels at once, for less than their sum: they share the draws they have in common."""
        source = Source.of(table)
        self.check(source, key)
        asked = [self.policy.ladder.level(level) for level in levels]
        self.check_motion(source)
        self.check_targets(source, asked, key)
        made = list(self.blurred(source, asked, key, threads))
        copies, schema = [], self.schema(source.schema)
        for i, level in enumerate(asked):
            copy = pa.Table.from_batches([batch[i][0] for batch in made], schema=schema)
            manifest = self.manifest(source.schema, level, key)
            copies.append(attach(copy, manifest.filled(copy.num_rows, [batch[i][1] for batch in made])))
        return copies

    def check(self, source: Source, key: Key) -> None:
        """Refuse a table that does not fit the policy, or that has a repeated record id."""
        self.check_schema(source.schema, key)
        if self.ids:
            ensure_distinct(lambda: self.identities(source, key))
        elif source.parts:
            ensure_apart(source.parts, (part.rows() for part in source.parts))

    def check_schema(self, schema: pa.Schema, key: Key) -> None:
        """Refuse a table that does not fit the policy."""
        if not isinstance(key, Key):
            raise CustodyError(
                f"a key must be a sfumato.Key, got {type(key).__name__}; see Key.load and Key.from_bytes"
            )
        if METADATA in (schema.metadata or {}):
            raise SourceError("a copy must be made from the original, and this table is itself a copy; use its source")
        check_columns(self.policy, schema)
        for mechanism in self.mechanisms:
            mechanism.check(schema)
        named = [name for name in self.ids if self.is_published(name)]
        if self.shuffles and named:
            raise PolicyError(
                f"rows in a secret order must not be named, and the id {named[0]!r} names them; set `publish = false` "
                "there, or `shuffle = false`, which gives known records to an attacker"
            )
        self.check_view(schema)

    def identities(self, source: Source, key: Key) -> Iterator[Words]:
        """The ids of all records, as their column says or it hashes to, a batch at a time."""
        secret = self._dataset(key)
        for batch in source.batches(list(self.ids)):
            yield record_ids(batch, self.ids, np.zeros(batch.num_rows, np.uint64), secret)

    def check_view(self, source: pa.Schema) -> None:
        """Refuse a view of columns that a copy does not show, or of rows by what it hides."""
        whole = self.seen(EVERYTHING).schema(source).names
        self.view.check(whole, [name for name in whole if self.role(name) in ("keep", "id")])
        seen = set(whole if self.view.columns is None else self.view.columns)
        for mechanism, scheme in zip(self.mechanisms, self.schemes, strict=True):
            lost = set(scheme.columns) - seen
            if scheme.columns != mechanism.columns and lost and lost != set(scheme.columns):
                raise PolicyError(
                    f"columns that were turned together are shown together; add {', '.join(sorted(lost))}"
                )
        self.view.filter(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in source], schema=source))

    def check_targets(
        self,
        source: Source,
        levels: Sequence[Level],
        key: Key,
        beside: Sequence[tuple[Level, Key]] = (),
        taking: Taking | None = None,
    ) -> None:
        """Refuse levels at which an attack does better than the policy allows; the highest is the most exposed.

        What is tested is a copy of all rows and columns, whatever part is shown: those who share a level can put the
        parts together.

        Args:
            beside: copies that were given under other keys, whose noise is independent of this one's.
            taking: another way to some of the rows than to read them all here.

        """
        if not self.policy.targets or not levels:
            return
        whole = self.seen(EVERYTHING)
        places, rows = (taking or whole.taking(source))(thresholds.ROWS)
        if rows.num_rows:
            held = [(max(levels), key), *beside]
            copies = [whole.copies(places, rows, [level], secret)[0] for level, secret in held]
            shown = together([copy_evidence(copy, Manifest.of(copy)) for copy in copies])
            thresholds.hold_back(self.policy.targets, shown, records(rows, Manifest.of(copies[0]).models))

    def taking(self, source: Source) -> Taking:
        """A way to some rows of a table."""
        return lambda rows: sampled(self.numbered(source), rows)

    @property
    def is_tested(self) -> bool:
        """Whether some rows are attacked before a copy is given."""
        moved = [m for m in self.mechanisms if isinstance(m, LinearMapMechanism)]
        return bool(self.policy.targets) or any(m.is_exact and not m.motion.accept for m in moved)

    def check_motion(self, source: Source, taking: Taking | None = None) -> None:
        """Refuse turned copies that too few known records undo, unless the policy takes the risk or adds noise."""
        for mechanism, scheme in zip(self.mechanisms, self.schemes, strict=True):
            if isinstance(mechanism, LinearMapMechanism) and mechanism.is_exact and not mechanism.motion.accept:
                self.advice(source, scheme, taking).hold_back(mechanism.motion.withstand, mechanism.role)

    def advice(self, source: Source, scheme: Scheme, taking: Taking | None = None) -> Advice:
        """What known records would do to turned copies of a table."""
        model = scheme.model(next(iter(self.policy.ladder)))
        if not isinstance(model, Rotation):
            raise TypeError("there is advice on turned copies alone")
        _, rows = (taking or self.seen(EVERYTHING).taking(source))(advising.ROWS)
        placed = before_turning(rows, model) if rows.num_rows else np.empty((0, len(model.sources)))
        return advising.advise(placed, model)

    @property
    def accepted(self) -> dict[str, str]:
        """The reasons why the risk of turned copies is taken, by role."""
        moved = [m for m in self.mechanisms if isinstance(m, LinearMapMechanism)]
        return {m.role: m.motion.accept for m in moved if m.motion.accept}

    def copies(self, places: Words, rows: pa.Table, levels: Sequence[Level], key: Key) -> list[pa.Table]:
        """The copies of some rows of a table, which have these places in it, as they are in copies of the whole."""
        [batch] = rows.combine_chunks().to_batches()
        return [
            attach(pa.Table.from_batches([copy]), _in_order(self.manifest(rows.schema, level, key), rows.num_rows))
            for copy, level in zip(self.blur(places, batch, levels, key), levels, strict=True)
        ]

    def blurred(
        self, source: Source, levels: Sequence[Level], key: Key, threads: int | None
    ) -> Iterator[list[tuple[pa.RecordBatch, bytes]]]:
        """The copies of each batch of a table at some levels, in order, each with its digest."""

        def blur(item: tuple[Words, pa.RecordBatch]) -> list[tuple[pa.RecordBatch, bytes]]:
            return [(copy, digest.of_batch(copy)) for copy in self.blur(*item, levels, key)]

        if not self.shuffles:
            yield from Local(threads).map(blur, self.numbered(source))
            return
        schema = self.schema(source.schema)
        wide = pa.schema([pa.field(f"{i} {f.name}", f.type) for i in range(len(levels)) for f in schema])

        def lay(item: tuple[Words, pa.RecordBatch]) -> tuple[Words, pa.RecordBatch]:
            copies = self.blur(*item, levels, key)
            columns = [column for copy in copies for column in copy.columns]
            return self.lots(*item, key), pa.RecordBatch.from_arrays(columns, schema=wide)

        for batch in cut(shuffled(Local(threads).map(lay, self.numbered(source)), wide)):
            parts = [batch.columns[i * len(schema) : (i + 1) * len(schema)] for i in range(len(levels))]
            copies = [pa.RecordBatch.from_arrays(part, schema=schema) for part in parts]
            yield [(copy, digest.of_batch(copy)) for copy in copies]

    @property
    def shuffles(self) -> bool:
        """Whether the rows of a copy are in a secret order."""
        return any(scheme.shuffles for scheme in self.schemes)

    def arranged(self, table: Any, key: Key) -> pa.Table:
        """The table itself, with its rows in the order that they have in a copy: what an attack is scored against."""
        return arranged(Source.of(table), self.ids, self._dataset(key), shuffle=self.shuffles, view=self.view)

    def lots(self, places: Words, batch: pa.RecordBatch, key: Key) -> Words:
        """What puts rows into the secret order of a copy."""
        secret = self._dataset(key)
        return lots(record_ids(batch, self.ids, places, secret), secret)

    def numbered(self, source: Source) -> Iterator[tuple[Words, pa.RecordBatch]]:
        """The rows that are seen, a batch at a time, with the columns that are needed and their places in the table."""
        needed = [name for name in source.schema.names if self.role(name) != "drop"]
        placed = (batch.append_column(_PLACE, pa.array(places)) for places, batch in source.placed(needed))
        for batch in cut(map(self.view.filter, placed)):
            yield batch.column(_PLACE).to_numpy(), batch.select(needed)

    def blur(self, positions: Words, batch: pa.RecordBatch, levels: Sequence[Level], key: Key) -> list[pa.RecordBatch]:
        """The copies of some rows, which have these positions in the table."""
        secret = self._dataset(key)
        rows = record_ids(batch, self.ids, positions, secret)
        made: list[dict[str, pa.Array]] = [{} for _ in levels]
        for scheme in self.schemes:
            for columns, arrays in zip(made, scheme.perturb_levels(batch, rows, levels, secret), strict=True):
                columns.update(zip(scheme.columns, arrays, strict=True))
        schema = self.schema(batch.schema)
        plain = {name: bare(batch.column(name)) for name in schema.names if name not in made[0]}
        shown = [plain | columns for columns in made]
        return [pa.RecordBatch.from_arrays([c[name] for name in schema.names], schema=schema) for c in shown]

    def rows(self, source: Source, key: Key) -> Iterator[tuple[Words, pa.RecordBatch]]:
        """The rows of the source that a copy shows, with their record ids, a batch at a time."""
        secret = self._dataset(key)
        for positions, batch in self.numbered(source):
            yield record_ids(batch, self.ids, positions, secret), batch

    @property
    def units(self) -> list[Scheme]:
        """What is drawn together, and so again for a cell that stays when its neighbour changes: see `records`."""
        return [scheme for scheme in self.schemes if len(scheme.columns) > 1 or self._is_shaped(scheme)]

    def _is_shaped(self, scheme: Scheme) -> bool:
        return isinstance(scheme.model(next(iter(self.policy.ladder))), GaussianNoise)

    def records(self, source: Source) -> Iterator[Words]:
        """What tells whether records of two versions are the same, a batch at a time, in words that need no key.

        Returns:
            One row a record: its id, what the noise of each of the `units` depends on, numbers first, and everything
            else that a copy shows.

        """
        plain = Key.from_bytes(bytes(32))
        units = sorted(self.units, key=self._is_shaped, reverse=True)
        for positions, batch in self.numbered(source):
            rows = record_ids(batch, self.ids, positions, plain)
            drawn = [scheme.draws(batch, rows, plain) for scheme in units]
            rest = hashed(batch, [name for name in batch.schema.names if self.role(name) == "keep"], plain)
            for scheme in self.schemes:
                rest = rest if scheme in units else rest ^ scheme.draws(batch, rows, plain)
            yield np.column_stack([rows, *drawn, rest])

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The columns of a copy, in the order of the source, without its metadata."""
        blurred: dict[str, list[pa.Field]] = {}
        for mechanism, scheme in zip(self.mechanisms, self.schemes, strict=True):
            blurred |= in_place(mechanism.columns, scheme.fields(source), source)
        plain = {f.name: [pa.field(f.name, bare_type(f.type))] for f in source if self.role(f.name) in ("keep", "id")}
        shown = [made for field in source for made in blurred.get(field.name, plain.get(field.name, []))]
        hidden = {name for name in self.ids if not self.is_published(name)}
        return pa.schema(
            field
            for field in shown
            if field.name not in hidden and (self.view.columns is None or field.name in self.view.columns)
        )

    def is_published(self, name: str) -> bool:
        """Whether a copy shows an id."""
        return bool(self.policy.columns[name].options.get("publish", True))

    def given(self, level: Level) -> Level:
        """The level that is given to who asks for this one: the nearest on the grid that is not more faithful."""
        return self.tree.locate(level).level

    def models(self, source: pa.Schema, level: Level) -> tuple[Model, ...]:
        """The public models of a copy's columns."""
        names = self.schema(source).names
        whole = [scheme.model(level) for scheme in self.schemes]
        blurred = [model for model in (model.narrowed(names) for model in whole) if model.columns]
        for role in ("id", "keep"):
            plain = tuple(name for name in names if self.role(name) == role)
            blurred += [Unchanged(plain, role)] if plain else []
        return tuple(blurred)

    def manifest(self, source: pa.Schema, level: Level, key: Key) -> Manifest:
        """The manifest of a copy, still without its row count and digest."""
        given = self.given(level)
        shown = self.models(source, level)
        return Manifest(
            dataset=self.policy.dataset,
            policy=self._digests[0],
            scheme=key.derive("scheme", self.digest()).fingerprint(),
            key=key.fingerprint(),
            level=self.policy.ladder.name(given),
            requested_fidelity=level.fidelity,
            fidelity=given.fidelity,
            columns=tuple((field.name, str(field.type)) for field in self.schema(source)),
            schema=base64.b64encode(self.schema(source).serialize()).decode(),
            models=shown,
            promises=statements.promises(given, shown),
            warnings=statements.warnings(shown),
            limits=statements.limits(shown, self.view),
            software=SOFTWARE,
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that name a record."""
        return tuple(self.policy.options("id"))

    def digest(self) -> str:
        """Names the scheme."""
        return self._digests[1]

    def dumps(self) -> str:
        """The scheme as JSON: the policy and what was fitted."""
        return json.dumps({"policy": self.policy.dumps(), "fitted": [scheme.state() for scheme in self.schemes]})

    def save(self, path: str | Path) -> None:
        """Keep the scheme, so that later versions of the table are blurred with the same shape."""
        replace_text(Path(path), self.dumps())

    @classmethod
    def load(cls, path: str | Path) -> TableScheme:
        """Read a scheme that was kept."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            policy, states = Policy.loads(data["policy"]), data["fitted"]
            tree, mechanisms = parts_of(policy)
            schemes = tuple(m.restore(state, tree) for m, state in zip(mechanisms, states, strict=True))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SfumatoError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no scheme, or a damaged one"
            raise ReleaseError(f"the scheme {path} could not be used: {reason}; restore it, or fit it again") from None
        return cls(policy, mechanisms, schemes, tree)

    @cached_property
    def _digests(self) -> tuple[str, str]:
        """Of the policy and of the scheme."""
        policy = self.policy.digest()
        content = json.dumps([policy, *(scheme.state() for scheme in self.schemes)], sort_keys=True)
        return policy, hashlib.sha256(content.encode()).hexdigest()

    def _dataset(self, key: Key) -> Key:
        return key.derive("dataset", self.policy.dataset)

    def role(self, name: str) -> str | None:
        """What the policy says of a column."""
        return self.policy.columns[name].role if name in self.policy.columns else self.policy.default


def parts_of(policy: Policy) -> tuple[PathTree, tuple[Mechanism, ...]]:
    """What a policy says, before any table is measured."""
    return PathTree(policy.ladder, policy.digits), tuple(policy.mechanisms())


def _in_order(manifest: Manifest, rows: int) -> Manifest:
    """The manifest of rows that were not shuffled, since the owner asked."""
    models = [replace(model, shuffled=False) if isinstance(model, Rotation) else model for model in manifest.models]
    return replace(manifest, models=tuple(models)).filled(rows, [])


_PLACE = "sfumato.place"
