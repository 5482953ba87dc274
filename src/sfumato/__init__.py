"""Sfumato releases one table at many trust levels.

Each recipient gets a copy that is perturbed as much as that recipient's trust demands, and recipients who combine their
copies learn no more than the level of the best copy among them allows.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.audit.attack import attack as attack
    from sfumato.audit.attack import score as score
    from sfumato.audit.distributed_attack import attack_folder as attack_folder
    from sfumato.client import connect as connect
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.keys.key import Key as Key
    from sfumato.levels import Ladder as Ladder
    from sfumato.levels import Level as Level
    from sfumato.pages.progress import progress as progress
    from sfumato.release.files import read_copy as read_copy
    from sfumato.release.files import release_file as release_file
    from sfumato.release.files import to_pandas as to_pandas
    from sfumato.release.manifest import Manifest as Manifest
    from sfumato.release.partitioned import release_folder as release_folder
    from sfumato.release.policy import Policy as Policy
    from sfumato.release.scheme import TableScheme as TableScheme
    from sfumato.survey import Survey as Survey
    from sfumato.vault import Vault as Vault

_MODULES = {
    "Key": "sfumato.keys.key",
    "Ladder": "sfumato.levels",
    "Level": "sfumato.levels",
    "Manifest": "sfumato.release.manifest",
    "Policy": "sfumato.release.policy",
    "SfumatoError": "sfumato.errors",
    "TableScheme": "sfumato.release.scheme",
    "Survey": "sfumato.survey",
    "Vault": "sfumato.vault",
    "attack": "sfumato.audit.attack",
    "attack_folder": "sfumato.audit.distributed_attack",
    "connect": "sfumato.client",
    "progress": "sfumato.pages.progress",
    "read_copy": "sfumato.release.files",
    "release_file": "sfumato.release.files",
    "release_folder": "sfumato.release.partitioned",
    "score": "sfumato.audit.attack",
    "to_pandas": "sfumato.release.files",
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
    "progress",
    "read_copy",
    "release_file",
    "release_folder",
    "score",
    "to_pandas",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import sfumato` costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - which takes a while

        return version("sfumato")
    if name not in _MODULES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
