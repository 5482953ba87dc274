"""Policy documents: what an owner states about a dataset, in TOML, read, validated and written.

dataset = "clinic"

[levels]                    # from the most to the least trusted
internal = 0.8
public = 0.2

[columns]
patient = "id"              # a role alone ...
[columns.income]            # ... or a role with options
role = "gaussian"
clip = [0, 250_000]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import pyarrow as pa
import tomli_w

from sfumato.errors import LevelError, PolicyError, nearest
from sfumato.levels import Ladder, Level
from sfumato.mechanisms import MECHANISMS, Mechanism
from sfumato.models.unchanged import ENTITY, IDENTIFIER, PUBLIC
from sfumato.pages.described import Described, Description, counted
from sfumato.policy.formats import Format
from sfumato.policy.roles import DROP, PLAIN_ROLES, PSEUDONYM, all_roles, options_of
from sfumato.policy.suggest import draft
from sfumato.policy.tables import parsed, tables_in
from sfumato.policy.targets import Target
from sfumato.tables.database import is_database
from sfumato.tables.file_options import NOTHING_STATED, FileOptions
from sfumato.tables.lake import is_lake
from sfumato.tables.row_order import KEEP, SECRET
from sfumato.tables.source import Source

_KEYS = ("dataset", "table", "digits", "default", "order", "require_approval", "file", "levels", "columns", "audit")


@dataclass(frozen=True)
class Column:
    """A column's role and the options it has in that role."""

    role: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __reduce__(self) -> tuple[object, ...]:
        return Column, (self.role, dict(self.options))


@dataclass(frozen=True, eq=False, repr=False)
class PolicyDocument(Described):
    """The content of a policy: a dataset's name, its ladder of levels, and the role of each of its columns.

    `release.policy.Policy` adds fitting.
    """

    dataset: str
    ladder: Ladder
    columns: Mapping[str, Column]
    digits: int = 8
    """How finely a level between two declared ones can be chosen: `2^digits` steps per gap."""
    default: str | None = None
    """The role, `keep` or `drop`, of columns that the policy does not mention; without one they are refused."""
    targets: tuple[Target, ...] = ()
    """What no attack may achieve; a copy on which one does is refused."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of all columns of a role together, in a table named after the role."""
    order: str = SECRET
    """Whether the rows of a copy are in a secret order, or `keep` that of the table, along which noise averages out."""

    require_approval: bool = False
    """Whether a version may be released only after an officer has approved its sign-off pack."""

    file: FileOptions = NOTHING_STATED
    """How the file of the table is to be read, where its content does not tell."""

    table: str = ""
    """The name of this table among those of a dataset of several, whose name is before that dot: see `tables`."""

    def description(self) -> Description:
        """What notebooks and prompts show."""
        rows = [
            (name, one.role, ", ".join(f"{key} = {value!r}" for key, value in one.options.items()))
            for name, one in self.columns.items()
        ]
        facts = (*self.ladder.described(), counted(len(rows), "column"))
        return Description(f"Policy of {self.dataset!r}", facts, ("column", "role", "options"), rows)

    def __post_init__(self) -> None:
        self._check_head()
        for name, column in self.columns.items():
            _check(name, column)
            if "references" in column.options and not self.table:
                raise PolicyError(f"`references` of column {name!r} needs a dataset of several tables; see [tables]")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        for role, keys in self.settings.items():
            _check_settings(role, keys, self.roles())
        object.__setattr__(self, "settings", MappingProxyType({role: dict(s) for role, s in self.settings.items()}))
        maps = [role for role in self.roles() if MECHANISMS[role].is_linear_map]
        if len(maps) > 1:
            raise PolicyError(f"a table has one linear map, and this policy has {' and '.join(maps)}; choose one")
        if len(self.options(ENTITY)) > 1:
            raise PolicyError(f"one column names the entities, and this policy has {', '.join(self.options(ENTITY))}")
        self.mechanisms()
        for target in self.targets:
            self.check_target(target)

    def _check_head(self) -> None:
        """Refuse an invalid name, number of digits or default role."""
        if not isinstance(self.dataset, str) or not self.dataset:
            raise PolicyError(f'a policy must name its dataset, as in `dataset = "clinic"`, got {self.dataset!r}')
        if not isinstance(self.table, str) or (self.table and not self.dataset.endswith(f".{self.table}")):
            raise PolicyError(f"the name of a dataset ends with that of its `table`, got {self.table!r}")
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or not 1 <= self.digits <= 32:
            raise PolicyError(f"`digits` must be a whole number from 1 to 32, got {self.digits!r}")
        if self.default not in (None, PUBLIC, DROP):
            raise PolicyError(f"`default` must be 'keep' or 'drop', got {self.default!r}")
        if not isinstance(self.require_approval, bool):
            raise PolicyError(f"`require_approval` must be true or false, got {self.require_approval!r}")
        if self.order not in (SECRET, KEEP):
            raise PolicyError(f"`order` must be {SECRET!r} or {KEEP!r}, got {self.order!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PolicyDocument) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def __reduce__(self) -> tuple[object, ...]:
        settings = {role: dict(keys) for role, keys in self.settings.items()}
        head = (self.dataset, self.ladder, dict(self.columns), self.digits, self.default)
        rest = (self.targets, settings, self.order, self.require_approval, self.file, self.table)
        return type(self), (*head, *rest)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy file."""
        return cls.loads(_read(path))

    @classmethod
    def loads(cls, text: str) -> Self:
        """Read a policy."""
        if not isinstance(text, str):
            raise PolicyError(f"a policy must be TOML text, got {type(text).__name__}; read a file with Policy.load")
        content = parsed(text)
        if "tables" in content:
            raise PolicyError(
                "this policy is of several tables, and one table is asked for; read it with Policy.load_tables, or add "
                "all of them, as in `sfumato add patients=patients.csv visits=visits.csv --policy POLICY`"
            )
        groups = [name for name in MECHANISMS if name in content]
        for key in content:
            if key not in (*_KEYS, *groups):
                tables = [name for name, member in MECHANISMS.members().items() if member.settings]
                raise PolicyError(f"a policy has no key {key!r}; {nearest(key, (*_KEYS, *tables))}")
        levels, columns = (_table(content, key) for key in ("levels", "columns"))
        return cls(
            dataset=content.get("dataset", ""),
            ladder=Ladder({name: _level(name, value) for name, value in levels.items()}),
            columns={name: _column(name, value) for name, value in columns.items()},
            digits=content.get("digits", 8),
            default=content.get("default"),
            targets=tuple(Target.of(name, value) for name, value in _targets(content).items()),
            settings={name: content[name] for name in groups},
            order=content.get("order", SECRET),
            require_approval=content.get("require_approval", False),
            file=FileOptions.of(content.get("file", {})),
            table=content.get("table", ""),
        )

    @classmethod
    def load_tables(cls, path: str | Path) -> dict[str, Self]:
        """Read a policy of several tables: the policy of each, by the name of the table."""
        return {name: cls.loads(text) for name, text in tables_in(_read(path)).items()}

    @classmethod
    def suggest(
        cls, table: Any, *, dataset: str = "table", plain_noise: bool = False, file: FileOptions = NOTHING_STATED
    ) -> Self:
        """Draft a policy from a table; `sfumato suggest` writes the same draft with comments."""
        return cls.loads(draft(table, dataset=dataset, plain_noise=plain_noise, file=file))

    def source(self, table: Any, schema: pa.Schema | None = None) -> Source:
        """The table, read from its file as the policy states; a schema gives the types of text."""
        if (is_database(table) or is_lake(table)) and not self.options(IDENTIFIER):
            raise PolicyError(
                "the rows of a table in a database or a lake have no order, so that records must be identified; give a "
                "column the role id, or their noise would be drawn again at every release and could be averaged"
            )
        return Source.of(table, schema, self.file)

    def dumps(self) -> str:
        """The policy in TOML; `loads` reads it back."""
        return tomli_w.dumps(self._content())

    def digest(self) -> str:
        """Names the policy's content: equal for equal policies, however they are written."""
        content = json.dumps(self._content(), sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()

    def check_target(self, target: Target) -> None:
        """Refuse a target that does not fit its column's role."""
        column = self.columns.get(target.column)
        role = column and column.options.get("of", column.role)
        fitting = [name for name, member in MECHANISMS.members().items() if target.measure in member.measures]
        if role not in fitting:
            missing = f"there is no column {target.column!r}; {nearest(target.column, self.columns)}"
            got = f"{target.column!r} has the role {role}" if role else missing
            roles = " or ".join(fitting)
            raise PolicyError(f"a target on {target.measure} needs a column with the role {roles}, and {got}")

    def mechanisms(self) -> list[Mechanism]:
        """The mechanisms that perturb the columns, role by role."""
        return list(self._mechanisms)

    @cached_property
    def _mechanisms(self) -> list[Mechanism]:
        found = [
            mechanism
            for role in self.roles()
            for mechanism in MECHANISMS[role].of(self.options(role), self.settings.get(role, {}))
        ]
        return found if self.entity is None else [mechanism.for_entities(self.entity) for mechanism in found]

    @property
    def entity(self) -> str | None:
        """The column that tells which records are of one person or household, if there is one."""
        return next(iter(self.options(ENTITY)), None)

    def roles(self) -> list[str]:
        """The roles of perturbed columns, sorted."""
        return sorted({column.role for column in self.columns.values()} - set(PLAIN_ROLES))

    def options(self, role: str) -> dict[str, Mapping[str, Any]]:
        """The columns of a role with their options, sorted by name, so that the order in the file does not matter."""
        return {name: column.options for name, column in sorted(self.columns.items()) if column.role == role}

    def _content(self) -> dict[str, Any]:
        head = {"dataset": self.dataset, **({"table": self.table} if self.table else {}), "digits": self.digits}
        if self.default:
            head["default"] = self.default
        if self.order != SECRET:
            head["order"] = self.order
        if self.require_approval:
            head["require_approval"] = True
        columns = {
            name: {"role": column.role, **column.options} if column.options else column.role
            for name, column in self.columns.items()
        }
        levels = {name: level.fidelity for name, level in self.ladder.levels.items()}
        audit = {target.column: target.requirement() for target in self.targets}
        settings = {role: dict(keys) for role, keys in sorted(self.settings.items()) if keys}
        stated = {"file": self.file.stated(), "audit": audit}
        return {**head, "levels": levels, "columns": columns} | {k: v for k, v in stated.items() if v} | settings


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PolicyError(f"the policy {path} could not be read: {reason}") from None


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    table = content.get(key)
    if not isinstance(table, dict) or not table:
        raise PolicyError(f"a policy must have a table [{key}] with at least one entry; add it")
    return table


def _targets(content: dict[str, Any]) -> dict[str, Any]:
    table = content.get("audit", {})
    if not isinstance(table, dict):
        raise PolicyError(f'[audit] must be a table of targets, as in `income = "rmse >= 5000"`, got {table!r}')
    return table


def _level(name: str, value: Any) -> Level:
    try:
        return Level(value)
    except LevelError as error:
        raise LevelError(f"level {name!r}: {error}") from None


def _column(name: str, stated: Any) -> Column:
    if isinstance(stated, str):
        return Column(stated)
    if isinstance(stated, dict) and isinstance(stated.get("role"), str):
        return Column(stated["role"], {key: value for key, value in stated.items() if key != "role"})
    raise PolicyError(f'column {name!r} must have a role, as in `{name} = "keep"`, got {stated!r}')


def _check(name: str, column: Column) -> None:
    """Refuse an unknown role or option."""
    roles = all_roles()
    if column.role not in roles:
        raise PolicyError(f"column {name!r} has no known role: {column.role!r}; {nearest(column.role, roles)}")
    known = options_of(column.role)
    for option, value in column.options.items():
        if option not in known:
            raise PolicyError(
                f"column {name!r} with the role {column.role} has no option {option!r}; "
                f"{nearest(option, sorted(known)) if known else 'this role has none'}"
            )
        if option == "publish" and not isinstance(value, bool) and value != PSEUDONYM:
            raise PolicyError(f"`publish` of column {name!r} must be true, false or {PSEUDONYM!r}, got {value!r}")
        if option == "publish" and column.role == PUBLIC and value != PSEUDONYM:
            raise PolicyError(f"`publish` of column {name!r} with the role keep must be {PSEUDONYM!r}, got {value!r}")
        if option in ("format", "references") and column.options.get("publish") != PSEUDONYM:
            raise PolicyError(f"`{option}` of column {name!r} is about pseudonyms; add `publish = {PSEUDONYM!r}`")
        if option == "format":
            Format.of(value)


def _check_settings(role: str, keys: Any, roles: list[str]) -> None:
    """Refuse a table for a role that no column has, or with a key that is none of its own."""
    if not isinstance(keys, Mapping):
        raise PolicyError(f"[{role}] must be a table, as in `[{role}]` with a line for each key, got {keys!r}")
    if role not in roles:
        raise PolicyError(f"the table [{role}] is about columns with the role {role}, and there is none; leave it out")
    known = MECHANISMS[role].settings
    for key in keys:
        if key not in known:
            more = nearest(key, sorted(known)) if known else "this role has none"
            raise PolicyError(f"the table [{role}] has no key {key!r}; {more}")
