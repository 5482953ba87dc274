"""The policy: what the owner says about a dataset, in TOML.

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
import importlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import tomli_w

from sfumato.errors import LevelError, PolicyError, nearest
from sfumato.family import Family
from sfumato.levels import Ladder, Level
from sfumato.policy.targets import Target

if TYPE_CHECKING:  # a policy is the door to fitting, which lives in a lower layer
    from sfumato.mechanisms import Mechanism
    from sfumato.release.scheme import TableScheme

PLAIN_ROLES = {"id": frozenset({"publish"}), "keep": frozenset[str](), "drop": frozenset[str]()}
"""The roles that blur nothing, with their options."""

_KEYS = ("dataset", "digits", "default", "levels", "columns", "audit")
MECHANISMS = Family("sfumato.mechanisms", "Mechanism")


@dataclass(frozen=True)
class Column:
    """A column's role and the options it has in that role."""

    role: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __reduce__(self) -> tuple[object, ...]:
        return Column, (self.role, dict(self.options))


@dataclass(frozen=True)
class Policy:
    """A dataset's name, its ladder of levels, and the role of each of its columns.

    Roles: `id` names a record, `keep` shows a column as it is, `drop` leaves it out, `gaussian` adds noise to numbers
    and times, `uniform` replaces categories at random, `rotation` and `projection` turn numbers so that distances stay.

        policy = Policy.loads('''
        dataset = "clinic"
        [levels]
        partner = 0.5
        [columns]
        age = "gaussian"
        ward = { role = "uniform", domain = ["A", "B"] }
        ''')
        scheme = policy.fit(table)
    """

    dataset: str
    ladder: Ladder
    columns: Mapping[str, Column]
    digits: int = 8
    """How finely a level between two declared ones can be chosen: `2^digits` steps a gap."""
    default: str | None = None
    """The role, `keep` or `drop`, of columns that the policy does not name; without one they are refused."""
    targets: tuple[Target, ...] = ()
    """What no attack may do better than; a copy on which one does is refused."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said of all columns of a role together, in a table named after it."""

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, str) or not self.dataset:
            raise PolicyError(f'a policy must name its dataset, as in `dataset = "clinic"`, got {self.dataset!r}')
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or not 1 <= self.digits <= 32:
            raise PolicyError(f"`digits` must be a whole number from 1 to 32, got {self.digits!r}")
        if self.default not in (None, "keep", "drop"):
            raise PolicyError(f"`default` must be 'keep' or 'drop', got {self.default!r}")
        for name, column in self.columns.items():
            _check(name, column)
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        for role, said in self.settings.items():
            if not isinstance(said, Mapping):
                raise PolicyError(f"[{role}] must be a table, as in `[{role}]` with a line for each key, got {said!r}")
        object.__setattr__(self, "settings", MappingProxyType({role: dict(s) for role, s in self.settings.items()}))
        for role, said in self.settings.items():
            _check_settings(role, said, self.roles())
        if {"rotation", "projection"} <= set(self.roles()):
            raise PolicyError("a table is turned once, by rotation or by projection, and this policy has both")
        self.mechanisms()
        for target in self.targets:
            self.check_target(target)

    def __reduce__(self) -> tuple[object, ...]:
        settings = {role: dict(said) for role, said in self.settings.items()}
        return Policy, (
            self.dataset,
            self.ladder,
            dict(self.columns),
            self.digits,
            self.default,
            self.targets,
            settings,
        )

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a policy file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise PolicyError(f"the policy {path} could not be read: {reason}") from None
        return cls.loads(text)

    @classmethod
    def loads(cls, text: str) -> Policy:
        """Read a policy."""
        if not isinstance(text, str):
            raise PolicyError(f"a policy must be TOML text, got {type(text).__name__}; read a file with Policy.load")
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"a policy must be valid TOML: {error}") from None
        groups = [name for name in MECHANISMS.names() if name in said]
        for key in said:
            if key not in (*_KEYS, *groups):
                turned = [name for name in MECHANISMS.names() if MECHANISMS[name].settings]
                raise PolicyError(f"a policy has no key {key!r}; {nearest(key, (*_KEYS, *turned))}")
        levels, columns = (_table(said, key) for key in ("levels", "columns"))
        return cls(
            dataset=said.get("dataset", ""),
            ladder=Ladder({name: _level(name, value) for name, value in levels.items()}),
            columns={name: _column(name, value) for name, value in columns.items()},
            digits=said.get("digits", 8),
            default=said.get("default"),
            targets=tuple(Target.of(name, value) for name, value in _targets(said).items()),
            settings={name: said[name] for name in groups},
        )

    @classmethod
    def suggest(cls, table: Any, *, dataset: str = "table") -> Policy:
        """Draft a policy from a table; `sfumato suggest` writes the same draft with comments."""
        draft = importlib.import_module("sfumato.policy.suggest").draft
        return cls.loads(draft(table, dataset=dataset))

    def dumps(self) -> str:
        """The policy in TOML; `loads` reads it back."""
        return tomli_w.dumps(self._content())

    def digest(self) -> str:
        """Names the policy's content: equal for equal policies, however they are written."""
        content = json.dumps(self._content(), sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()

    def fit(
        self,
        table: Any,
        *,
        threads: int | None = None,
        progress: Callable[[int], None] | None = None,
        engine: Any = None,
    ) -> TableScheme:
        """Measure a table, and fix with it the shape of the noise for all its levels; on an `engine`, if it is said."""
        fitting = importlib.import_module("sfumato.release.fitting")
        fitted: TableScheme = fitting.fit(self, table, threads=threads, progress=progress, engine=engine)
        return fitted

    def fit_spark(self, frame: Any) -> TableScheme:
        """The same for a Spark data frame, measured where it lies."""
        fitted: TableScheme = importlib.import_module("sfumato.release.spark").fit_dataframe(self, frame)
        return fitted

    def check_target(self, target: Target) -> None:
        """Refuse a target that does not fit its column's role."""
        column = self.columns.get(target.column)
        role = column and column.options.get("of", column.role)
        fit = {"rmse": "gaussian", "error": "gaussian", "success": "uniform"}[target.measure]
        if role != fit:
            missing = f"there is no column {target.column!r}; {nearest(target.column, self.columns)}"
            got = f"{target.column!r} has the role {role}" if role else missing
            raise PolicyError(f"a target on {target.measure} needs a column with the role {fit}, and {got}")

    def mechanisms(self) -> list[Mechanism]:
        """What blurs the columns, role by role."""
        return [
            mechanism
            for role in self.roles()
            for mechanism in MECHANISMS[role].of(self.options(role), self.settings.get(role, {}))
        ]

    def roles(self) -> list[str]:
        """The roles of blurred columns, sorted."""
        return sorted({column.role for column in self.columns.values()} - set(PLAIN_ROLES))

    def options(self, role: str) -> dict[str, Mapping[str, Any]]:
        """The columns of a role with their options, sorted: the order in which they are written says nothing."""
        return {name: column.options for name, column in sorted(self.columns.items()) if column.role == role}

    def _content(self) -> dict[str, Any]:
        head = {"dataset": self.dataset, "digits": self.digits}
        if self.default:
            head["default"] = self.default
        columns = {
            name: {"role": column.role, **column.options} if column.options else column.role
            for name, column in self.columns.items()
        }
        levels = {name: level.fidelity for name, level in self.ladder.levels.items()}
        audit = {target.column: target.requirement() for target in self.targets}
        settings = {role: dict(said) for role, said in sorted(self.settings.items()) if said}
        return {**head, "levels": levels, "columns": columns} | ({"audit": audit} if audit else {}) | settings


def _table(said: dict[str, Any], key: str) -> dict[str, Any]:
    table = said.get(key)
    if not isinstance(table, dict) or not table:
        raise PolicyError(f"a policy must have a table [{key}] with at least one entry; add it")
    return table


def _targets(said: dict[str, Any]) -> dict[str, Any]:
    table = said.get("audit", {})
    if not isinstance(table, dict):
        raise PolicyError(f'[audit] must be a table of targets, as in `income = "rmse >= 5000"`, got {table!r}')
    return table


def _level(name: str, value: Any) -> Level:
    try:
        return Level(value)
    except LevelError as error:
        raise LevelError(f"level {name!r}: {error}") from None


def _column(name: str, said: Any) -> Column:
    if isinstance(said, str):
        return Column(said)
    if isinstance(said, dict) and isinstance(said.get("role"), str):
        return Column(said["role"], {key: value for key, value in said.items() if key != "role"})
    raise PolicyError(f'column {name!r} must have a role, as in `{name} = "keep"`, got {said!r}')


def _check(name: str, column: Column) -> None:
    """Refuse an unknown role or option."""
    roles = [*PLAIN_ROLES, *MECHANISMS.names()]
    if column.role not in roles:
        raise PolicyError(f"column {name!r} has no known role: {column.role!r}; {nearest(column.role, roles)}")
    known = _options(column.role)
    for option, value in column.options.items():
        if option not in known:
            raise PolicyError(
                f"column {name!r} with the role {column.role} has no option {option!r}; "
                f"{nearest(option, sorted(known)) if known else 'this role has none'}"
            )
        if option == "publish" and not isinstance(value, bool):
            raise PolicyError(f"`publish` of column {name!r} must be true or false, got {value!r}")


def _check_settings(role: str, said: Mapping[str, Any], roles: list[str]) -> None:
    """Refuse a table for a role that no column has, or with a key that is none of its own."""
    if role not in roles:
        raise PolicyError(f"the table [{role}] speaks of columns with the role {role}, and there is none; leave it out")
    known = MECHANISMS[role].settings
    for key in said:
        if key not in known:
            more = nearest(key, sorted(known)) if known else "this role has none"
            raise PolicyError(f"the table [{role}] has no key {key!r}; {more}")


def _options(role: str) -> frozenset[str]:
    if role in PLAIN_ROLES:
        return PLAIN_ROLES[role]
    options: frozenset[str] = MECHANISMS[role].options
    return options
