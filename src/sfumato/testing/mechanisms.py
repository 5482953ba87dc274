"""The conformance suite of mechanisms: purity, exact merging, encoding, privacy of the key, fresh noise."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import models
from sfumato.errors import SfumatoError
from sfumato.kernels import Words
from sfumato.keys.key import Key
from sfumato.keys.path import PathTree
from sfumato.levels import Ladder, Level
from sfumato.mechanisms import Example, Mechanism, Scheme, Summary
from sfumato.policy.document import Column, PolicyDocument
from sfumato.release.layout import TableLayout
from sfumato.release.manifest import Manifest
from sfumato.release.scheme import TableScheme
from sfumato.testing._checks import refuses, require, run

ROWS = 3000
_KEY = Key.from_bytes(bytes(range(32)))
_LEVELS = (Level(0.7), Level(0.4), Level(0.3), Level(0.1))


def check_mechanism(mechanism: type[Mechanism]) -> None:
    """Run the conformance suite on a mechanism class, with each of its own examples."""
    require(mechanism.reference, f"{mechanism.__name__} must name the paper that it implements in `reference`")
    require(mechanism.examples, f"{mechanism.__name__} must have at least one example")
    for example in mechanism.examples:
        run(f"{mechanism.__name__} with {example}", _CHECKS, Subject(mechanism, example))


@dataclass(frozen=True)
class Subject:
    """A mechanism with one of its examples, fitted to a table of the columns that the example needs."""

    mechanism: type[Mechanism]
    example: Example

    @cached_property
    def tree(self) -> PathTree:
        """The path tree of a ladder of two levels."""
        return PathTree(Ladder({"a": Level(0.7), "b": Level(0.3)}))

    @cached_property
    def fitted(self) -> Mechanism:
        """The mechanism with the parameters of the example."""
        columns = {f"{self.example.content}{i}": dict(self.example.options) for i in range(self.example.columns)}
        [made] = self.mechanism.of(columns, dict(self.example.settings))
        return made

    @cached_property
    def table(self) -> pa.Table:
        """Rows with nulls, of numbers or of categories."""
        return self.table_of(np.random.default_rng(7))

    def table_of(self, draw: np.random.Generator) -> pa.Table:
        """Rows with nulls from a generator."""
        columns: dict[str, pa.Array] = {}
        for name in self.fitted.columns:
            if name in self.example.given:
                first = columns[self.fitted.columns[0]]
                noise = draw.normal(0, self.example.given[name], ROWS)
                columns[name] = pc.add(first, pa.array(noise, mask=draw.random(ROWS) < 0.1))
                continue
            letters = np.array(list("abcde"))[draw.integers(0, 5, ROWS)]
            values = draw.normal(5, 2, ROWS) if self.example.content == "numbers" else letters
            columns[name] = pa.array(values, mask=draw.random(ROWS) < 0.1)
        return pa.table(columns)

    @cached_property
    def batch(self) -> pa.RecordBatch:
        """The table as one batch."""
        [batch] = self.table.combine_chunks().to_batches()
        return batch

    @cached_property
    def ids(self) -> Words:
        """Record ids in no order."""
        return np.random.default_rng(8).permutation(ROWS).astype(np.uint64)

    @cached_property
    def scheme(self) -> Scheme:
        """The fitted scheme."""
        return self.fit([self.batch])

    def fit(self, batches: list[pa.RecordBatch], *, backwards: bool = False) -> Scheme:
        """Fit the mechanism to some batches, merged from either end."""
        before: Summary | None = None
        for _ in range(self.fitted.passes):
            parts = [self.fitted.summarise(batch, before) for batch in batches]
            before = _merged_backwards(parts) if backwards else _merged(parts)
        if before is None:
            raise TypeError("a mechanism needs at least one pass")
        return self.fitted.fit(before, self.tree)

    def perturb(self, batch: pa.RecordBatch, ids: Words, *levels: Level) -> list[list[pa.Array]]:
        """The columns of copies at some levels."""
        return self.scheme.perturb_levels(batch, ids, levels, _KEY)

    def layout(self) -> TableLayout:
        """The mechanism as a whole scheme of a table."""
        return TableScheme(
            PolicyDocument("conformance", Ladder({"a": Level(0.7), "b": Level(0.3)}), {"x": Column("keep")}),
            (self.fitted,),
            (self.scheme,),
            self.tree,
        )


def _merged(parts: list[Summary]) -> Summary:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total


def _merged_backwards(parts: list[Summary]) -> Summary:
    total = parts[-1]
    for part in parts[-2::-1]:
        total = part.merge(total)
    return total


def _pieces(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(start, 700) for start in range(0, len(batch), 700)]


def _parameters_are_frozen(subject: Subject) -> None:
    def change() -> None:
        subject.fitted.columns = ("other",)  # type: ignore[misc]

    refuses(AttributeError, change, "its columns can be changed; make the class a frozen dataclass")


def _the_state_comes_back(subject: Subject) -> None:
    state = json.loads(json.dumps(subject.scheme.state()))
    twins = [subject.fitted.restore(state, subject.tree), pickle.loads(pickle.dumps(subject.scheme))]  # noqa: S301
    expected = subject.perturb(subject.batch, subject.ids, Level(0.5))
    for twin in twins:
        found = twin.perturb_levels(subject.batch, subject.ids, [Level(0.5)], _KEY)
        require(_equal(found, expected), "a scheme that comes back from its state or a pickle makes other copies")


def _summaries_merge_exactly(subject: Subject) -> None:
    pieces = _pieces(subject.batch)
    for backwards in (False, True):
        again = subject.fit(pieces, backwards=backwards)
        require(again.state() == subject.scheme.state(), "the fit depends on how the rows are divided")


def _batches_and_order_do_not_matter(subject: Subject) -> None:
    [whole] = subject.perturb(subject.batch, subject.ids, Level(0.4))
    starts = range(0, ROWS, 700)
    pieces = [
        subject.perturb(p, subject.ids[s : s + 700], Level(0.4))[0]
        for s, p in zip(starts, _pieces(subject.batch), strict=True)
    ]
    joined = [pa.concat_arrays([piece[i] for piece in pieces]) for i in range(len(whole))]
    require(_equal([joined], [whole]), "the copy depends on how the rows are divided")
    order = np.random.default_rng(9).permutation(ROWS)
    [moved] = subject.perturb(subject.batch.take(pa.array(order)), subject.ids[order], Level(0.4))
    require(
        _equal([moved], [[array.take(pa.array(order)) for array in whole]]), "the copy depends on the order of rows"
    )


def _other_levels_do_not_matter(subject: Subject) -> None:
    together = subject.perturb(subject.batch, subject.ids, *_LEVELS)
    for level, copy in zip(_LEVELS, together, strict=True):
        require(_equal(subject.perturb(subject.batch, subject.ids, level), [copy]), f"{level} depends on other levels")


def _the_key_matters(subject: Subject) -> None:
    other = subject.scheme.perturb_levels(subject.batch, subject.ids, [Level(0.4)], Key.from_bytes(bytes(32)))
    require(
        not _equal(other, subject.perturb(subject.batch, subject.ids, Level(0.4))), "another key gives the same copy"
    )


def _the_copy_has_the_stated_columns(subject: Subject) -> None:
    fields = subject.scheme.fields(subject.table.schema)
    [copy] = subject.perturb(subject.batch, subject.ids, Level(0.4))
    require([field.name for field in fields] == list(subject.scheme.columns), "`fields` and `columns` differ")
    require([field.type for field in fields] == [array.type for array in copy], "the copy has other types than stated")
    require(all(len(array) == ROWS for array in copy), "the copy has another number of rows")


def _the_model_is_public(subject: Subject) -> None:
    model = subject.scheme.model(Level(0.3))
    text = json.dumps(models.encode(model))
    require(models.decode(json.loads(text)) == model, "the model does not come back from JSON")
    require(_KEY.expose().hex() not in text, "the model contains the key")
    require(model.columns == subject.scheme.columns, "the model describes other columns than the scheme makes")
    require(model.is_collusion_resistant == subject.mechanism.safe, "the model and `safe` contradict each other")


def _the_manifest_comes_back(subject: Subject) -> None:
    layout = subject.layout()
    manifest = layout.manifest(subject.table.schema, Level(0.3), _KEY)
    require(Manifest.loads(manifest.dumps()) == manifest, "the manifest does not come back from JSON")


def _nulls_stay_null(subject: Subject) -> None:
    if not subject.example.keeps_nulls:
        return
    [copy] = subject.perturb(subject.batch, subject.ids, Level(0.4))
    nulls = np.array([np.asarray(subject.batch.column(name).is_null()) for name in subject.fitted.columns])
    for i, array in enumerate(copy):
        expected = nulls.any(axis=0) if subject.mechanism.is_linear_map else nulls[i]
        require((np.asarray(array.is_null()) == expected).all(), "a missing value appears or disappears")


def _small_tables_work(subject: Subject) -> None:
    for rows in (0, 1):
        small = subject.batch.slice(0, rows)
        require(len(subject.perturb(small, subject.ids[:rows], Level(0.4))[0][0]) == rows, f"{rows} rows fail")
        fresh = subject.fit([small])
        made = fresh.perturb_levels(small, subject.ids[:rows], [Level(0.4)], _KEY)
        require(len(made[0][0]) == rows, f"a fit to {rows} rows fails")


def _unusable_values_are_refused(subject: Subject) -> None:
    unusable = pa.array([float("nan")] * 3) if subject.example.content == "numbers" else pa.array(["unknown"] * 3)
    usable = subject.batch.slice(0, 3)
    name = subject.fitted.columns[0]
    bad = usable.set_column(0, name, unusable)
    text = refuses(
        SfumatoError, lambda: subject.perturb(bad, subject.ids[:3], Level(0.4)), "an unusable value is not refused"
    )
    require(f"'{name}'" in text, f"the refusal must name the column, got {text!r}")


def _draws_follow_the_values(subject: Subject) -> None:
    """`draws` changes for a row exactly when its values do; the same data have not drifted."""
    before = subject.scheme.draws(subject.batch, subject.ids, _KEY)
    require(len(np.unique(before)) == ROWS, "two records share their draws")
    name = subject.fitted.columns[0]
    values = subject.batch.column(name).to_pylist()
    moved = values[1:] + values[:1]
    kind = subject.batch.schema.field(name).type
    other = subject.batch.set_column(0, name, pa.array(moved, kind))
    same = np.array([a == b for a, b in zip(moved, values, strict=True)])
    after = subject.scheme.draws(other, subject.ids, _KEY)
    require(((after == before) == same).all(), "`draws` does not follow the values")
    require(abs(subject.scheme.drift(subject.fit([subject.batch])) - 1) < 1e-6, "the same data have drifted")


def _unchanged_records_keep_their_noise(subject: Subject) -> None:
    [before] = subject.perturb(subject.batch, subject.ids, Level(0.3))
    [fewer] = subject.perturb(subject.batch.slice(1000), subject.ids[1000:], Level(0.3))
    require(_equal([fewer], [[array.slice(1000) for array in before]]), "an unchanged record gets other noise")


def _equal(one: list[list[pa.Array]], other: list[list[pa.Array]]) -> bool:
    pairs: Iterator[tuple[Any, Any]] = (
        pair for copies in zip(one, other, strict=True) for pair in zip(*copies, strict=True)
    )
    return all(a.equals(b) for a, b in pairs)


_CHECKS = (
    _parameters_are_frozen,
    _the_state_comes_back,
    _summaries_merge_exactly,
    _batches_and_order_do_not_matter,
    _other_levels_do_not_matter,
    _the_key_matters,
    _the_copy_has_the_stated_columns,
    _the_model_is_public,
    _the_manifest_comes_back,
    _nulls_stay_null,
    _small_tables_work,
    _unusable_values_are_refused,
    _draws_follow_the_values,
    _unchanged_records_keep_their_noise,
)
