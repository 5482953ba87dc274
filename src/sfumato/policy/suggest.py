"""Policy suggestions: a commented draft from a look at the table, to be corrected by somebody who knows the data."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sfumato.models.unchanged import ENTITY, PUBLIC
from sfumato.policy.editing import key_text, value_text
from sfumato.policy.personal_data import is_quasi_identifier
from sfumato.policy.relations import dependent_groups, notes
from sfumato.policy.roles import DROP
from sfumato.policy.suggested_roles import Suggestion, hints, is_entity, margin_preserving, suggestion
from sfumato.policy.targets import Target
from sfumato.tables.dialect import PLAIN, Dialect
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.labels import label_of
from sfumato.tables.source import Source

_LEVELS = ("internal", "partner", "public")
"""The levels of a draft."""

EXAMINED = 1_000_000
"""The number of rows that are examined."""

_MAX_BYTES = 1 << 28
"""The number of bytes after which no more rows are examined."""

_HEAD = """\
# A draft, from a look at {examined} rows. Read every line before you release anything.{ids}

dataset = {dataset}

# Trust levels, from the most to the least trusted: fidelity 1 would be the original, and near 0 a copy is synthetic
# data. At 0.8 the best linear attacker has a residual error of 20 % of a column's variance. The ladder is fixed for
# the dataset's life; any level between, above or below can be requested on demand. `sfumato level 0.8` shows more.
{attacked}[levels]
internal = {levels[0]:g}
partner = {levels[1]:g}
public = {levels[2]:g}

# Rows are released in a secret order. With order = "keep" above, neighbours that are alike can be averaged.

# Roles: id (identifies a record), entity (names a person or household with several records), keep (released
# unchanged), drop (left out), copula (copies look like the data: same values, margins and rank correlations, other
# people; averages of groups are kept the less, the lower the level), gaussian (noise in the numbers themselves, which
# mining can correct for), uniform (random replacement; correlated categories should share a `joint` group).
# A category that later rows have and this table lacks is refused, unless `unseen` states what it counts as.{gained}
"""

_GAINED = (
    "\n#\n# What an attacker recovers is a share of a number's variance, or of a category beyond guessing (of copula,"
    "\n# of normal scores; of the values themselves mostly less): the best of five attacks on a copy of a sample. One"
    "\n# who knows some records, or more about the data, may recover more."
)

_ENTITY = (
    "several rows of one person or household have it in common, and averaging them must not remove the noise: all of "
    "them share a part of it, and the other columns have plain noise. Copies do not show it, unless `publish = true`."
)

_UNPROTECTED = 0.8
"""The share of a column from which a draft says that no level protects it."""

_CHOSEN: dict[str, Suggestion] = {ENTITY: (ENTITY, {"publish": False}, _ENTITY)}
"""Roles that come with options."""

_QUASI = " A quasi-identifier: with other data it helps to re-identify people."

_FEWEST_ROWS = 500
"""With fewer values a margin would have few bins, and rare values would be lost."""

_NO_ID = (
    "\n# No column seems to identify a record, so its row number does: add an id if rows may move between versions."
)


def draft(
    table: Any,
    *,
    dataset: str = "table",
    calibrated: Sequence[tuple[float, Target]] = (),
    plain_noise: bool | Collection[str] = False,
    file: FileOptions = NOTHING_STATED,
    roles: Mapping[str, str] = MappingProxyType({}),
    gains: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> str:
    """The draft in TOML, with a comment for each choice.

    Args:
        table: the table.
        dataset: the name of the dataset.
        calibrated: targets, each with the highest fidelity at which it holds.
        plain_noise: whether all columns, or which of them, are to have the roles `gaussian` and `uniform` rather than
            `copula`; in a small table all have.
        file: how the file of the table is to be read, where its content does not tell.
        roles: the roles of columns that somebody chose; others are suggested.
        gains: the share of columns that the best attack on a sample recovers at each level.

    """
    seen = Examined.of(table, file)
    lines, has_id = seen.lines(plain_noise, roles, gains=gains)
    highest = min((fidelity for fidelity, _ in calibrated), default=0.8)
    first = head(
        dataset, seen.share, has_id=has_id, highest=highest, is_calibrated=bool(calibrated), gained=bool(gains)
    )
    targets = [f"{key_text(target.column)} = {value_text(target.requirement())}" for _, target in calibrated]
    audit = ["# What no attack may achieve; else no copy is made.\n[audit]", *targets] if calibrated else []
    return "\n".join([first, "[columns]\n", *lines, *seen.file(file), *audit])


def head(
    dataset: str,
    share: str = "the first",
    *,
    has_id: bool = True,
    highest: float = 0.8,
    is_calibrated: bool = False,
    gained: bool = False,
) -> str:
    """What comes before the columns of a draft."""
    return _HEAD.format(
        examined=share,
        dataset=value_text(dataset),
        ids="" if has_id else _NO_ID,
        gained=_GAINED if gained else "",
        attacked=f"# No attack that sfumato knows breaks the targets below up to {highest:g}.\n"
        if is_calibrated
        else "",
        levels=[round(highest * share, 3) for share in (1, 0.625, 0.25)],
    )


@dataclass(frozen=True)
class Examined:
    """What a draft is made from: the first rows of a table."""

    rows: pa.Table
    schema: pa.Schema
    """The columns, with the dialect of their file."""
    total: int | None

    @classmethod
    def of(cls, table: Any, file: FileOptions) -> Examined:
        """Read rows until there are enough."""
        source = Source.of(table, options=file)
        batches, rows, size = [], 0, 0
        for batch in source.batches():
            batches.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= EXAMINED or size >= _MAX_BYTES:
                break
        return cls(pa.Table.from_batches(batches, schema=source.schema), source.schema, source.rows)

    @property
    def share(self) -> str:
        """The number of these rows, for people."""
        rows = self.rows.num_rows
        return f"{rows:,}" if self.total in (None, rows) else f"the first {rows:,} of {self.total:,}"

    def lines(
        self,
        plain_noise: bool | Collection[str],
        roles: Mapping[str, str] = MappingProxyType({}),
        *,
        fixed: Mapping[str, Suggestion] = MappingProxyType({}),
        gains: Mapping[str, Sequence[float]] = MappingProxyType({}),
    ) -> tuple[list[str], bool]:
        """The line of each column with its comment, and whether one of them identifies records."""
        some = () if isinstance(plain_noise, bool) else plain_noise
        plain = self.rows.column_names if plain_noise is True or self.rows.num_rows < _FEWEST_ROWS else some
        named = ENTITY in [role for role, _, _ in fixed.values()]
        entities = {} if named else _entities(self.rows.drop(list(fixed)), roles)
        chosen = {**roles, **entities, **{name: one[0] for name, one in fixed.items()}}
        has_entity = ENTITY in chosen.values()
        found = _suggestions(self.rows, self.rows.column_names if has_entity else plain, chosen) | dict(fixed)
        return list(_statements(self.rows, found, gains).values()), any(role == "id" for role, _, _ in found.values())

    def statements(self, roles: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
        """The comment and the line of some columns, where somebody chose the roles of all."""
        plain = self.rows.column_names if ENTITY in roles.values() else ()
        found = _statements(self.rows, _suggestions(self.rows, plain, roles), {})
        return {name: found[name] for name in names if name in found}

    def file(self, stated: FileOptions) -> list[str]:
        """How the file was read, where it is not plain, so that later versions are read alike."""
        return _file(self.schema, stated)


def _entities(examined: pa.Table, roles: Mapping[str, str]) -> dict[str, str]:
    """The role of the first column that seems to name entities, unless somebody chose another for it."""
    found = (name for name in examined.column_names if is_entity(name, examined.column(name)))
    return {name: ENTITY for name in list(found)[:1] if roles.get(name, ENTITY) == ENTITY}


def _file(schema: pa.Schema, stated: FileOptions) -> list[str]:
    """How the file was read, where it is not plain, so that later versions are read alike."""
    dialect = Dialect.of_schema(schema) or PLAIN
    options = dialect.options().stated() | stated.stated()
    if not options:
        return []
    seen = f"# How the file is read: {dialect.sentence()}.\n" if dialect.sentence() else ""
    return [f"{seen}[file]", *(f"{key} = {value_text(value)}" for key, value in options.items()), ""]


def _statements(
    examined: pa.Table, found: Mapping[str, Suggestion], gains: Mapping[str, Sequence[float]]
) -> dict[str, str]:
    """The line of each column with its comment."""
    told, lines = notes(examined), {}
    for field in examined.schema:
        role, options, why = found[field.name]
        label = f"{label_of(field)!r}: " if label_of(field) else ""
        quasi = _QUASI if role not in (DROP, "id", ENTITY) and is_quasi_identifier(field.name) else ""
        relation = f" {told[field.name]}" if role not in (DROP, "id", ENTITY) and field.name in told else ""
        look = hints(field.name, examined.column(field.name)) if role not in (DROP, "id", ENTITY) else ""
        comment = re.sub(
            r"[\x00-\x1f\x7f]", " ", f"{label}{why}{quasi}{look}{relation}{_gain(field.name, role, gains)}"
        )
        value = value_text({"role": role, **options}) if options else value_text(role)
        lines[field.name] = f"# {key_text(field.name)}: {comment}\n{key_text(field.name)} = {value}\n"
    return lines


def _gain(column: str, role: str, gains: Mapping[str, Sequence[float]]) -> str:
    """What an attacker would gain of a column."""
    if not gains or role in (DROP, "id", ENTITY):
        return ""
    if column not in gains:
        return " An attacker recovers all of it." if role == PUBLIC else ""
    shares = [f"{share:.0%} at {name}" for share, name in zip(gains[column], _LEVELS, strict=False)]
    hardly = " It is hardly protected at any of these levels." if min(gains[column]) > _UNPROTECTED else ""
    return f" An attacker recovers {', '.join(shares)}.{hardly}"


def _suggestions(examined: pa.Table, plain: Collection[str], chosen: Mapping[str, str]) -> dict[str, Suggestion]:
    """The role of each column: the chosen one, else the suggested one."""
    found: dict[str, Suggestion] = {}
    for field in examined.schema:
        name, column = field.name, examined.column(field.name)
        has_id = any(role == "id" for role, _, _ in found.values())
        role, options, why = suggestion(field, column, has_id=has_id)
        if chosen.get(name, role) not in (role, "copula"):
            role, options, why = _CHOSEN.get(chosen[name], (chosen[name], {}, "as you chose."))
        elif role in ("gaussian", "uniform") and name in chosen:
            role, options, why = margin_preserving(role, why) if chosen[name] == "copula" else (role, options, why)
        elif name not in plain and role in ("gaussian", "uniform") and len(column) - column.null_count >= _FEWEST_ROWS:
            role, options, why = margin_preserving(role, why)
        elif name in plain and role == "copula":
            role, why = DROP, "times of day, which only copula can perturb; left out."
        found[name] = role, options, why
    return found if ENTITY in chosen.values() else _with_groups(examined, found)  # whose rows would vote on categories


def _with_groups(examined: pa.Table, found: dict[str, Suggestion]) -> dict[str, Suggestion]:
    """The suggestions with groups of categories that depend on each other, and are replaced together."""
    sizes = {name: len(one[1].get("domain", ())) for name, one in found.items() if one[0] == "uniform"}
    for name, group in dependent_groups(examined, sizes).items():
        role, options, why = found[name]
        found[name] = role, {**options, "joint": group}, f"{why} It depends on another, and is replaced with it."
    return found
