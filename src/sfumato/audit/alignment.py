"""Copies of the same records, in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import AttackError
from sfumato.models import Model
from sfumato.models.rotation import Rotation
from sfumato.release.evidence import names_of
from sfumato.release.manifest import Manifest
from sfumato.tables.row_order import is_arranged


def shared_ids(manifests: Sequence[Manifest]) -> list[str]:
    """The columns that name a record in every copy, if they are the same."""
    found = [names_of(manifest) for manifest in manifests]
    return found[0] if found and all(names == found[0] for names in found) else []


def needed(columns: Sequence[str], ids: list[str]) -> list[str]:
    """The ids, refused if a table of real records lacks one."""
    lost = [name for name in ids if name not in columns]
    if lost:
        raise AttackError(f"the original must have the copies' id {lost[0]!r}, and lacks it; is it the right table?")
    return ids


def aligned(original: pa.Table, models: Iterable[Model]) -> pa.Table:
    """The original, refused if the copies' rows are in a secret order and its own are not."""
    if any(isinstance(model, Rotation) and model.shuffled for model in models) and not is_arranged(original):
        raise AttackError(
            "the rows of these copies are in a secret order; whoever has the key can put the original in it, with "
            "`scheme.arranged(table, key)` or `sfumato attack --arrange`; an audit in a vault needs neither"
        )
    return original


def matched(tables: Sequence[pa.Table], ids: list[str]) -> list[pa.Table]:
    """The records that all tables have, in the order of the first."""
    if are_aligned(tables, ids):
        return list(tables)
    if not ids:
        rows = ", ".join(f"{table.num_rows:,}" for table in tables)
        raise AttackError(f"copies without ids must hold the same records, got {rows} rows; they cannot be matched")
    keys = [_keys(table, ids) for table in tables]
    common = keys[0]
    for other in keys[1:]:
        common = common.filter(pc.is_in(common, value_set=other))
    return [table.take(pc.index_in(common, value_set=key)) for table, key in zip(tables, keys, strict=True)]


def are_aligned(tables: Sequence[pa.Table], ids: list[str]) -> bool:
    """Whether tables hold the same records in the same order, as far as their ids tell."""
    if len({table.num_rows for table in tables}) > 1:
        return False
    keys = [_keys(table, ids) for table in tables] if ids else []
    return all(key.equals(keys[0]) for key in keys[1:])


def _keys(table: pa.Table, ids: list[str]) -> pa.Array:
    """One text a record, from all columns that name it."""
    parts = [table.column(name).combine_chunks().cast(pa.string()).fill_null("\0") for name in ids]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "\x1f")
