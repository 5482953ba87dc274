"""Manifests of format 1, which version 0.1 wrote: their fields under the names of today."""

from __future__ import annotations

from typing import Any

_FIELDS = {"asked": "requested_fidelity", "given": "fidelity"}
_MODEL_FIELDS = {"why": "role", "chained": "collusion_resistant"}
_WARNINGS = ("UNSAFE", "NOTHING IS BLURRED")
"""How a promise began that was none."""


def from_format_1(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a manifest of format 1, without its format number, as a manifest has them now."""
    renamed = {_FIELDS.get(name, name): value for name, value in data.items()}
    renamed["models"] = [{_MODEL_FIELDS.get(name, name): v for name, v in one.items()} for one in data["models"]]
    stated = [str(sentence) for sentence in data["promises"]]
    renamed["warnings"] = [sentence for sentence in stated if sentence.startswith(_WARNINGS)]
    renamed["promises"] = [sentence for sentence in stated if not sentence.startswith(_WARNINGS)]
    return renamed
