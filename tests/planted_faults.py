"""Faults planted in the mechanisms, for tests that must find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.mechanisms import Scheme
from sfumato.mechanisms._gaussian_scheme import GaussianScheme
from sfumato.mechanisms._uniform_scheme import UniformScheme


def plant_independent_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every level a key of its own, while manifests state that all copies lie on one path."""
    for scheme in (GaussianScheme, UniformScheme):
        monkeypatch.setattr(scheme, "perturb_levels", _independent(scheme.perturb_levels))


def _independent(perturb_levels: Callable[..., Any]) -> Callable[..., Any]:
    def perturbed(scheme: Scheme, batch: Any, rows: Any, levels: Any, key: Any) -> Any:
        own = [key.derive("planted", repr(level.fidelity)) for level in levels]
        return [perturb_levels(scheme, batch, rows, [level], k)[0] for level, k in zip(levels, own, strict=True)]

    return perturbed
