"""Record matching: copies of the same records brought into the same row order, by their record identifiers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import AttackError
from sfumato.release.evidence import identifiers_of
from sfumato.release.manifest import Manifest
from sfumato.tables.row_order import SECRET, WITHIN_FILES, is_arranged


def shared_identifiers(manifests: Sequence[Manifest]) -> list[str]:
    """The identifier columns that all copies release; empty if they differ between copies."""
    released = [identifiers_of(manifest) for manifest in manifests]
    return released[0] if released and all(names == released[0] for names in released) else []


def require_identifiers(columns: Sequence[str], ids: list[str]) -> list[str]:
    """Return the identifiers, or refuse an original table that lacks one of them."""
    missing = [name for name in ids if name not in columns]
    if missing:
        raise AttackError(
            f"the original must have the identifier column {missing[0]!r} of the copies, and lacks it; is it the right "
            "table?"
        )
    return ids


def in_secret_order(manifests: Iterable[Manifest]) -> bool:
    """Whether the rows of some copies are in an order that only the key tells."""
    return any(manifest.order in (SECRET, WITHIN_FILES) for manifest in manifests)


def require_aligned(original: pa.Table, *, in_secret_order: bool) -> pa.Table:
    """Return the original, or refuse it if the copies' rows are in a secret order that it is not in."""
    if in_secret_order and not is_arranged(original):
        raise AttackError(
            "the original must be in the secret row order of these copies; the owner of the key can sort it with "
            "`scheme.arranged(table, key)` or `sfumato attack --arrange`; an audit in a vault needs neither"
        )
    return original


def match_records(tables: Sequence[pa.Table], ids: list[str]) -> list[pa.Table]:
    """The records that all tables have, in the row order of the first table."""
    if are_aligned(tables, ids):
        return list(tables)
    if not ids:
        rows = ", ".join(f"{table.num_rows:,}" for table in tables)
        raise AttackError(
            f"copies without record identifiers must hold the same records, got {rows} rows; they cannot be matched"
        )
    keys = [_keys(table, ids) for table in tables]
    common = keys[0]
    for other in keys[1:]:
        common = common.filter(pc.is_in(common, value_set=other))
    return [table.take(pc.index_in(common, value_set=key)) for table, key in zip(tables, keys, strict=True)]


def are_aligned(tables: Sequence[pa.Table], ids: list[str]) -> bool:
    """Whether tables hold the same records in the same row order, as far as their identifiers show."""
    if len({table.num_rows for table in tables}) > 1:
        return False
    keys = [_keys(table, ids) for table in tables] if ids else []
    return all(key.equals(keys[0]) for key in keys[1:])


def _keys(table: pa.Table, ids: list[str]) -> pa.Array:
    """One string per record, made from all its identifier columns."""
    parts = [table.column(name).combine_chunks().cast(pa.string()).fill_null("\0") for name in ids]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "\x1f")
