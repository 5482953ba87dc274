"""Sfumato releases one table at many trust levels.

Each recipient gets a copy as blurred as that recipient's trust demands, and recipients who pool their copies learn
nothing beyond the best copy among them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.audit.attacking import attack as attack
    from sfumato.audit.attacking import score as score
    from sfumato.audit.folding import attack_folder as attack_folder
    from sfumato.client import connect as connect
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.keys.key import Key as Key
    from sfumato.release.folders import release_folder as release_folder
    from sfumato.release.manifest import Manifest as Manifest
    from sfumato.release.plan import TableScheme as TableScheme
    from sfumato.release.run import read_copy as read_copy
    from sfumato.release.run import release_file as release_file
    from sfumato.schema.levels import Ladder as Ladder
    from sfumato.schema.levels import Level as Level
    from sfumato.schema.policy import Policy as Policy
    from sfumato.survey import Survey as Survey
    from sfumato.vault import Vault as Vault

_HOMES = {
    "Key": "sfumato.keys.key",
    "Ladder": "sfumato.schema.levels",
    "Level": "sfumato.schema.levels",
    "Manifest": "sfumato.release.manifest",
    "Policy": "sfumato.schema.policy",
    "SfumatoError": "sfumato.errors",
    "TableScheme": "sfumato.release.plan",
    "Survey": "sfumato.survey",
    "Vault": "sfumato.vault",
    "attack": "sfumato.audit.attacking",
    "attack_folder": "sfumato.audit.folding",
    "connect": "sfumato.client",
    "read_copy": "sfumato.release.run",
    "release_file": "sfumato.release.run",
    "release_folder": "sfumato.release.folders",
    "score": "sfumato.audit.attacking",
}

__all__ = [
    "Key",
    "Ladder",
    "Level",
    "Manifest",
    "Policy",
    "SfumatoError",
    "Survey",
    "TableScheme",
    "Vault",
    "attack",
    "attack_folder",
    "connect",
    "read_copy",
    "release_file",
    "release_folder",
    "score",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import sfumato` costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
