"""The layout of copies: which columns a copy of a table has, under which models, and on which paths.

`TableLayout` holds what was fitted; `perturbation` applies it to rows, `gate` decides whether a copy may leave, and
`scheme.TableScheme` offers all of it to users.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, Self, TypeVar

import pyarrow as pa

from sfumato.errors import CustodyError, PolicyError, SourceError
from sfumato.keys.key import DatasetKey, Key
from sfumato.keys.path import PathTree
from sfumato.levels import Level
from sfumato.mechanisms import Mechanism, Scheme
from sfumato.models import Model
from sfumato.models.pseudonym import Pseudonym
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC, Unchanged
from sfumato.pages.described import Described, Description
from sfumato.policy.columns import check_columns, fields_by_source, plain_type
from sfumato.policy.document import PolicyDocument
from sfumato.policy.formats import Format
from sfumato.policy.roles import PSEUDONYM
from sfumato.release import statements
from sfumato.release.manifest import METADATA, Manifest
from sfumato.release.pseudonyms import PseudonymKind
from sfumato.tables.dialect import PLAIN, Dialect
from sfumato.tables.labels import labelled_like
from sfumato.tables.row_order import KEEP, SECRET
from sfumato.tables.view import EVERYTHING, View

SOFTWARE = f"sfumato {version('sfumato')}"


_MOST_ANSWERS = 32
"""How much is remembered about copies of tables with some schemas, at some levels."""

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class TableLayout(Described):
    """A policy with everything fitted to a table."""

    policy: PolicyDocument
    mechanisms: tuple[Mechanism, ...]
    schemes: tuple[Scheme, ...]
    tree: PathTree
    view: View = EVERYTHING
    """The part of the table that a copy shows; copies of all views lie on the same path."""
    order: str = SECRET
    """The order of a copy's rows. A scheme that was fitted before orders were secret keeps that of the table."""
    entity_rows: float = 1.0
    """The largest number of rows of an entity, rounded up, where entities have grown since the scheme was fitted."""
    recipient: str = ""
    """Who gets the copy, if that is known: pseudonyms differ between recipients."""

    def description(self) -> Description:
        """What notebooks and prompts show."""
        told = self.policy.description()
        return replace(
            told, title=f"Scheme of {self.policy.dataset!r}", facts=(*told.facts, f"digest {self.digest()[:12]}")
        )

    def with_view(self, view: View) -> Self:
        """The same layout, for copies that show a part of the table."""
        return replace(self, view=view)

    def with_entity_rows(self, rows: float) -> Self:
        """The same layout, for a version in which an entity has up to so many rows."""
        return replace(self, entity_rows=rows)

    def with_recipient(self, name: str) -> Self:
        """The same layout, for copies of one recipient."""
        return replace(self, recipient=name)

    @property
    def fitted(self) -> Iterator[tuple[Mechanism, Scheme]]:
        """The mechanisms with what was fitted for each."""
        return zip(self.mechanisms, self.schemes, strict=True)

    def role(self, name: str) -> str | None:
        """The role that the policy gives a column."""
        return self.policy.columns[name].role if name in self.policy.columns else self.policy.default

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify a record."""
        return tuple(self.policy.options(IDENTIFIER))

    @property
    def shuffles(self) -> bool:
        """Whether the rows of a copy are in a secret order."""
        return self.order == SECRET or self.hides_records

    @property
    def hides_records(self) -> bool:
        """Whether nothing may tell which row of a copy is which record: a known one would help to undo a map."""
        return any(scheme.shuffles for scheme in self.schemes)

    def is_published(self, name: str) -> bool:
        """Whether a copy shows an identifier of records or entities."""
        return bool(self.policy.columns[name].options.get("publish", True))

    def has_pseudonyms(self, name: str) -> bool:
        """Whether a copy shows pseudonyms in a column."""
        column = self.policy.columns.get(name)
        return column is not None and column.options.get("publish") == PSEUDONYM

    def refers(self, name: str) -> bool:
        """Whether a column refers to an identifier of another table."""
        return name in self.policy.columns and "references" in self.policy.columns[name].options

    def pseudonym(self, name: str) -> PseudonymKind:
        """How the identifiers of a column are replaced."""
        options, table = self.policy.columns[name].options, self.policy.table
        domain = tuple(str(options.get("references", f"{table}.{name}")).split(".", 1)) if table else (name,)
        return PseudonymKind(domain, Format.of(options["format"]) if "format" in options else None)

    def dataset_key(self, key: Key) -> Key:
        """The key from which everything of this dataset is derived; of a worker's key, it is that itself."""
        if isinstance(key, DatasetKey):
            return key
        table = self.policy.table
        return key.of_dataset(self.policy.dataset.removesuffix(f".{table}" if table else ""))

    def table_key(self, key: Key) -> Key:
        """The key from which the noise of this table, among several of a dataset, is drawn."""
        shared = self.dataset_key(key)
        return shared.derive("table", self.policy.table) if self.policy.table else shared

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The columns of a copy, in the order of the source, with its dialect and labels and no other metadata."""
        return self._remembered("schema", source, 0.0, lambda: self._shown_schema(source))

    def _remembered(self, what: str, source: pa.Schema, fidelity: float, find: Callable[[], T]) -> T:
        """What was found out before for tables with a schema: single records would take longer to look at than to copy.

        Equality of schemas leaves labels out, so that their bytes are compared.
        """
        known, question = self._known, (what, fidelity, source.serialize().to_pybytes())
        if question not in known:
            answer = find()
            if len(known) >= _MOST_ANSWERS:
                known.clear()
            known[question] = answer
            return answer
        found: T = known[question]
        return found

    @cached_property
    def _known(self) -> dict[tuple[str, float, bytes], Any]:
        return {}

    def _shown_schema(self, source: pa.Schema) -> pa.Schema:
        perturbed: dict[str, list[pa.Field]] = {}
        for mechanism, scheme in self.fitted:
            perturbed |= fields_by_source(mechanism.columns, scheme.fields(source), source)
        public = {f.name: [pa.field(f.name, self._public_type(f))] for f in source if self._is_unchanged(f.name)}
        fields = [made for field in source for made in perturbed.get(field.name, public.get(field.name, []))]
        shown = [field for field in fields if self._is_shown(field.name)]
        dialect = (Dialect.of_schema(source) or PLAIN).narrowed([field.name for field in shown])
        return dialect.in_schema(pa.schema([self._labelled(field, source) for field in shown]))

    def _public_type(self, field: pa.Field) -> pa.DataType:
        replaced = self.has_pseudonyms(field.name) and self.pseudonym(field.name).form is None
        return pa.string() if replaced else plain_type(field.type)

    def _is_shown(self, name: str) -> bool:
        """Whether a copy shows a column that it could have."""
        hidden = self.role(name) in (IDENTIFIER, ENTITY) and not self.is_published(name)
        return not hidden and (self.view.columns is None or name in self.view.columns)

    def _labelled(self, field: pa.Field, source: pa.Schema) -> pa.Field:
        """A field of a copy with its labels; sums of a code and noise have no labels."""
        if field.name not in source.names:
            return field
        original = source.field(field.name)
        same = field.type == plain_type(original.type) and self.role(field.name) not in ("gaussian", "adopted")
        return labelled_like(field, original, codes=same)

    def given(self, level: Level) -> Level:
        """The level of the copy for a request: the nearest on the grid that is not more faithful."""
        return self.tree.locate(level).level

    def models(self, source: pa.Schema, level: Level) -> tuple[Model, ...]:
        """The public models of a copy's columns."""
        names = self.schema(source).names
        narrowed = [scheme.model(level).narrowed(names).with_entity_rows(self.entity_rows) for scheme in self.schemes]
        found = [model for model in narrowed if model.columns]
        for role in (IDENTIFIER, ENTITY, PUBLIC):
            found += self._unperturbed([name for name in names if self.role(name) == role], role)
        return tuple(found)

    def _unperturbed(self, names: list[str], role: str) -> list[Model]:
        """The models of the columns of a role that are released unchanged, or as pseudonyms."""
        unchanged = tuple(name for name in names if not self.has_pseudonyms(name))
        found: list[Model] = [Unchanged(unchanged, role)] if unchanged else []
        forms = {name: self.pseudonym(name).form for name in names if self.has_pseudonyms(name)}
        for form in dict.fromkeys(forms.values()):
            alike = tuple(name for name, one in forms.items() if one == form)
            found.append(Pseudonym(alike, role, "" if form is None else form.text))
        return found

    def manifest(self, source: pa.Schema, level: Level, key: Key) -> Manifest:
        """The manifest of a copy, still without its row count and digest."""
        draft = self._remembered("manifest", source, level.fidelity, lambda: self._draft(source, level))
        return replace(draft, scheme=key.derive("scheme", self.digest()).fingerprint(), key=key.fingerprint())

    def _draft(self, source: pa.Schema, level: Level) -> Manifest:
        """The manifest of a copy by whatever key."""
        given, schema, models = self.given(level), self.schema(source), self.models(source, level)
        return Manifest(
            dataset=self.policy.dataset,
            policy=self._digests[0],
            scheme="",
            key="",
            level=self.policy.ladder.name(given),
            requested_fidelity=level.fidelity,
            fidelity=given.fidelity,
            columns=tuple((field.name, str(field.type)) for field in schema),
            schema=base64.b64encode(schema.serialize()).decode(),
            models=models,
            promises=statements.promises(given, models),
            warnings=statements.warnings(models),
            limits=statements.limits(models, self.view, in_order=not self.shuffles, table=self.policy.table),
            software=SOFTWARE,
            order=SECRET if self.shuffles else KEEP,
        )

    def check_schema(self, schema: pa.Schema, key: Key) -> None:
        """Refuse a table whose columns do not fit the policy."""
        if not isinstance(key, Key):
            raise CustodyError(
                f"a key must be a sfumato.Key, got {type(key).__name__}; see Key.load and Key.from_bytes"
            )
        if METADATA in (schema.metadata or {}):
            raise SourceError("a copy must be made from the original, and this table is itself a copy; use its source")
        self._remembered("checked", schema, 0.0, lambda: self._check_columns(schema))

    def _check_columns(self, schema: pa.Schema) -> None:
        check_columns(self.policy, schema)
        for mechanism in self.mechanisms:
            mechanism.check(schema)
        published = [name for name in self.ids if self.is_published(name)]
        if self.hides_records and published:
            raise PolicyError(
                f"rows in a secret order must not be identified, and the id {published[0]!r} identifies them; set "
                "`publish = false` there, or `shuffle = false`, which lets an attacker find known records"
            )
        self.check_view(schema)

    def check_view(self, source: pa.Schema) -> None:
        """Refuse a view of columns that a copy does not have, or of rows by columns that it perturbs or hides."""
        names = self.with_view(EVERYTHING).schema(source).names
        kept = [name for name in names if self._is_unchanged(name) and not self.has_pseudonyms(name)]
        self.view.check(names, kept)
        visible = set(names if self.view.columns is None else self.view.columns)
        for mechanism, scheme in self.fitted:
            missing = set(scheme.columns) - visible
            if mechanism.is_linear_map and missing and missing != set(scheme.columns):
                raise PolicyError(
                    f"columns that were rotated or projected together are shown together; add "
                    f"{', '.join(sorted(missing))}"
                )
        self.view.filter(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in source], schema=source))

    def digest(self) -> str:
        """Names the fitted scheme."""
        return self._digests[1]

    @cached_property
    def _digests(self) -> tuple[str, str]:
        """The digests of the policy and of the fitted scheme."""
        policy = self.policy.digest()
        content = json.dumps([policy, *(scheme.state() for scheme in self.schemes)], sort_keys=True)
        return policy, hashlib.sha256(content.encode()).hexdigest()

    def _is_unchanged(self, name: str) -> bool:
        return self.role(name) in (IDENTIFIER, ENTITY, PUBLIC)
