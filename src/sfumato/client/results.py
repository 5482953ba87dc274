"""Results that a service returns: the public data of a dataset, and an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RemoteDataset:
    """The public data of one version of a dataset."""

    name: str
    version: int
    rows: int
    traced: bool
    columns: dict[str, str]
    levels: dict[str, float]


@dataclass(frozen=True)
class RemoteAudit:
    """The result of an audit that a service ran."""

    passed: bool
    _result: dict[str, Any]
    _page: str

    def summary(self) -> dict[str, Any]:
        """The result as JSON."""
        return dict(self._result["summary"])

    def text(self) -> str:
        """The result as text for a terminal."""
        return str(self._result["text"])

    def page(self) -> str:
        """The report as an HTML page with figures."""
        return self._page
