"""Datasets of several tables: one policy with `[tables]`, in which columns refer to the identifiers of other tables.

dataset = "clinic"

[levels]
partner = 0.5

[tables.patients.columns]
patient = { role = "id", publish = "pseudonym" }
age = "gaussian"

[tables.visits.columns]
visit = "id"
patient = { role = "entity", publish = "pseudonym", references = "patients.patient" }
pressure = "gaussian"

Each table is a dataset of its own, `clinic.patients`, with noise of its own; what is outside of `[tables]` holds for
all of them. Columns that refer to an identifier have its pseudonyms, so that a recipient can join the tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tomli_w

from sfumato.errors import PolicyError, nearest
from sfumato.models.unchanged import IDENTIFIER
from sfumato.policy.roles import PSEUDONYM
from sfumato.serialization import load_toml

_SHARED = ("dataset", "digits", "default", "order", "require_approval", "levels")
"""What a policy of several tables states for all of them."""


def parsed(text: str) -> dict[str, Any]:
    """The content of a policy."""
    try:
        return load_toml(text)
    except (ValueError, RecursionError) as error:  # also for whole numbers of thousands of digits
        raise PolicyError(f"a policy must be valid TOML: {error}") from None


def tables_in(text: str) -> dict[str, str]:
    """The policies of the tables, in TOML, by their names."""
    content = parsed(text)
    if not isinstance(content.get("dataset"), str) or not content["dataset"]:
        raise PolicyError(f'a policy must name its dataset, as in `dataset = "clinic"`, got {content.get("dataset")!r}')
    tables = content.pop("tables", None)
    if not isinstance(tables, dict) or not tables or not all(isinstance(one, dict) for one in tables.values()):
        raise PolicyError("a policy of several tables must have a table [tables.NAME.columns] for each; add them")
    for name in tables:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise PolicyError(f"the name of a table has letters, digits, dashes and underscores, got {name!r}")
    for key in content:
        if key not in _SHARED:
            more = nearest(key, (*_SHARED, "tables"))
            raise PolicyError(f"a policy of several tables has {key!r} in the table that it is about; {more}")
    _check_references(tables)
    return {name: tomli_w.dumps(_member(content, name, own)) for name, own in tables.items()}


def _member(content: Mapping[str, Any], name: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """The policy of one table."""
    for key in ("dataset", "table", "levels"):
        if key in own:
            raise PolicyError(f"`{key}` holds for all tables; move it out of [tables.{name}]")
    return {**content, **own, "dataset": f"{content.get('dataset', '')}.{name}", "table": name}


def _check_references(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a reference to what is no identifier with pseudonyms of the same kind."""
    for name, table in tables.items():
        columns = table.get("columns")
        for column, stated in columns.items() if isinstance(columns, dict) else ():
            if isinstance(stated, dict) and "references" in stated:
                _check_reference(tables, f"{name}.{column}", stated)


def _check_reference(tables: Mapping[str, Mapping[str, Any]], own: str, stated: Mapping[str, Any]) -> None:
    table, _, column = str(stated["references"]).partition(".")
    columns = tables.get(table, {}).get("columns", {})
    found = columns.get(column) if isinstance(columns, dict) else None
    if not isinstance(found, dict) or found.get("role") != IDENTIFIER or "references" in found:
        raise PolicyError(
            f"`references` of {own} must name an identifier of a table that refers to no other, as in "
            f'"patients.patient", got {stated["references"]!r}'
        )
    kinds = [(one.get("publish"), one.get("format")) for one in (found, stated)]
    if kinds[0] != kinds[1] or kinds[0][0] != PSEUDONYM:
        raise PolicyError(
            f"{own} and {stated['references']} must have pseudonyms of one kind; give both `publish = "
            f"{PSEUDONYM!r}`, and one `format` to both or none"
        )
