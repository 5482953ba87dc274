"""Writes docs/format: the JSON schema of manifests, and a small signed copy as a test vector for other readers.

`python docs/make_format.py`; the tests fail when a file is stale.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.csv

import sfumato as sf
from sfumato.models import MODELS
from sfumato.release.certificate import signed
from sfumato.release.manifest import FORMAT, Manifest

FOLDER = Path(__file__).with_name("format")
SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}

POLICY = """
dataset = "vector"
[levels]
partner = 0.5
[columns]
person = "id"
age = "gaussian"
income = "gaussian"
ward = { role = "uniform", domain = ["north", "south", "élan"] }
site = "keep"
"""
KEY = sf.Key.from_bytes(bytes(range(32)))


def schema() -> dict[str, Any]:
    """The JSON schema of manifests of the current format."""
    record = _record(Manifest, without=("earlier",))
    record["properties"] = {"sfumato": {"const": FORMAT, "description": "The format."}, **record["properties"]}
    record["required"] = ["sfumato", *record["required"]]
    record["properties"]["models"]["items"] = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in MODELS.names()]}
    record["$defs"] = {name: _model(name) for name in MODELS.names()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Manifest of a copy", **record}


def _model(name: str) -> dict[str, Any]:
    record = _record(MODELS[name])
    record["properties"] = {"kind": {"const": name}, **record["properties"]}
    record["required"] = ["kind", *record["required"]]
    return record


def _record(kind: type, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of a dataclass: fields without a default are required."""
    hints, told = get_type_hints(kind), _descriptions(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        if field.name in without:
            continue
        properties[field.name] = _value(hints[field.name])
        if field.name in told:
            properties[field.name] |= {"description": told[field.name]}
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
    description = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return {"type": "object", "description": description, "properties": properties, "required": required}


def _value(kind: Any) -> dict[str, Any]:
    parts = get_args(kind)
    if kind in SIMPLE:
        return {"type": SIMPLE[kind]}
    if get_origin(kind) in (Union, UnionType):
        return {"anyOf": [_value(part) for part in parts]}
    if kind is type(None):
        return {"type": "null"}
    if get_origin(kind) is tuple and parts[1:] == (...,):
        return {"type": "array", "items": _value(parts[0])}
    if get_origin(kind) is tuple:
        fixed = {"prefixItems": [_value(part) for part in parts], "minItems": len(parts), "maxItems": len(parts)}
        return {"type": "array", **fixed}
    return {"type": "object"} if kind is dict or get_origin(kind) in (dict, Mapping) else {}


def _descriptions(kind: type) -> dict[str, str]:
    """The texts below the fields of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        [node] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = getattr(node, "body", [])
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return found


def vector() -> tuple[pa.Table, Manifest]:
    """A signed copy of 50 records, with nulls."""
    draw = np.random.default_rng(7)
    age = draw.gamma(6, 8, 50)
    table = pa.table(
        {
            "person": np.arange(50),
            "age": pa.array(np.round(age, 1), mask=draw.random(50) < 0.1),
            "income": np.round(2 * age + draw.normal(0, 20, 50), 2),
            "ward": pa.array(draw.choice(["north", "south", "élan"], 50), mask=draw.random(50) < 0.1),
            "site": draw.choice(["a", "b"], 50),
        }
    )
    copy = sf.Policy.loads(POLICY).fit(table).release(table, "partner", KEY)
    return copy, signed(Manifest.of(copy), KEY)


def files() -> dict[str, bytes]:
    """The content of all files."""
    copy, manifest = vector()
    text = io.BytesIO()
    pyarrow.csv.write_csv(copy, text)
    return {
        "manifest.schema.json": (json.dumps(schema(), indent=1, ensure_ascii=False) + "\n").encode(),
        "vector.csv": text.getvalue(),
        "vector.csv.manifest.json": (manifest.dumps() + "\n").encode(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in files().items():
        (FOLDER / name).write_bytes(content)
